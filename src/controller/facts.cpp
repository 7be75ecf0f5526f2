#include "controller/facts.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

#include "base/index_set.h"
#include "model/reasons.h"

namespace tutti::controller {

std::vector<std::string> split_environment(const std::string& nul_separated) {
  std::vector<std::string> result;
  std::size_t at = 0;
  while (at < nul_separated.size()) {
    std::size_t end = nul_separated.find('\0', at);
    if (end == std::string::npos) end = nul_separated.size();
    if (end > at) result.push_back(nul_separated.substr(at, end - at));
    at = end + 1;
  }
  return result;
}

namespace {
void array_facts(JobFacts& facts, const Workload& workload, const Gang& gang) {
  if (!gang.array_index) return;
  facts.array_index = gang.array_index;
  auto set = parse_index_set(workload.array, kNoLimit - 1);
  if (!set || set->empty()) return;
  facts.array_count = static_cast<std::uint32_t>(set->count());
  facts.array_min = *set->first();
  facts.array_max = *set->last();
  facts.array_step = 1;
  if (set->count() > 1) {
    std::uint32_t second = *set->next(*set->first() + 1);
    facts.array_step = second - *set->first();
  }
}

// Source: sbatch(1), SLURM_TOPOLOGY_ADDR: the switches from the top level down, then the node, by
// dots. A domain of blocks is named in the same way.
void topology_facts(JobFacts& facts, const ClusterSpec& spec, const Gang& gang) {
  if (spec.topology_levels.empty()) return;
  for (const std::string& level : spec.topology_levels)
    facts.topology_pattern += level.starts_with("block") ? "block." : "switch.";
  facts.topology_pattern += "node";
  for (const Slot& slot : gang.slots) {
    const NodeSpec& node = spec.nodes[slot.node];
    std::string address;
    for (const std::string& level : spec.topology_levels) {
      auto label = node.labels.find(level);
      address += label == node.labels.end() ? "." : label->second + ".";
    }
    facts.topology.push_back(address + node.name);
  }
}
}  // namespace

JobFacts job_facts(const ClusterState& state, const WorkloadEntry& entry, const Gang& gang) {
  const Workload& w = entry.workload;
  const RoleAsk& role = w.roles[0];
  JobFacts facts;
  facts.gang = gang.id;
  facts.workload = w.id;
  facts.epoch = gang.epoch;
  facts.cluster = state.spec->name;
  facts.name = w.name;
  facts.user = w.user;
  facts.group = w.group;
  facts.account = w.account;
  facts.qos = w.qos;
  facts.partition = gang.partition;
  facts.uid = w.uid;
  facts.gid = w.gid;
  std::uint32_t total = 0;
  for (const Slot& slot : gang.slots) {
    const NodeSpec& node = state.spec->nodes[slot.node];
    facts.nodes.push_back(node.name);
    facts.host_addresses.push_back(node.address);
    facts.cpus.push_back(static_cast<std::uint32_t>(slot.cpu_ids.size()));
    facts.tasks.push_back(slot.tasks);
    facts.gpus.push_back(static_cast<std::uint32_t>(slot.gpus.size()));
    total += slot.tasks;
  }
  facts.total_tasks = total;
  facts.tasks_per_node = role.tasks_per_node;
  facts.cpus_per_task = role.cpus_per_task;
  facts.cpus_per_task_given = w.cpus_per_task_given;
  facts.gpus_per_node = role.gpus_per_node;
  facts.gpus_per_task = role.gpus_per_task;
  facts.memory_mib_per_node = role.memory_mib_per_node;
  facts.memory_mib_per_cpu = role.memory_mib_per_cpu ? role.memory_mib_per_cpu : state.spec->default_memory_mib_per_cpu;
  if (facts.memory_mib_per_node) facts.memory_mib_per_cpu = 0;
  array_facts(facts, w, gang);
  facts.restarts = gang.restarts;
  facts.evictions = gang.evictions;
  facts.evicted_for = gang.evicted_for;
  facts.submit_dir = w.launch.work_dir;
  facts.submit_host = w.extras->submit_host;
  facts.reservation = w.extras->reservation;
  facts.started = gang.started.is_set() ? gang.started : gang.allocated;
  facts.limit_end = gang.limit_end;
  facts.rendezvous_port = gang.rendezvous_port;
  topology_facts(facts, *state.spec, gang);
  return facts;
}

SlotOrder slot_order(const Gang& gang, std::uint32_t slot) {
  const Slot& s = gang.slots[slot];
  return {slot, s.cpu_ids, s.memory_mib, s.gpus, s.parts};
}

StepOrder batch_order(const ClusterState& state, const WorkloadEntry& entry, const Gang& gang,
                      std::string script, const std::string& environment) {
  const Workload& w = entry.workload;
  StepOrder order;
  order.step = kBatchStep;
  order.name = "batch";
  order.nodes = {state.spec->nodes[gang.slots[0].node].name};
  order.tasks = {1};
  order.ranks = {0};
  order.gpus = gang.slots[0].gpus;
  order.argv = w.launch.argv;
  order.script = std::move(script);
  order.environment = split_environment(environment);
  order.work_dir = w.launch.work_dir;
  order.in = {StreamKind::kFile, w.launch.stdin_path.empty() ? "/dev/null" : w.launch.stdin_path, {}};
  std::string standard = gang.array_index ? "slurm-%A_%a.out" : "slurm-%j.out";
  order.out = {StreamKind::kFile, w.launch.stdout_path.empty() ? standard : w.launch.stdout_path, {}};
  if (!w.launch.stderr_path.empty()) order.err = {StreamKind::kFile, w.launch.stderr_path, {}};
  order.append = w.launch.append_output;
  order.umask = w.launch.umask;
  order.limits = w.launch.limits;
  return order;
}

Result<std::uint64_t> request_key(const std::string& text) {
  if (text.empty()) return 0;
  std::uint64_t key = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), key, 16);
  bool whole = failure == std::errc() && end == text.data() + text.size();
  if (!whole || key == 0 || text.size() != 16)
    return fail(ErrorCode::kInvalid, "the key of a request has 16 hexadecimal digits, not all zero", std::string(reason::kMalformed));
  return key;
}

std::string job_text(const WorkloadEntry& entry, const Gang& gang) {
  if (gang.array_index) return fmt::format("{}_{}", entry.workload.id.value(), *gang.array_index);
  return fmt::format("{}", gang.id.value());
}

}  // namespace tutti::controller
