// Jobs as v0.0.42 has them: squeue --json, scontrol show job --json.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "frontend/slurm/json_output.h"
#include "frontend/slurm/scontrol_show.h"
#include "frontend/slurm/squeue_render.h"

namespace tutti::slurm {
namespace {

std::optional<std::uint64_t> unless_zero(std::uint64_t value) {
  return value == 0 ? std::nullopt : std::optional(value);
}

const NodeSpec* find_node(const StateView& view, std::string_view name) {
  for (const NodeView& node : view.nodes)
    if (node.spec.name == name) return &node.spec;
  return nullptr;
}

// Which cores of which socket a slot has; needs the node's shape in the view.
void add_sockets(JsonOut& out, const Slot& slot, const NodeSpec& spec) {
  std::uint32_t cores = spec.sockets * spec.cores_per_socket;
  if (cores == 0) return;
  out.open_list("sockets");
  for (std::uint32_t socket = 0; socket < spec.sockets; ++socket) {
    std::vector<std::uint32_t> held;
    for (std::uint16_t cpu : slot.cpu_ids) {
      // Logical CPUs count first threads of all cores, then second ones.
      std::uint32_t core = cpu % cores;
      if (core / spec.cores_per_socket == socket) held.push_back(core % spec.cores_per_socket);
    }
    if (held.empty()) continue;
    std::sort(held.begin(), held.end());
    held.erase(std::unique(held.begin(), held.end()), held.end());
    out.open("");
    out.number("index", socket);
    out.open_list("cores");
    for (std::uint32_t core : held) {
      out.open("");
      out.number("index", core);
      out.list("status", {"ALLOCATED"});
      out.close();
    }
    out.close_list();
    out.close();
  }
  out.close_list();
}

void add_resources(JsonOut& out, const JobRow& row, const StateView& view) {
  if (row.is_pending() || !row.gang || row.gang->gang.slots.empty()) {
    out.raw().key("job_resources");
    out.raw().null();
    return;
  }
  JobAmounts amounts = job_amounts(row);
  out.open("job_resources");
  out.list("select_type", {"CPU", "MEMORY"});
  out.open("nodes");
  out.number("count", amounts.nodes);
  out.list("select_type", {row.ask().exclusive ? "ONE_ROW" : "AVAILABLE"});
  out.text("list", node_list(row));
  out.boolean("whole", row.ask().exclusive);
  out.open_list("allocation");
  const std::vector<Slot>& slots = row.gang->gang.slots;
  std::uint64_t index = 0;
  for (std::size_t i = 0; i < slots.size() && i < row.gang->nodes.size(); ++i) {
    if (row.is_het() && slots[i].role != row.role) continue;
    out.open("");
    out.number("index", index++);
    out.text("name", row.gang->nodes[i]);
    out.open("cpus");
    out.number("count", slots[i].cpu_ids.size());
    out.number("used", slots[i].cpu_ids.size());
    out.close();
    out.open("memory");
    out.number("used", 0);
    out.number("allocated", slots[i].memory_mib);
    out.close();
    if (const NodeSpec* spec = find_node(view, row.gang->nodes[i]))
      add_sockets(out, slots[i], *spec);
    out.close();
  }
  out.close_list();
  out.close();
  out.number("cpus", amounts.cpus);
  out.maybe("threads_per_core", std::nullopt);
  out.close();
}

void add_identity(JsonOut& out, const JobRow& row, const StateView& view) {
  const Workload& w = row.workload();
  out.number("job_id", row.job_id());
  out.text("name", w.name);
  out.text("account", w.account);
  out.text("user_name", w.user);
  out.number("user_id", w.uid);
  out.text("group_name", w.group);
  out.number("group_id", w.gid);
  out.text("cluster", view.cluster);
  out.text("qos", w.qos);
  out.text("partition", row.gang && !row.is_pending() && !row.gang->gang.partition.empty()
                            ? row.gang->gang.partition
                            : row.view->partition);
  out.maybe("array_job_id", w.is_array() ? w.id.value() : 0);
  out.maybe("array_task_id",
            row.array_index ? std::optional<std::uint64_t>(*row.array_index) : std::nullopt);
  out.maybe("array_max_tasks", w.array_throttle);
  out.text("array_task_string",
           row.array_index || row.array_text.empty() ? std::string() : array_task_id(row));
  out.maybe("het_job_id", row.is_het() ? w.id.value() : 0);
  out.text("het_job_id_set", row.is_het() ? fmt::format("{}", w.id.value()) : std::string());
  out.maybe("het_job_offset", row.role);
  out.text("wckey", w.extras->wckey);
  out.text("comment", w.extras->comment);
  out.text("admin_comment", w.extras->admin_comment);
  out.text("system_comment", "");
  out.text("allocating_node", w.extras->submit_host);
  out.number("association_id", 0);
}

void add_state(JsonOut& out, const JobRow& row, const std::vector<std::uint32_t>& arrays) {
  const Gang none{};
  const Gang& gang = row.gang ? row.gang->gang : none;
  std::vector<std::string> states;
  // Flag states accompany a base state, as in Slurm.
  if (row.state == JobState::kCompleting || row.state == JobState::kConfiguring)
    states.emplace_back(gang.outcome != Outcome::kNone ? state_word(state_of(gang.outcome))
                                                       : "RUNNING");
  states.emplace_back(state_word(row.state));
  std::reverse(states.begin(), states.end());
  out.list("job_state", states);
  std::string_view why = job_reason(row);
  bool sentence = why.find(' ') != std::string_view::npos;
  out.text("state_reason", sentence ? "Resources" : why);
  out.text("state_description", sentence ? why : "");
  out.exit("exit_code", gang.exit);
  out.exit("derived_exit_code", gang.derived_exit);
  out.text("dependency", dependency_text(row, arrays));
  out.boolean("hold", row.on_hold());
  out.maybe("priority", shown_priority(row));
  out.signed_number("nice", row.workload().nice);
  out.boolean("requeue", row.workload().requeue);
  out.number("restart_cnt", gang.restarts);
  out.list("flags", {});
  out.boolean("reboot", false);
}

void add_times(JsonOut& out, const JobRow& row, const StateView& view) {
  Duration limit = row.view->time_limit;
  out.time("submit_time", row.workload().submitted);
  out.time("eligible_time", row.on_hold() ? Instant{} : row.view->eligible);
  out.time("accrue_time", row.on_hold() ? Instant{} : row.view->eligible);
  out.time("start_time", start_time(row));
  out.time("end_time", end_time(row));
  out.time("last_sched_evaluation", row.is_pending() ? view.now : start_time(row));
  for (std::string_view key : {"deadline", "preempt_time", "preemptable_time", "pre_sus_time",
                               "resize_time", "suspend_time"})
    out.time(key, {});
  if (limit.is_infinite())
    out.infinite("time_limit");
  else
    out.maybe("time_limit", static_cast<std::uint64_t>(limit.whole_seconds() / 60));
  out.maybe("time_minimum", static_cast<std::uint64_t>(
                                row.workload().time_min.value_or(Duration{}).whole_seconds() / 60));
}

void add_request(JsonOut& out, const JobRow& row, const StateView& view) {
  const RoleAsk& ask = row.ask();
  JobAmounts amounts = job_amounts(row);
  out.maybe("cpus", amounts.cpus);
  out.maybe("node_count", amounts.nodes);
  out.maybe("tasks", amounts.tasks);
  out.maybe("cpus_per_task", ask.cpus_per_task);
  out.maybe("tasks_per_node", ask.tasks_per_node);
  out.maybe("max_cpus", 0);
  out.maybe("max_nodes", ask.nodes_max == kNoLimit ? 0 : ask.nodes_max);
  out.maybe("minimum_cpus_per_node", min_cpus_per_node(ask));
  out.maybe("minimum_tmp_disk_per_node", 0);
  MemoryAsk memory = memory_ask(row, view);
  bool per_cpu = memory.per == MemoryAsk::Per::kCpu, per_node = memory.per == MemoryAsk::Per::kNode;
  out.maybe("memory_per_cpu", per_cpu ? unless_zero(memory.mib) : std::nullopt);
  out.maybe("memory_per_node", per_node ? std::optional(memory.mib) : std::nullopt);
  out.text("memory_per_tres", ask.memory_mib_per_gpu == 0
                                  ? std::string()
                                  : fmt::format("gres:gpu:{}", ask.memory_mib_per_gpu));
  out.text("cpus_per_tres",
           ask.cpus_per_gpu == 0 ? std::string() : fmt::format("gres:gpu:{}", ask.cpus_per_gpu));
  out.text("tres_per_job", tres_ask(ask, TresScope::kJob));
  out.text("tres_per_node", tres_ask(ask, TresScope::kNode));
  out.text("tres_per_task", tres_ask(ask, TresScope::kTask));
  std::string tres = tres_text(row, view);
  out.text("tres_req_str", tres);
  out.text("tres_alloc_str", row.is_pending() ? std::string() : tres);
  out.maybe("billable_tres", amounts.cpus);
  out.text("features", ask.features);
  out.text("required_nodes", fold_nodes(ask.nodes_in));
  out.text("excluded_nodes", fold_nodes(ask.nodes_out));
  out.boolean("contiguous", ask.contiguous);
  out.list("shared", ask.exclusive ? std::vector<std::string>{"none"} : std::vector<std::string>{});
  out.text("licenses", row.workload().extras->licenses);
  out.text("resv_name", row.workload().extras->reservation);
}

void add_place(JsonOut& out, const JobRow& row, const StateView& view) {
  const Workload& w = row.workload();
  out.text("nodes", node_list(row));
  out.text("batch_host", batch_host(row));
  out.boolean("batch_flag", w.is_batch());
  const Wait* wait = row.wait();
  out.text("scheduled_nodes", wait ? fold_nodes(wait->planned_nodes) : std::string());
  std::vector<std::string> gres;
  if (row.gang && !row.is_pending())
    for (const Slot& slot : row.gang->gang.slots)
      if (!slot.gpus.empty())
        gres.push_back(fmt::format("gpu{}{}:{}(IDX:{})", row.ask().gpu_type.empty() ? "" : ":",
                                   row.ask().gpu_type, slot.gpus.size(), index_list(slot.gpus)));
  out.list("gres_detail", gres);
  add_resources(out, row, view);
  out.text("command", w.launch.command);
  out.text("current_working_directory", w.launch.work_dir);
  out.text("standard_input", output_path(row, OutputKind::kStdin, Patterns::kAsWritten));
  out.text("standard_output", output_path(row, OutputKind::kStdout, Patterns::kAsWritten));
  out.text("standard_error", output_path(row, OutputKind::kStderr, Patterns::kAsWritten));
  out.text("stdin_expanded", output_path(row, OutputKind::kStdin, Patterns::kExpanded));
  out.text("stdout_expanded", output_path(row, OutputKind::kStdout, Patterns::kExpanded));
  out.text("stderr_expanded", output_path(row, OutputKind::kStderr, Patterns::kExpanded));
  out.list("mail_type", {});
  out.text("mail_user", w.extras->mail_user);
}

Output jobs_json(const StateView& view, const std::vector<JobRow>& rows, std::string_view command) {
  JsonOut out;
  std::vector<std::uint32_t> arrays = array_ids(view);
  out.open("");
  out.open_list("jobs");
  for (const JobRow& row : rows) add_job(out, row, view, arrays);
  out.close_list();
  out.time("last_backfill", view.now);
  out.time("last_update", view.now);
  add_meta(out, view.cluster, command);
  out.close();
  return {out.take(), {}, 0};
}

}  // namespace

void add_job(JsonOut& out, const JobRow& row, const StateView& view,
             const std::vector<std::uint32_t>& arrays) {
  out.open("");
  add_identity(out, row, view);
  add_state(out, row, arrays);
  add_times(out, row, view);
  add_request(out, row, view);
  add_place(out, row, view);
  out.close();
}

// Without filters, --json shows every job there is, as Slurm does; what is given is honoured.
Output render_squeue_json(const StateView& view, const SqueueOptions& o) {
  JobFilter filter = o.filter;
  if (filter.states.empty()) filter.all_states = true;
  std::vector<JobRow> rows = job_rows(view, o.arrays);
  std::erase_if(rows, [&](const JobRow& row) { return !passes(row, filter); });
  return jobs_json(view, rows, "squeue");
}

Output show_jobs_json(const StateView& view, const std::vector<JobSelector>& jobs,
                      const ShowOptions&) {
  JobFilter filter;
  filter.jobs = jobs;
  filter.all_states = true;
  std::vector<JobRow> rows = job_rows(view, ArrayRows::kFolded);
  std::erase_if(rows, [&](const JobRow& row) { return !passes(row, filter); });
  if (rows.empty() && !jobs.empty())
    return {{}, "slurm_load_jobs error: Invalid job id specified\n", 1};
  return jobs_json(view, rows, "scontrol");
}

}  // namespace tutti::slurm
