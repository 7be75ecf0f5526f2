#include <fmt/format.h>

#include <algorithm>

#include "base/duration_text.h"
#include "base/text.h"
#include "frontend/slurm/scontrol_show.h"
#include "frontend/slurm/squeue_fields.h"

namespace tutti::slurm {
namespace {

constexpr std::string_view kNull = "(null)";

std::string or_null(std::string text) { return text.empty() ? std::string(kNull) : text; }

// A record's lines as Slurm joins them: indented by three, or all in one.
void append_record(std::string& out, const std::vector<std::string>& lines, bool one_line) {
  out += join(lines, one_line ? " " : "\n   ");
  out += one_line ? "\n" : "\n\n";
}

std::string exit_text(const ExitStatus& exit) {
  return fmt::format("{}:{}", exit.code, exit.signal);
}

std::string duration_or(Duration d, std::string_view none) {
  return d == Duration{} ? std::string(none) : format_duration(d);
}

std::string id_line(const JobRow& row) {
  const Workload& w = row.workload();
  std::string out = fmt::format("JobId={}", row.job_id());
  auto to = std::back_inserter(out);
  if (w.is_array()) {
    fmt::format_to(to, " ArrayJobId={} ArrayTaskId={}", w.id.value(), array_task_id(row));
    if (w.array_throttle != 0) fmt::format_to(to, " ArrayTaskThrottle={}", w.array_throttle);
  }
  if (row.is_het()) fmt::format_to(to, " HetJobId={} HetJobOffset={}", w.id.value(), row.role);
  fmt::format_to(to, " JobName={}", w.name);
  return out;
}

std::string node_count(const JobRow& row, const JobAmounts& amounts) {
  const RoleAsk& ask = row.ask();
  if (!row.is_pending() || ask.nodes_max == kNoLimit) return fmt::format("{}", amounts.nodes);
  return fmt::format("{}-{}", ask.nodes_min, ask.nodes_max);
}

std::string memory_line(const JobRow& row, const StateView& view) {
  MemoryAsk memory = memory_ask(row, view);
  std::string_view per = memory.per == MemoryAsk::Per::kCpu ? "CPU" : "Node";
  // Per GPU has a line of its own (MemPerTres).
  std::uint64_t mib = memory.per == MemoryAsk::Per::kGpu ? 0 : memory.mib;
  return fmt::format("MinCPUsNode={} MinMemory{}={} MinTmpDiskNode=0", min_cpus_per_node(row.ask()),
                     per, memory_text(mib));
}

std::string slot_gres(const JobRow& row, const StateView& view, const Slot& slot,
                      const std::string& node) {
  if (slot.gpus.empty()) return {};
  std::string type = row.ask().gpu_type;
  for (const NodeView& n : view.nodes)
    if (type.empty() && n.spec.name == node && slot.gpus.front() < n.spec.devices.size())
      type = n.spec.devices[slot.gpus.front()].type;
  return fmt::format("gpu{}{}:{}(IDX:{})", type.empty() ? "" : ":", type, slot.gpus.size(),
                     index_list(slot.gpus));
}

// -d: what each node gives, nodes that give the same in one line.
void add_slot_lines(const JobRow& row, const StateView& view, std::vector<std::string>& lines) {
  if (!row.gang || row.is_pending() || row.gang->gang.slots.empty()) return;
  std::string tres = tres_text(row, view);
  std::string total;
  std::size_t gpus = tres.rfind(",gres/");
  if (gpus != std::string::npos) {
    total = tres.substr(gpus + 6);
    std::replace(total.begin(), total.end(), '=', ':');
  }
  lines.push_back("JOB_GRES=" + or_null(total));
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  const std::vector<Slot>& slots = row.gang->gang.slots;
  for (std::size_t i = 0; i < slots.size() && i < row.gang->nodes.size(); ++i) {
    const std::string& node = row.gang->nodes[i];
    std::string text = fmt::format("CPU_IDs={} Mem={} GRES={}", index_list(slots[i].cpu_ids, ""),
                                   slots[i].memory_mib, slot_gres(row, view, slots[i], node));
    auto found = std::find_if(groups.begin(), groups.end(),
                              [&](const auto& group) { return group.first == text; });
    if (found == groups.end())
      groups.push_back({text, {node}});
    else
      found->second.push_back(node);
  }
  for (const auto& [text, nodes] : groups)
    lines.push_back(fmt::format("  Nodes={} {}", fold_nodes(nodes), text));
}

void add_optional_lines(const JobRow& row, std::vector<std::string>& lines) {
  const RoleAsk& ask = row.ask();
  if (ask.cpus_per_gpu != 0)
    lines.push_back(fmt::format("CpusPerTres=gres:gpu:{}", ask.cpus_per_gpu));
  if (ask.memory_mib_per_gpu != 0)
    lines.push_back(fmt::format("MemPerTres=gres:gpu:{}", ask.memory_mib_per_gpu));
  for (auto [name, scope] :
       {std::pair{"TresPerJob=", TresScope::kJob}, std::pair{"TresPerNode=", TresScope::kNode},
        std::pair{"TresPerTask=", TresScope::kTask}}) {
    std::string text = tres_ask(ask, scope);
    if (!text.empty()) lines.push_back(name + text);
  }
  const WorkloadExtras& extras = row.workload().extras;
  if (!extras.mail_user.empty() || !extras.mail_type.empty())
    lines.push_back(fmt::format("MailUser={} MailType={}", or_null(extras.mail_user),
                                extras.mail_type.empty() ? "NONE" : extras.mail_type));
}

void add_time_lines(const JobRow& row, const StateView& view, const TimeText& times,
                    std::vector<std::string>& lines) {
  const Workload& w = row.workload();
  Instant now = times.now();
  lines.push_back(fmt::format("RunTime={} TimeLimit={} TimeMin={}",
                              format_duration(time_used(row, now)),
                              duration_or(row.view->time_limit, "UNLIMITED"),
                              w.time_min ? format_duration(*w.time_min) : "N/A"));
  Instant eligible = row.on_hold() ? Instant{} : row.view->eligible;
  if (row.is_pending() && row.gang && row.gang->gang.eligible > eligible && !row.on_hold())
    eligible = row.gang->gang.eligible;
  lines.push_back(fmt::format("SubmitTime={} EligibleTime={}", times.text(w.submitted, "Unknown"),
                              times.text(eligible, "Unknown")));
  lines.push_back("AccrueTime=" + times.text(eligible, "Unknown"));
  lines.push_back(fmt::format("StartTime={} EndTime={} Deadline=N/A",
                              times.text(start_time(row), "Unknown"),
                              times.text(end_time(row), "Unknown")));
  lines.push_back(
      fmt::format("SuspendTime=None SecsPreSuspend=0 LastSchedEval={} Scheduler=Main",
                  times.text(row.is_pending() ? view.now : start_time(row), "Unknown")));
}

std::vector<std::string> job_lines(const JobRow& row, const StateView& view, const ShowOptions& o,
                                   const std::vector<std::uint32_t>& arrays) {
  const Workload& w = row.workload();
  JobAmounts amounts = job_amounts(row);
  std::vector<std::string> lines{id_line(row)};
  if (row.is_het()) lines.push_back(fmt::format("HetJobIdSet={}", w.id.value()));
  lines.push_back(
      fmt::format("UserId={}({}) GroupId={}({}) MCS_label=N/A", w.user, w.uid, w.group, w.gid));
  lines.push_back(fmt::format("Priority={} Nice={} Account={} QOS={}", shown_priority(row), w.nice,
                              or_null(w.account), or_null(w.qos)));
  std::string why(job_reason(row));
  std::replace(why.begin(), why.end(), ' ', '_');
  lines.push_back(fmt::format("JobState={} Reason={} Dependency={}", state_word(row.state), why,
                              or_null(dependency_text(row, arrays))));
  const Gang none{};
  const Gang& gang = row.gang ? row.gang->gang : none;
  lines.push_back(fmt::format("Requeue={:d} Restarts={} BatchFlag={:d} Reboot=0 ExitCode={}",
                              w.requeue, gang.restarts, w.is_batch(), exit_text(gang.exit)));
  if (o.details) lines.push_back("DerivedExitCode=" + exit_text(gang.derived_exit));
  add_time_lines(row, view, o.times, lines);
  bool placed = row.gang && !row.is_pending() && !gang.partition.empty();
  lines.push_back(fmt::format("Partition={} AllocNode:Sid={}:{}",
                              placed ? gang.partition : row.view->partition,
                              or_null(w.extras->submit_host), w.extras->submit_pid));
  lines.push_back(fmt::format("ReqNodeList={} ExcNodeList={}",
                              or_null(fold_nodes(row.ask().nodes_in)),
                              or_null(fold_nodes(row.ask().nodes_out))));
  lines.push_back("NodeList=" + node_list(row));
  if (std::string host = batch_host(row); !host.empty()) lines.push_back("BatchHost=" + host);
  const Wait* wait = row.wait();
  if (wait && !wait->planned_nodes.empty() && !row.on_hold())
    lines.push_back("SchedNodeList=" + fold_nodes(wait->planned_nodes));
  lines.push_back(fmt::format("NumNodes={} NumCPUs={} NumTasks={} CPUs/Task={} ReqB:S:C:T=0:0:*:*",
                              node_count(row, amounts), amounts.cpus, amounts.tasks,
                              row.ask().cpus_per_task));
  lines.push_back("TRES=" + tres_text(row, view));
  lines.push_back(
      fmt::format("Socks/Node=* NtasksPerN:B:S:C={}:0:*:* CoreSpec=*", row.ask().tasks_per_node));
  if (o.details) add_slot_lines(row, view, lines);
  lines.push_back(memory_line(row, view));
  lines.push_back(fmt::format("Features={} DelayBoot=00:00:00", or_null(row.ask().features)));
  lines.push_back(fmt::format("OverSubscribe={} Contiguous={:d} Licenses={} Network=(null)",
                              row.ask().exclusive ? "NO" : "OK", row.ask().contiguous,
                              or_null(w.extras->licenses)));
  lines.push_back("Command=" + or_null(w.launch.command));
  lines.push_back("WorkDir=" + w.launch.work_dir);
  if (!w.extras->reservation.empty()) lines.push_back("Reservation=" + w.extras->reservation);
  if (!w.extras->admin_comment.empty())
    lines.push_back("AdminComment=" + w.extras->admin_comment + " ");
  if (!w.extras->comment.empty()) lines.push_back("Comment=" + w.extras->comment + " ");
  if (w.is_batch())
    for (auto [name, kind] :
         {std::pair{"StdErr=", OutputKind::kStderr}, std::pair{"StdIn=", OutputKind::kStdin},
          std::pair{"StdOut=", OutputKind::kStdout}})
      lines.push_back(name + output_path(row, kind, Patterns::kExpanded));
  lines.emplace_back("Power=");
  add_optional_lines(row, lines);
  lines.emplace_back();
  return lines;
}

Output invalid_job(std::string_view what) {
  Output out;
  out.errors = fmt::format("{} error: Invalid job id specified\n", what);
  out.exit_code = 1;
  return out;
}

std::string step_tres(const StepRow& row, const StateView& view) {
  std::uint64_t cpus = 0, memory = 0, gpus = 0;
  const std::vector<Slot>& slots = row.job.gang->gang.slots;
  std::string type = row.job.ask().gpu_type;
  for (const StepSlot& slot : row.step->slots) {
    cpus += slot.cpus;
    gpus += slot.gpus.size();
    if (slot.slot < slots.size()) memory += slots[slot.slot].memory_mib;
    for (const NodeView& n : view.nodes)
      if (type.empty() && !slot.gpus.empty() && slot.slot < row.job.gang->nodes.size() &&
          n.spec.name == row.job.gang->nodes[slot.slot] &&
          slot.gpus.front() < n.spec.devices.size())
        type = n.spec.devices[slot.gpus.front()].type;
  }
  std::string out = fmt::format("cpu={}", cpus);
  auto to = std::back_inserter(out);
  if (gpus != 0 && !type.empty()) fmt::format_to(to, ",gres/gpu:{}={}", type, gpus);
  if (gpus != 0) fmt::format_to(to, ",gres/gpu={}", gpus);
  if (memory != 0) fmt::format_to(to, ",mem={}", memory_text(memory));
  fmt::format_to(to, ",node={}", row.step->slots.size());
  return out;
}

std::vector<std::string> step_lines(const StepRow& row, const StateView& view,
                                    const TimeText& times) {
  bool numbered = row.step->id >= 0;
  std::uint64_t cpus = 0, gpus = 0;
  for (const StepSlot& slot : row.step->slots) {
    if (numbered) cpus += slot.cpus;
    gpus = std::max<std::uint64_t>(gpus, slot.gpus.size());
  }
  std::string_view word = step_name_word(row.step->id);
  std::vector<std::string> lines;
  lines.push_back(fmt::format("StepId={} UserId={} StartTime={} TimeLimit=UNLIMITED", step_id(row),
                              row.job.workload().uid, times.text(row.step->started, "Unknown")));
  lines.push_back(fmt::format("State=RUNNING Partition={} NodeList={}",
                              row.job.gang->gang.partition, fold_nodes(step_nodes(row))));
  lines.push_back(fmt::format("Nodes={} CPUs={} Tasks={} Name={} Network=(null)",
                              row.step->slots.size(), cpus, step_tasks(*row.step),
                              word.empty() ? std::string_view(row.step->name) : word));
  lines.push_back("TRES=" + (numbered ? step_tres(row, view) : std::string(kNull)));
  lines.emplace_back("ResvPorts=(null)");
  lines.emplace_back(numbered ? "CPUFreqReq=Default Dist=Block" : "CPUFreqReq=Default");
  lines.emplace_back("SrunHost:Pid=(null):0");
  if (numbered && gpus != 0) {
    const std::string& type = row.job.ask().gpu_type;
    lines.push_back(
        fmt::format("TresPerNode=gres:gpu{}{}:{}", type.empty() ? "" : ":", type, gpus));
  }
  return lines;
}

}  // namespace

Output show_jobs(const StateView& view, const std::vector<JobSelector>& jobs,
                 const ShowOptions& o) {
  JobFilter filter;
  filter.all_states = true;
  filter.jobs = jobs;
  std::vector<JobRow> rows = job_rows(view, ArrayRows::kFolded);
  std::erase_if(rows, [&](const JobRow& row) { return !passes(row, filter); });
  if (rows.empty() && !jobs.empty()) return invalid_job("slurm_load_jobs");
  Output out;
  if (rows.empty()) out.text = "No jobs in the system\n";
  std::vector<std::uint32_t> arrays = array_ids(view);
  for (const JobRow& row : rows)
    append_record(out.text, job_lines(row, view, o, arrays), o.one_line);
  return out;
}

Output show_steps(const StateView& view, const std::vector<JobSelector>& jobs,
                  const ShowOptions& o) {
  std::vector<StepRow> rows = step_rows(view);
  std::erase_if(rows, [&](const StepRow& row) {
    if (jobs.empty()) return false;
    return std::none_of(jobs.begin(), jobs.end(), [&](const JobSelector& s) {
      JobFilter one;
      one.all_states = true;
      one.jobs.push_back(s);
      return passes(row.job, one) && (!s.step || *s.step == row.step->id);
    });
  });
  if (rows.empty() && !jobs.empty()) return invalid_job("slurm_get_job_steps");
  // Here, unlike in squeue, the batch step comes first.
  std::stable_sort(rows.begin(), rows.end(), [](const StepRow& a, const StepRow& b) {
    if (a.job.gang != b.job.gang) return false;
    return a.step->id < 0 && b.step->id >= 0;
  });
  Output out;
  for (const StepRow& row : rows)
    append_record(out.text, step_lines(row, view, o.times), o.one_line);
  return out;
}

}  // namespace tutti::slurm
