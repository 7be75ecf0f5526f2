// scontrol show of nodes, partitions, configuration, host lists.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/duration_text.h"
#include "base/hostlist.h"
#include "base/text.h"
#include "frontend/slurm/scontrol_show.h"

namespace tutti::slurm {
namespace {

void append_record(std::string& out, const std::vector<std::string>& lines, bool one_line) {
  out += join(lines, one_line ? " " : "\n   ");
  out += one_line ? "\n" : "\n\n";
}

struct System {
  std::string os, architecture;
};
// Agents report "Linux 6.1.0 #1 SMP x86_64": the last word is the machine's.
System split_kernel(std::string_view kernel) {
  constexpr std::array<std::string_view, 4> kMachines{"x86_64", "aarch64", "ppc64le", "riscv64"};
  std::size_t blank = kernel.rfind(' ');
  if (blank != std::string_view::npos)
    for (std::string_view machine : kMachines)
      if (kernel.substr(blank + 1) == machine)
        return {std::string(kernel.substr(0, blank)), std::string(machine)};
  return {std::string(kernel), "(null)"};
}

std::string partitions_of(const StateView& view, const std::string& node) {
  std::vector<std::string_view> names;
  for (const PartitionSpec& p : view.partitions)
    if (std::find(p.nodes.begin(), p.nodes.end(), node) != p.nodes.end()) names.push_back(p.name);
  return join(names, ",");
}

std::vector<std::string> node_lines(const NodeView& node, const StateView& view,
                                    const ShowOptions& o) {
  const NodeSpec& spec = node.spec;
  const NodeState& state = node.state;
  System system = split_kernel(state.kernel);
  std::string features = spec.features.empty() ? "(null)" : join(spec.features, ",");
  std::vector<std::string> lines;
  lines.push_back(fmt::format("NodeName={} Arch={} CoresPerSocket={} ", spec.name,
                              system.architecture, spec.cores_per_socket));
  lines.push_back(fmt::format("CPUAlloc={} CPUEfctv={} CPUTot={} CPULoad=N/A", node.cpus_allocated,
                              spec.cpus, spec.cpus));
  lines.push_back("AvailableFeatures=" + features);
  lines.push_back("ActiveFeatures=" + features);
  lines.push_back("Gres=" + node_gres(spec));
  lines.push_back(fmt::format("NodeAddr={} NodeHostName={} Port=0 Version={}",
                              spec.address.empty() ? spec.name : spec.address, spec.name,
                              state.agent_version));
  if (!system.os.empty()) lines.push_back("OS=" + system.os);
  lines.push_back(fmt::format("RealMemory={} AllocMem={} FreeMem=N/A Sockets={} Boards=1",
                              spec.memory_mib, node.memory_mib_allocated, spec.sockets));
  lines.push_back(
      fmt::format("State={} ThreadsPerCore={} TmpDisk=0 Weight={} Owner=N/A MCS_label=N/A",
                  node_state_complete(node_state(node)), spec.threads_per_core, spec.weight));
  std::string partitions = partitions_of(view, spec.name);
  if (!partitions.empty()) lines.push_back("Partitions=" + partitions + " ");
  lines.push_back(fmt::format("BootTime={} SlurmdStartTime={}", o.times.text(state.booted, "None"),
                              o.times.text(state.agent_started, "None")));
  lines.push_back("LastBusyTime=" + o.times.text(state.changed, "Unknown"));
  lines.push_back("CfgTRES=" + node_tres(spec));
  lines.push_back("AllocTRES=" + node_tres_used(node));
  lines.emplace_back("CapWatts=n/a");
  lines.emplace_back("CurrentWatts=0 AveWatts=0");
  lines.emplace_back("ExtSensorsJoules=n/s ExtSensorsWatts=0 ExtSensorsTemp=n/s");
  if (!state.reason.empty())
    lines.push_back(fmt::format("Reason={} [{}@{}]", state.reason,
                                user_name(o.users, state.reason_uid),
                                o.times.text(state.reason_at, "Unknown")));
  return lines;
}

std::string limit_text(const std::optional<Duration>& limit, std::string_view none) {
  return limit ? format_duration(*limit) : std::string(none);
}
std::string list_or_all(const std::vector<std::string>& list) {
  return list.empty() ? "ALL" : join(list, ",");
}
std::string_view yes_no(bool value) { return value ? "YES" : "NO"; }
std::string_view state_text(PartitionState state) {
  switch (state) {
    case PartitionState::kUp:
      return "UP";
    case PartitionState::kDown:
      return "DOWN";
    case PartitionState::kDrain:
      return "DRAIN";
    case PartitionState::kInactive:
      return "INACTIVE";
  }
  return "UP";
}

// Sums over the nodes of a partition, in Slurm's TRES form.
struct PartitionTotals {
  std::uint64_t cpus = 0;
  std::string tres;
};
PartitionTotals totals_of(const PartitionSpec& p, const StateView& view) {
  PartitionTotals out;
  std::uint64_t memory = 0, nodes = 0, gpus = 0;
  std::map<std::string, std::uint64_t> by_type;
  for (const NodeView& node : view.nodes) {
    if (std::find(p.nodes.begin(), p.nodes.end(), node.spec.name) == p.nodes.end()) continue;
    ++nodes;
    out.cpus += node.spec.cpus;
    memory += node.spec.memory_mib;
    for (const DeviceSpec& d : node.spec.devices) {
      if (d.kind != "gpu") continue;
      ++gpus;
      if (!d.type.empty()) ++by_type[d.type];
    }
  }
  out.tres = fmt::format("cpu={},mem={},node={},billing={}", out.cpus, memory_text(memory), nodes,
                         out.cpus);
  if (gpus != 0) out.tres += fmt::format(",gres/gpu={}", gpus);
  for (const auto& [type, count] : by_type) out.tres += fmt::format(",gres/gpu:{}={}", type, count);
  return out;
}

std::vector<std::string> partition_lines(const PartitionSpec& p, const StateView& view) {
  PartitionTotals totals = totals_of(p, view);
  std::vector<std::string> lines{"PartitionName=" + p.name};
  std::string accounts = p.deny_accounts.empty() ? "AllowAccounts=" + list_or_all(p.allow_accounts)
                                                 : "DenyAccounts=" + join(p.deny_accounts, ",");
  lines.push_back(
      fmt::format("AllowGroups={} {} AllowQos=ALL", list_or_all(p.allow_groups), accounts));
  lines.push_back(fmt::format("AllocNodes=ALL Default={} QoS=N/A", yes_no(p.is_default)));
  lines.push_back(
      fmt::format("DefaultTime={} DisableRootJobs={} ExclusiveUser=NO GraceTime=0 Hidden={}",
                  limit_text(p.default_time, "NONE"), yes_no(p.no_root_jobs), yes_no(p.hidden)));
  lines.push_back(fmt::format(
      "MaxNodes={} MaxTime={} MinNodes={} LLN=NO MaxCPUsPerNode=UNLIMITED",
      p.max_nodes == kNoLimit ? std::string("UNLIMITED") : fmt::format("{}", p.max_nodes),
      limit_text(p.max_time, "UNLIMITED"), p.min_nodes));
  lines.push_back("Nodes=" + (p.nodes.empty() ? std::string("(null)") : fold_nodes(p.nodes)));
  lines.push_back(
      fmt::format("PriorityJobFactor={} PriorityTier={} RootOnly={} ReqResv=NO OverSubscribe={}",
                  p.priority_job_factor, p.priority_tier, yes_no(p.root_only),
                  p.exclusive ? "EXCLUSIVE" : "NO"));
  lines.emplace_back("OverTimeLimit=NONE PreemptMode=OFF");
  lines.push_back(fmt::format("State={} TotalCPUs={} TotalNodes={} SelectTypeParameters=NONE",
                              state_text(p.state), totals.cpus, p.nodes.size()));
  lines.emplace_back("JobDefaults=(null)");
  std::string memory = p.default_memory_mib_per_cpu != 0
                           ? fmt::format("DefMemPerCPU={}", p.default_memory_mib_per_cpu)
                       : p.default_memory_mib_per_node != 0
                           ? fmt::format("DefMemPerNode={}", p.default_memory_mib_per_node)
                           : std::string("DefMemPerNode=UNLIMITED");
  lines.push_back(fmt::format("{} MaxMemPerNode={}", memory,
                              p.max_memory_mib_per_node == 0
                                  ? std::string("UNLIMITED")
                                  : fmt::format("{}", p.max_memory_mib_per_node)));
  lines.push_back("TRES=" + totals.tres);
  return lines;
}

// The records of `names`, or all; what is not there is said on stdout, as Slurm does.
template <class Range, class Name, class Lines>
Output show_named(const Range& range, const std::vector<std::string>& names, std::string_view kind,
                  bool one_line, Name name_of, Lines lines_of) {
  Output out;
  if (names.empty())
    for (const auto& item : range) append_record(out.text, lines_of(item), one_line);
  std::vector<std::string> wanted;
  for (const std::string& name : names) {
    auto list = expand_hostlist(name);  // node[01-04],node07
    if (list)
      wanted.insert(wanted.end(), list->begin(), list->end());
    else
      wanted.push_back(name);
  }
  for (const std::string& name : wanted) {
    auto found = std::find_if(range.begin(), range.end(),
                              [&](const auto& item) { return name_of(item) == name; });
    if (found != range.end()) {
      append_record(out.text, lines_of(*found), one_line);
    } else {
      out.text += fmt::format("{} {} not found\n", kind, name);
      out.exit_code = 1;
    }
  }
  return out;
}

std::string seconds_text(Duration d) { return fmt::format("{} sec", d.whole_seconds()); }

std::map<std::string, std::string> settings_in_force(const StateView& view, const TimeText& times) {
  const ClusterSpec spec = view.spec.value_or(ClusterSpec{});
  std::map<std::string, std::string> out = spec.as_given;
  auto number = [](std::uint64_t n) { return fmt::format("{}", n); };
  out["BOOT_TIME"] = times.text(view.controller_started, "Unknown");
  out["ClusterName"] = view.cluster;
  out["JobRequeue"] = "1";
  out["KillWait"] = seconds_text(spec.kill_wait);
  out["MaxArraySize"] = number(std::uint64_t{spec.max_array_index} + 1);
  out["MaxJobCount"] = number(spec.max_jobs);
  out["MinJobAge"] = seconds_text(spec.min_job_age);
  out["PriorityType"] = "priority/multifactor";
  out["PriorityMaxAge"] = format_duration(spec.priority.max_age);
  out["PriorityDecayHalfLife"] = format_duration(spec.priority.half_life);
  out["PriorityWeightAge"] = number(spec.priority.age);
  out["PriorityWeightFairShare"] = number(spec.priority.fair_share);
  out["PriorityWeightJobSize"] = number(spec.priority.job_size);
  out["PriorityWeightPartition"] = number(spec.priority.partition);
  out["PriorityWeightQOS"] = number(spec.priority.qos);
  out["SchedulerType"] = "sched/backfill";
  out["SelectType"] = "select/cons_tres";
  out["SlurmctldHost[0]"] = view.controller_host;
  out["SlurmdTimeout"] = seconds_text(spec.node_grace);
  out["SLURM_VERSION"] = view.version;
  if (spec.default_memory_mib_per_cpu != 0)
    out["DefMemPerCPU"] = number(spec.default_memory_mib_per_cpu);
  else if (spec.default_memory_mib_per_node != 0)
    out["DefMemPerNode"] = number(spec.default_memory_mib_per_node);
  return out;
}

Output host_error(const Error& error) {
  Output out;
  out.errors = "scontrol: error: Invalid hostlist: " + error.message + "\n";
  out.exit_code = 1;
  return out;
}

Output folded(std::string_view list, FoldOrder order) {
  auto names = expand_hostlist(list);
  if (!names) return host_error(names.error());
  Output out;
  out.text = fold_hostlist(*names, order) + "\n";
  return out;
}

}  // namespace

Output show_nodes(const StateView& view, const std::vector<std::string>& names,
                  const ShowOptions& o) {
  return show_named(
      view.nodes, names, "Node", o.one_line,
      [](const NodeView& n) -> const std::string& { return n.spec.name; },
      [&](const NodeView& n) { return node_lines(n, view, o); });
}

Output show_partitions(const StateView& view, const std::vector<std::string>& names,
                       const ShowOptions& o) {
  return show_named(
      view.partitions, names, "Partition", o.one_line,
      [](const PartitionSpec& p) -> const std::string& { return p.name; },
      [&](const PartitionSpec& p) { return partition_lines(p, view); });
}

Output show_config(const StateView& view, const ShowOptions& o) {
  Output out;
  out.text = "Configuration data as of " + o.times.text(o.times.now()) + "\n";
  std::map<std::string, std::string> settings = settings_in_force(view, o.times);
  std::vector<std::pair<std::string, std::string>> sorted(settings.begin(), settings.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return lower(a.first) < lower(b.first); });
  for (const auto& [key, value] : sorted)
    out.text += fmt::format("{:<23} = {}\n", key, value.empty() ? "(null)" : value);
  out.text += "\n" + show_ping(view.controller_host, Reachable::kUp).text;
  return out;
}

Output show_licenses() {
  Output out;
  out.text = "No licenses configured in Slurm.\n";
  return out;
}

Output show_ping(std::string_view host, Reachable reachable) {
  Output out;
  bool up = reachable == Reachable::kUp;
  out.text = fmt::format("Slurmctld(primary) at {} is {}\n", host, up ? "UP" : "DOWN");
  out.exit_code = up ? 0 : 1;
  return out;
}

Output show_hostnames(std::string_view list) {
  auto names = expand_hostlist(list);
  if (!names) return host_error(names.error());
  Output out;
  for (const std::string& name : *names) out.text += name + "\n";
  return out;
}
Output show_hostlist(std::string_view list) { return folded(list, FoldOrder::kAsGiven); }
Output show_hostlistsorted(std::string_view list) { return folded(list, FoldOrder::kSorted); }

}  // namespace tutti::slurm
