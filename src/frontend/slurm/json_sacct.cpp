// History as v0.0.42 has it: sacct --json; and the counters: sdiag --json.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "frontend/slurm/json_output.h"
#include "frontend/slurm/sacct_render.h"
#include "frontend/slurm/sdiag_render.h"
#include "frontend/slurm/squeue_fields.h"

namespace tutti::slurm {
namespace {

void add_cpu_time(JsonOut& out, std::string_view key, std::uint64_t ms) {
  out.open(key);
  out.number("seconds", ms / 1000);
  out.number("microseconds", ms % 1000 * 1000);
  out.close();
}

void add_tres(JsonOut& out, std::string_view type, std::string_view name, std::uint64_t id,
              std::uint64_t count) {
  if (count == 0) return;
  out.open("");
  out.text("type", type);
  out.text("name", name);
  out.number("id", id);
  out.number("count", count);
  out.close();
}
// Slurm's ids of the usual TRES; GPUs have the first two of a site's own.
void add_tres_list(JsonOut& out, std::string_view key, const JobAmounts& a, std::string_view type,
                   bool billing) {
  out.open_list(key);
  add_tres(out, "cpu", "", 1, a.cpus);
  add_tres(out, "mem", "", 2, a.memory_mib);
  add_tres(out, "node", "", 4, a.nodes);
  if (billing) add_tres(out, "billing", "", 5, a.cpus);
  add_tres(out, "gres", "gpu", 1001, a.gpus);
  if (!type.empty()) add_tres(out, "gres", fmt::format("gpu:{}", type), 1002, a.gpus);
  out.close_list();
}

std::uint64_t seconds_of(Instant at) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(at.whole_seconds(), 0));
}

std::uint64_t seconds_between(Instant from, Instant to, Instant now) {
  if (!from.is_set()) return 0;
  Instant end = to.is_set() ? to : now;
  return end > from ? seconds_of(end) - seconds_of(from) : 0;
}

void add_step(JsonOut& out, const SacctRow& row, Instant now) {
  const Step& step = *row.step;
  StepRow step_row{row.job, row.step};
  std::vector<std::string> nodes = step_nodes(step_row);
  out.open("");
  out.open("step");
  out.text("id", step_id(step_row));
  std::string_view word = step_name_word(step.id);
  out.text("name", word.empty() ? std::string_view(step.name) : word);
  out.close();
  out.list("state", {std::string(state_word(step_state(row)))});
  out.exit("exit_code", step.exit);
  out.open("nodes");
  out.number("count", nodes.size());
  out.text("range", fold_nodes(nodes));
  out.list("list", nodes);
  out.close();
  out.open("tasks");
  out.number("count", step_tasks(step));
  out.close();
  out.open("time");
  out.number("elapsed", seconds_between(step.started, step.ended, now));
  out.time("start", step.started);
  out.time("end", step.ended);
  out.number("suspended", 0);
  add_cpu_time(out, "total", step.usage.cpu_ms);
  add_cpu_time(out, "user", step.usage.cpu_ms);
  add_cpu_time(out, "system", 0);
  out.close();
  out.open("tres");
  JobAmounts a;
  a.nodes = static_cast<std::uint32_t>(step.slots.size());
  const std::vector<Slot>& slots = row.job.gang->gang.slots;
  for (const StepSlot& s : step.slots) {
    a.cpus += s.cpus;
    a.gpus += static_cast<std::uint32_t>(s.gpus.size());
    if (s.slot < slots.size()) a.memory_mib += slots[s.slot].memory_mib;
  }
  add_tres_list(out, "allocated", a, row.gpu_type, false);
  out.open("consumed");
  out.open_list("max");
  // Bytes, as Slurm counts memory that was used.
  add_tres(out, "mem", "", 2, step.usage.max_rss_kib * 1024);
  out.close_list();
  out.close();
  out.close();
  out.close();
}

void add_job_head(JsonOut& out, const SacctRow& row, const Gang& gang) {
  const Workload& w = row.job.workload();
  out.number("job_id", row.job.job_id());
  out.text("name", w.name);
  out.text("account", w.account);
  out.text("user", w.user);
  out.text("group", w.group);
  out.text("cluster", row.cluster);
  out.text("partition", gang.partition.empty() ? row.job.view->partition : gang.partition);
  out.text("qos", w.qos);
  out.open("association");
  out.text("account", w.account);
  out.text("cluster", row.cluster);
  out.text("partition", "");
  out.text("user", w.user);
  out.number("id", 0);
  out.close();
  out.open("comment");
  out.text("administrator", w.extras->admin_comment);
  out.text("job", w.extras->comment);
  out.text("system", "");
  out.close();
  out.open("array");
  out.number("job_id", w.is_array() ? w.id.value() : 0);
  out.open("limits");
  out.open("max");
  out.open("running");
  out.number("tasks", w.array_throttle);
  out.close();
  out.close();
  out.close();
  out.maybe("task_id", row.job.array_index ? std::optional<std::uint64_t>(*row.job.array_index)
                                           : std::nullopt);
  out.text("task", row.job.array_index ? "" : row.job.array_text);
  out.close();
  out.open("het");
  out.number("job_id", row.job.is_het() ? w.id.value() : 0);
  out.maybe("job_offset",
            row.job.is_het() ? std::optional<std::uint64_t>(row.job.role) : std::nullopt);
  out.close();
}

void add_job_times(JsonOut& out, const SacctRow& row, const Gang& gang, Instant now) {
  Instant start = gang.slots.empty() ? Instant{} : start_time(row.job);
  Instant end = is_done(row.job.state) ? gang.ended : Instant{};
  std::uint64_t cpu_ms = 0;
  for (const Step& step : gang.steps) cpu_ms += step.usage.cpu_ms;
  out.open("time");
  out.number("elapsed", seconds_between(start, end, now));
  out.number("eligible", seconds_of(row.job.view->eligible));
  out.number("end", seconds_of(end));
  out.number("start", seconds_of(start));
  out.number("submission", seconds_of(row.job.workload().submitted));
  out.number("suspended", 0);
  Duration limit = row.job.view->time_limit;
  if (limit.is_infinite())
    out.infinite("limit");
  else
    out.maybe("limit", static_cast<std::uint64_t>(limit.whole_seconds() / 60));
  add_cpu_time(out, "total", cpu_ms);
  add_cpu_time(out, "user", cpu_ms);
  add_cpu_time(out, "system", 0);
  out.close();
}

void add_job_rest(JsonOut& out, const SacctRow& row, const Gang& gang) {
  const Workload& w = row.job.workload();
  JobAmounts held = gang.slots.empty() ? JobAmounts{} : job_amounts(row.job);
  JobRow waiting = row.job;
  waiting.gang = nullptr;
  waiting.state = JobState::kPending;
  JobAmounts asked = job_amounts(waiting);
  MemoryAsk memory = memory_ask(row.job, StateView{});
  asked.memory_mib = memory.mib * (memory.per == MemoryAsk::Per::kNode  ? asked.nodes
                                   : memory.per == MemoryAsk::Per::kCpu ? asked.cpus
                                                                        : asked.gpus);
  out.open("state");
  out.list("current", {std::string(state_word(row.job.state))});
  out.text("reason", row.job.is_pending() ? job_reason(row.job) : std::string_view("None"));
  out.close();
  out.exit("exit_code", gang.exit);
  out.exit("derived_exit_code", gang.derived_exit);
  std::string nodes = node_list(row.job);
  out.text("nodes", nodes.empty() ? "None assigned" : nodes);
  out.number("allocation_nodes", held.nodes);
  out.open("required");
  out.number("CPUs", asked.cpus);
  out.maybe("memory_per_cpu",
            memory.per == MemoryAsk::Per::kCpu ? std::optional(memory.mib) : std::nullopt);
  out.maybe("memory_per_node",
            memory.per == MemoryAsk::Per::kNode ? std::optional(memory.mib) : std::nullopt);
  out.close();
  out.open("tres");
  add_tres_list(out, "allocated", held, row.gpu_type, true);
  add_tres_list(out, "requested", asked, row.job.ask().gpu_type, true);
  out.close();
  out.maybe("priority", shown_priority(row.job));
  out.text("constraints", row.job.ask().features);
  out.list("flags", {});
  out.text("kill_request_user",
           gang.ended_by_uid ? fmt::format("{}", *gang.ended_by_uid) : std::string());
  out.number("restart_cnt", gang.restarts);
  out.open("reservation");
  out.number("id", 0);
  out.text("name", w.extras->reservation);
  out.close();
  out.open("wckey");
  out.text("wckey", w.extras->wckey);
  out.list("flags", {});
  out.close();
  out.text("working_directory", w.launch.work_dir);
}

}  // namespace

Output render_sacct_json(HistoryView history, const SacctOptions& o) {
  SacctStore store;
  Instant now = history.now.is_set() ? history.now : o.times.now();
  std::vector<SacctRow> rows = sacct_rows(std::move(history), o, store);
  JsonOut out;
  out.open("");
  out.open_list("jobs");
  for (std::size_t i = 0; i < rows.size();) {
    const SacctRow& row = rows[i++];
    const Gang none{};
    const Gang& gang = row.job.gang ? row.job.gang->gang : none;
    out.open("");
    add_job_head(out, row, gang);
    add_job_times(out, row, gang, now);
    add_job_rest(out, row, gang);
    out.open_list("steps");
    for (; i < rows.size() && rows[i].step; ++i) add_step(out, rows[i], now);
    out.close_list();
    out.close();
  }
  out.close_list();
  add_meta(out, rows.empty() ? std::string_view() : rows.front().cluster, "sacct");
  out.close();
  return {out.take(), {}, 0};
}

Output render_sdiag_json(const DiagView& d) {
  JsonOut out;
  std::uint64_t mean = d.passes == 0 ? 0 : d.pass_us_total / d.passes;
  out.open("");
  out.open("statistics");
  out.time("req_time", d.now);
  out.time("req_time_start", d.since);
  out.number("server_thread_count", std::max<std::uint64_t>(d.channels, 1));
  out.number("agent_queue_size", 0);
  out.number("agent_count", d.agents_connected);
  out.number("dbd_agent_queue_size", 0);
  out.number("jobs_submitted", d.jobs_submitted);
  out.number("jobs_started", d.jobs_started);
  out.number("jobs_completed", d.jobs_completed);
  out.number("jobs_canceled", d.jobs_cancelled);
  out.number("jobs_failed", d.jobs_failed);
  out.number("jobs_pending", d.jobs_pending);
  out.number("jobs_running", d.jobs_running);
  out.time("job_states_ts", d.now);
  out.number("schedule_cycle_max", d.pass_us_max);
  out.number("schedule_cycle_last", d.pass_us_last);
  out.number("schedule_cycle_sum", d.pass_us_total);
  out.number("schedule_cycle_total", d.passes);
  out.number("schedule_cycle_mean", mean);
  out.number("schedule_cycle_mean_depth", d.depth_last);
  out.number("schedule_queue_length", d.queue_last);
  out.number("bf_backfilled_jobs", d.backfilled);
  out.number("bf_last_backfilled_jobs", d.backfilled);
  out.number("bf_cycle_counter", d.backfill_passes);
  out.number("bf_cycle_last", d.pass_us_last);
  out.number("bf_cycle_max", d.pass_us_max);
  out.number("bf_cycle_mean", mean);
  out.number("bf_last_depth", d.depth_last);
  out.number("bf_last_depth_try", d.depth_last);
  out.number("bf_queue_len", d.queue_last);
  out.time("bf_when_last_cycle", d.last_pass);
  out.open_list("rpcs_by_message_type");
  out.close_list();
  out.open_list("rpcs_by_user");
  out.close_list();
  out.close();
  add_meta(out, "", "sdiag");
  out.close();
  return {out.take(), {}, 0};
}

}  // namespace tutti::slurm
