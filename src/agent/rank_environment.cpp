#include "agent/rank_environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/hostlist.h"
#include "base/text.h"

namespace tutti::agent {
namespace {

using Variables = std::vector<std::pair<std::string_view, std::string>>;

template <class Number>
std::string comma_list(const std::vector<Number>& numbers) {
  return fmt::format("{}", fmt::join(numbers, ","));
}

void add_job(Variables& out, const JobFacts& job, const std::string& node) {
  const std::string id = fmt::to_string(job.gang.value());
  const std::string hosts = fold_hostlist(job.nodes);
  out.emplace_back("SLURM_CLUSTER_NAME", job.cluster);
  out.emplace_back("SLURM_JOB_ID", id);
  out.emplace_back("SLURM_JOBID", id);
  out.emplace_back("SLURM_JOB_NAME", job.name);
  out.emplace_back("SLURM_JOB_USER", job.user);
  out.emplace_back("SLURM_JOB_UID", fmt::to_string(job.uid));
  out.emplace_back("SLURM_JOB_GID", fmt::to_string(job.gid));
  if (!job.account.empty()) out.emplace_back("SLURM_JOB_ACCOUNT", job.account);
  if (!job.qos.empty()) out.emplace_back("SLURM_JOB_QOS", job.qos);
  out.emplace_back("SLURM_JOB_PARTITION", job.partition);
  out.emplace_back("SLURM_JOB_NUM_NODES", fmt::to_string(job.nodes.size()));
  out.emplace_back("SLURM_JOB_NODELIST", hosts);
  out.emplace_back("SLURM_NODELIST", hosts);
  out.emplace_back("SLURM_JOB_CPUS_PER_NODE", fold_counts(job.cpus));
  out.emplace_back("SLURM_SUBMIT_DIR", job.submit_dir);
  out.emplace_back("SLURM_SUBMIT_HOST", job.submit_host);
  out.emplace_back("SLURMD_NODENAME", node);
  const auto at = static_cast<std::size_t>(std::find(job.nodes.begin(), job.nodes.end(), node) -
                                           job.nodes.begin());
  const bool placed = at < job.topology.size();
  out.emplace_back("SLURM_TOPOLOGY_ADDR", placed ? job.topology[at] : node);
  out.emplace_back("SLURM_TOPOLOGY_ADDR_PATTERN", placed ? job.topology_pattern : "node");
  out.emplace_back("SLURM_PRIO_PROCESS", "0");
  if (job.restarts > 0) out.emplace_back("SLURM_RESTART_COUNT", fmt::to_string(job.restarts));
  if (job.evictions > 0) {
    out.emplace_back("TUTTI_EVICTIONS", fmt::to_string(job.evictions));
    out.emplace_back("TUTTI_EVICTED_FOR", job.evicted_for);
  }
  if (!job.reservation.empty()) out.emplace_back("SLURM_JOB_RESERVATION", job.reservation);
  if (job.started.is_set()) {
    out.emplace_back("SLURM_JOB_START_TIME", fmt::to_string(job.started.whole_seconds()));
  }
  if (job.limit_end.is_set() && job.limit_end < Instant::never()) {
    const std::string end = fmt::to_string(job.limit_end.whole_seconds());
    out.emplace_back("SLURM_JOB_END_TIME", end);
    out.emplace_back("TUTTI_DEADLINE", end);
  }
  if (job.array_index) {
    out.emplace_back("SLURM_ARRAY_JOB_ID", fmt::to_string(job.workload.value()));
    out.emplace_back("SLURM_ARRAY_TASK_ID", fmt::to_string(*job.array_index));
    out.emplace_back("SLURM_ARRAY_TASK_COUNT", fmt::to_string(job.array_count.value_or(1)));
    out.emplace_back("SLURM_ARRAY_TASK_MIN", fmt::to_string(job.array_min.value_or(0)));
    out.emplace_back("SLURM_ARRAY_TASK_MAX", fmt::to_string(job.array_max.value_or(0)));
    out.emplace_back("SLURM_ARRAY_TASK_STEP", fmt::to_string(job.array_step.value_or(1)));
  }
  out.emplace_back("TUTTI_JOB_ID", id);
  out.emplace_back("TUTTI_WORKLOAD_ID", fmt::to_string(job.workload.value()));
}

// What differs between a batch script, which stands for the whole job, and a step.
void add_batch(Variables& out, const JobFacts& job) {
  const std::string tasks = fmt::to_string(job.total_tasks);
  out.emplace_back("ENVIRONMENT", "BATCH");
  out.emplace_back("SLURM_NODE_ALIASES", "(null)");
  out.emplace_back("SLURM_NNODES", fmt::to_string(job.nodes.size()));
  out.emplace_back("SLURM_NTASKS", tasks);
  out.emplace_back("SLURM_NPROCS", tasks);
  out.emplace_back("SLURM_TASKS_PER_NODE", fold_counts(job.tasks));
  if (job.tasks_per_node > 0) {
    out.emplace_back("SLURM_NTASKS_PER_NODE", fmt::to_string(job.tasks_per_node));
  }
  if (job.cpus_per_task_given) {
    out.emplace_back("SLURM_CPUS_PER_TASK", fmt::to_string(job.cpus_per_task));
  }
  if (job.memory_mib_per_cpu > 0) {
    out.emplace_back("SLURM_MEM_PER_CPU", fmt::to_string(job.memory_mib_per_cpu));
  } else if (job.memory_mib_per_node > 0) {
    out.emplace_back("SLURM_MEM_PER_NODE", fmt::to_string(job.memory_mib_per_node));
  }
  if (job.gpus_per_task > 0) {
    out.emplace_back("SLURM_GPUS_PER_TASK", fmt::to_string(job.gpus_per_task));
  }
  for (const auto* name : {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_GTIDS"}) {
    out.emplace_back(name, "0");
  }
  out.emplace_back("TUTTI_STEP", "batch");
}

void add_step(Variables& out, const StepOrder& step, std::uint32_t local) {
  const std::string id = step_word(step.step);
  const std::string nodes = fmt::to_string(step.nodes.size());
  const std::string tasks = fmt::to_string(step.total_tasks);
  const std::string per_node = fold_counts(step.tasks);
  const std::string rank = fmt::to_string(local < step.ranks.size() ? step.ranks[local] : local);
  out.emplace_back("SLURM_STEP_ID", id);
  out.emplace_back("SLURM_STEPID", id);
  out.emplace_back("SLURM_STEP_NODELIST", fold_hostlist(step.nodes));
  out.emplace_back("SLURM_STEP_NUM_NODES", nodes);
  out.emplace_back("SLURM_STEP_NUM_TASKS", tasks);
  out.emplace_back("SLURM_STEP_TASKS_PER_NODE", per_node);
  out.emplace_back("SLURM_NNODES", nodes);
  out.emplace_back("SLURM_NTASKS", tasks);
  out.emplace_back("SLURM_NPROCS", tasks);
  out.emplace_back("SLURM_TASKS_PER_NODE", per_node);
  if (step.tasks_per_node > 0) {
    out.emplace_back("SLURM_NTASKS_PER_NODE", fmt::to_string(step.tasks_per_node));
  }
  if (step.cpus_per_task_given) {
    out.emplace_back("SLURM_CPUS_PER_TASK", fmt::to_string(step.cpus_per_task));
  }
  if (step.gpus_per_task > 0) {
    out.emplace_back("SLURM_GPUS_PER_TASK", fmt::to_string(step.gpus_per_task));
  }
  out.emplace_back("SLURM_NODEID", fmt::to_string(step.node_id));
  out.emplace_back("SLURM_PROCID", rank);
  out.emplace_back("SLURM_LOCALID", fmt::to_string(local));
  out.emplace_back("SLURM_GTIDS", comma_list(step.ranks));
  out.emplace_back("SLURM_UMASK", fmt::format("{:04o}", step.umask));
  if (!step.launcher_host.empty()) {
    out.emplace_back("SLURM_SRUN_COMM_HOST", step.launcher_host);
    out.emplace_back("SLURM_LAUNCH_NODE_IPADDR", step.launcher_host);
  }
  out.emplace_back("TUTTI_STEP", id);
  out.emplace_back("TUTTI_RANK", rank);
  out.emplace_back("TUTTI_WORLD_SIZE", tasks);
}

// The devices that the rank may see, by the node's indices.
std::vector<std::uint16_t> visible_gpus(const SlotOrder& slot, const StepOrder& step,
                                        std::uint32_t local) {
  if (step.step == kBatchStep) return step.gpus.empty() ? slot.gpus : step.gpus;
  if (step.gpus_per_task == 0) return step.gpus;
  const std::size_t first =
      std::min<std::size_t>(std::size_t{local} * step.gpus_per_task, step.gpus.size());
  const std::size_t last = std::min<std::size_t>(first + step.gpus_per_task, step.gpus.size());
  return {step.gpus.begin() + static_cast<std::ptrdiff_t>(first),
          step.gpus.begin() + static_cast<std::ptrdiff_t>(last)};
}

// Parts of devices: a share shows its device and, to MPS, what it may use of it; an instance is named
// by its device, profile and first memory slice.
void add_parts(Variables& out, const SlotOrder& slot) {
  std::vector<std::string> names, limits;
  std::uint32_t permille = 0;
  for (const DevicePart& part : slot.parts) {
    if (!part.profile.empty()) {
      names.push_back(fmt::format("MIG-{}-{}-{}", part.device, part.profile, part.start));
      continue;
    }
    // MPS counts the devices that are visible.
    if (part.memory_mib > 0) limits.push_back(fmt::format("{}={}M", names.size(), part.memory_mib));
    names.push_back(fmt::to_string(part.device));
    permille = std::max(permille, part.share_permille);
  }
  const std::string list = fmt::format("{}", fmt::join(names, ","));
  out.emplace_back("SLURM_GPUS_ON_NODE", fmt::to_string(names.size()));
  out.emplace_back("CUDA_VISIBLE_DEVICES", list);
  out.emplace_back("NVIDIA_VISIBLE_DEVICES", list);
  if (permille > 0)
    out.emplace_back("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
                     fmt::to_string(std::max<std::uint32_t>(permille / 10, 1)));
  if (!limits.empty())
    out.emplace_back("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", fmt::format("{}", fmt::join(limits, ",")));
}

void add_gpus(Variables& out, const SlotOrder& slot, const StepOrder& step, std::uint32_t local) {
  const bool is_batch = step.step == kBatchStep;
  const std::string job_gpus = comma_list(slot.gpus);
  // Slurm sets it for the script; steps of the script have it by inheritance, with the indices of
  // the script's node. Here a step has those of its own node.
  const bool inherited = find_variable(step.environment, "SLURM_JOB_GPUS").data() != nullptr;
  if (!slot.gpus.empty() && (is_batch || inherited)) out.emplace_back("SLURM_JOB_GPUS", job_gpus);
  if (!slot.parts.empty()) {
    add_parts(out, slot);
    return;
  }
  const auto gpus = visible_gpus(slot, step, local);
  if (gpus.empty()) return;
  const std::string list = comma_list(gpus);
  out.emplace_back("SLURM_GPUS_ON_NODE",
                   fmt::to_string(is_batch ? slot.gpus.size() : step.gpus.size()));
  if (!is_batch) out.emplace_back("SLURM_STEP_GPUS", list);
  for (const auto* name : {"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
                           "ZE_AFFINITY_MASK"}) {
    out.emplace_back(name, list);
  }
}

// A port of the job's own for its ranks to meet at. MASTER_PORT is the default of torch.distributed
// and stays as the user set it, unless it came along from the job this one was submitted in.
void add_rendezvous(Variables& out, const JobFacts& job, const StepOrder& step) {
  if (job.rendezvous_port == 0) return;
  const std::string port = fmt::to_string(job.rendezvous_port);
  const auto given = find_variable(step.environment, "MASTER_PORT");
  out.emplace_back("TUTTI_RENDEZVOUS_PORT", port);
  if (given.empty() || given == find_variable(step.environment, "TUTTI_RENDEZVOUS_PORT"))
    out.emplace_back("MASTER_PORT", port);
}

// Left over from a job that this one was submitted in; SLURM_CONF and the variables that stand for
// options (SLURM_EXPORT_ENV...) stay.
bool is_stale(std::string_view name) {
  static constexpr std::array<std::string_view, 11> kPrefixes{
      "SLURM_JOB_",     "SLURM_STEP_",     "SLURM_ARRAY_",   "SLURM_SRUN_COMM_",
      "SLURM_LAUNCH_",  "SLURM_TOPOLOGY_", "SLURM_HET_",     "SLURM_GPUS_ON_",
      "SLURM_MEM_PER_", "SLURM_CPU_BIND",  "SLURM_TRES_PER_"};
  static constexpr std::array<std::string_view, 25> kNames{
      "SLURM_JOBID",           "SLURM_STEPID",
      "SLURM_NNODES",          "SLURM_NODELIST",
      "SLURM_NODEID",          "SLURM_PROCID",
      "SLURM_LOCALID",         "SLURM_GTIDS",
      "SLURM_NTASKS",          "SLURM_NPROCS",
      "SLURM_NTASKS_PER_NODE", "SLURM_TASKS_PER_NODE",
      "SLURM_CPUS_PER_TASK",   "SLURM_CPUS_ON_NODE",
      "SLURM_GPUS_PER_TASK",   "SLURM_TASK_PID",
      "SLURM_RESTART_COUNT",   "SLURM_NODE_ALIASES",
      "SLURM_WORKING_CLUSTER", "SLURM_UMASK",
      "CUDA_VISIBLE_DEVICES",  "NVIDIA_VISIBLE_DEVICES",
      "ROCR_VISIBLE_DEVICES",  "ZE_AFFINITY_MASK",
      "NOTIFY_SOCKET"};
  if (name.starts_with("TUTTI_")) return name != "TUTTI_STATE";
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](auto prefix) { return name.starts_with(prefix); }) ||
         std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

// A step sees no device and no notify socket but its own, wherever it was launched from.
bool is_replaced_in_steps(std::string_view name) {
  return name == "SLURM_STEP_GPUS" || name == "CUDA_VISIBLE_DEVICES" ||
         name == "NVIDIA_VISIBLE_DEVICES" || name == "ROCR_VISIBLE_DEVICES" ||
         name == "ZE_AFFINITY_MASK" || name == "NOTIFY_SOCKET" || name == "ENVIRONMENT" ||
         name == "SLURM_GPUS_ON_NODE" || name == "SLURM_NODE_ALIASES";
}

}  // namespace

std::string_view find_variable(const std::vector<std::string>& environment, std::string_view name) {
  for (const auto& entry : environment) {
    std::string_view view(entry);
    if (view.size() > name.size() && view[name.size()] == '=' && view.starts_with(name)) {
      return view.substr(name.size() + 1);
    }
  }
  return {};
}

std::vector<std::string> rank_environment(const JobFacts& job, const SlotOrder& slot,
                                          const StepOrder& step, const RankIdentity& rank) {
  const bool is_batch = step.step == kBatchStep;
  Variables set;
  set.reserve(72);
  add_job(set, job, rank.node);
  if (is_batch) {
    add_batch(set, job);
  } else {
    add_step(set, step, rank.local);
  }
  const std::uint32_t cpus = slot.slot < job.cpus.size()
                                 ? job.cpus[slot.slot]
                                 : static_cast<std::uint32_t>(slot.cpu_ids.size());
  set.emplace_back("SLURM_CPUS_ON_NODE", fmt::to_string(cpus));
  add_gpus(set, slot, step, rank.local);
  set.emplace_back("SLURM_TASK_PID", fmt::to_string(rank.pid));
  set.emplace_back("TUTTI_NODE", rank.node);
  if (!rank.notice_file.empty()) set.emplace_back("TUTTI_NOTICE_FILE", rank.notice_file);
  if (!rank.notify_socket.empty()) set.emplace_back("NOTIFY_SOCKET", rank.notify_socket);

  add_rendezvous(set, job, step);

  std::vector<std::string_view> names;
  names.reserve(set.size());
  for (const auto& [name, value] : set) names.push_back(name);
  std::sort(names.begin(), names.end());
  std::vector<std::string> out;
  out.reserve(step.environment.size() + set.size());
  for (const auto& entry : step.environment) {
    const std::string_view name = std::string_view(entry).substr(0, entry.find('='));
    if (std::binary_search(names.begin(), names.end(), name)) continue;
    if (is_batch ? is_stale(name) : is_replaced_in_steps(name)) continue;
    out.push_back(entry);
  }
  for (const auto& [name, value] : set) out.push_back(fmt::format("{}={}", name, value));
  return out;
}

std::string step_word(StepId step) {
  switch (step) {
    case kBatchStep:
      return "batch";
    case kExternStep:
      return "extern";
    case kInteractiveStep:
      return "interactive";
    default:
      return fmt::to_string(step);
  }
}

std::optional<StepId> step_from_word(std::string_view word) {
  if (word == "batch") return kBatchStep;
  if (word == "extern") return kExternStep;
  if (word == "interactive") return kInteractiveStep;
  const auto number = parse_integer<StepId>(word);
  return number && *number >= 0 ? number : std::nullopt;
}

}  // namespace tutti::agent
