#include "scheduler/order.h"

#include <algorithm>

namespace tutti::scheduler {

namespace {

// Factors in 1/1,000,000,000, so that a sum is the same on every machine.
constexpr std::uint64_t kOne = 1'000'000'000;

std::uint64_t ratio(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0 || part >= whole) return whole == 0 ? 0 : kOne;
  return (part * kOne + whole / 2) / whole;
}

std::uint64_t rounded(std::uint64_t weighted) { return (weighted + kOne / 2) / kOne; }

// PriorityFavorSmall turns a share around, ACCRUE_ALWAYS and the rest as man slurm.conf says.
std::uint64_t size_factor(const PriorityBasis& basis, const PartitionSpec& partition,
                          const Workload& workload, const TresAmounts& asked) {
  const std::uint64_t nodes = asked.at("node"), cpus = asked.at("cpu");
  const bool small = basis.weights.favor_small;
  if (basis.weights.size_relative_to_time) {
    const Duration limit = time_limit_in(partition, workload);
    const std::uint64_t minutes =
        limit.is_infinite() ? 365 * 24 * 60
                            : std::max<std::uint64_t>(static_cast<std::uint64_t>(limit.ms()) / 60'000, 1);
    const std::uint64_t share = ratio(cpus, basis.cpus * minutes);
    return small ? kOne - share : share;
  }
  const std::uint64_t share = (ratio(nodes, basis.nodes) + ratio(cpus, basis.cpus)) / 2;
  return small ? kOne - share : share;
}

std::uint64_t normalised(std::uint64_t value, std::uint64_t most, bool as_it_is) {
  return as_it_is ? value * kOne : ratio(value, most);
}

// What the partition's nodes have.
TresAmounts held_by(const ClusterSpec& spec, const PartitionSpec& partition) {
  TresAmounts out;
  for (const NodeSpec& node : spec.nodes) {
    if (std::find(partition.nodes.begin(), partition.nodes.end(), node.name) == partition.nodes.end())
      continue;
    ++out["node"];
    out["cpu"] += node.cpus;
    out["mem"] += node.memory_mib;
    for (const DeviceSpec& device : node.devices) {
      ++out["gres/" + device.kind];
      if (!device.type.empty()) ++out["gres/" + device.kind + ":" + device.type];
    }
  }
  return out;
}

// The sum of the TRES parts, in billionths of a point.
std::uint64_t tres_points(const PriorityBasis& basis, const PartitionSpec& partition,
                          const TresAmounts& asked, PriorityParts& parts) {
  std::uint64_t sum = 0;
  auto there = basis.held_by.find(partition.name);
  for (const auto& [resource, weight] : basis.weights.tres) {
    auto want = asked.find(resource);
    std::uint64_t most = 0;
    if (there != basis.held_by.end())
      if (auto has = there->second.find(resource); has != there->second.end()) most = has->second;
    const std::uint64_t amount = want == asked.end() ? 0 : want->second;
    const std::uint64_t points =
        weight * normalised(amount, most, basis.weights.unnormalised_tres);
    parts.tres[resource] = points / kOne;
    sum += points;
  }
  return sum;
}

}  // namespace

TresAmounts asked_by(const Workload& workload) {
  TresAmounts out{{"cpu", 0}, {"mem", 0}, {"node", 0}};
  for (const RoleAsk& ask : workload.roles) {
    const std::uint64_t nodes = std::max(ask.nodes_min, 1u);
    const std::uint64_t tasks = std::max<std::uint64_t>(
        {ask.tasks, nodes, ask.tasks > 1 ? 0 : nodes * ask.tasks_per_node});
    const std::uint64_t gpus = std::max({std::uint64_t{ask.gpus_total}, nodes * ask.gpus_per_node,
                                         tasks * ask.gpus_per_task});
    const std::uint64_t cpus = std::max({tasks * std::max(ask.cpus_per_task, 1u),
                                         gpus * ask.cpus_per_gpu, nodes * ask.cpus_per_node});
    out["node"] += nodes;
    out["cpu"] += cpus;
    out["mem"] += std::max({nodes * ask.memory_mib_per_node, cpus * ask.memory_mib_per_cpu,
                            gpus * ask.memory_mib_per_gpu});
    if (gpus > 0) out["gres/gpu"] += gpus;
    if (gpus > 0 && !ask.gpu_type.empty()) out["gres/gpu:" + ask.gpu_type] += gpus;
  }
  return out;
}

PriorityBasis priority_basis(const ClusterState& state, Instant now) {
  const ClusterSpec& spec = *state.spec;
  PriorityBasis basis;
  basis.weights = spec.priority;
  basis.book = state.accounts;
  basis.nodes = spec.nodes.size();
  for (const NodeSpec& node : spec.nodes) basis.cpus += node.cpus;
  for (const PartitionSpec& partition : spec.partitions) {
    basis.partition_factor_max =
        std::max(basis.partition_factor_max, partition.priority_job_factor);
    if (!spec.priority.tres.empty()) basis.held_by[partition.name] = held_by(spec, partition);
  }
  for (const auto& [name, qos] : basis.book->qos)
    basis.qos_max = std::max(basis.qos_max, qos.priority);
  for (const auto& [id, association] : basis.book->associations)
    basis.association_max = std::max(basis.association_max, association.priority);
  if (spec.priority.fair_share > 0) basis.shares = fair_shares(state, now);
  return basis;
}

Instant eligible_since(const Workload& workload, const Gang* gang) {
  Instant since = std::max(workload.submitted, workload.begin);
  return gang ? std::max(since, gang->eligible) : since;
}

PriorityParts priority_in(const PriorityBasis& basis, const PartitionSpec& partition,
                          const WorkloadEntry& entry, Instant now) {
  const Workload& workload = entry.workload;
  PriorityParts parts;
  parts.nice = workload.nice;
  if (workload.hold != Hold::kNone) return parts;
  if (workload.extras->fixed_priority) {
    parts.total = *workload.extras->fixed_priority;
    return parts;
  }
  const PriorityWeights& weights = basis.weights;
  const Instant since =
      weights.accrue_always ? workload.submitted : eligible_since(workload, nullptr);
  std::int64_t waited = now > since ? (now - since).whole_seconds() : 0;
  std::uint64_t age =
      weights.age *
      ratio(static_cast<std::uint64_t>(waited),
            static_cast<std::uint64_t>(std::max<std::int64_t>(weights.max_age.whole_seconds(), 1)));
  std::uint64_t size = 0, tres = 0;
  if (weights.job_size > 0 || !weights.tres.empty()) {
    const TresAmounts asked = asked_by(workload);
    size = weights.job_size * size_factor(basis, partition, workload, asked);
    tres = tres_points(basis, partition, asked, parts);
  }
  std::uint64_t place = weights.partition * normalised(partition.priority_job_factor,
                                                       basis.partition_factor_max,
                                                       weights.unnormalised_partition);
  std::uint64_t share = weights.fair_share * basis.shares.factor(entry.association);
  const Qos* qos = weights.qos > 0 ? basis.book->find_qos(workload.qos) : nullptr;
  std::uint64_t quality = !qos ? 0
                               : weights.qos * normalised(qos->priority, basis.qos_max,
                                                          weights.unnormalised_qos);
  const Association* mine = weights.association > 0 ? basis.book->find(entry.association) : nullptr;
  std::uint64_t association =
      !mine ? 0
            : weights.association * normalised(mine->priority, basis.association_max,
                                               weights.unnormalised_association);
  parts.age = rounded(age);
  parts.job_size = rounded(size);
  parts.partition = rounded(place);
  parts.fair_share = rounded(share);
  parts.qos = rounded(quality);
  parts.association = rounded(association);
  auto sum = static_cast<std::int64_t>((age + size + place + share + quality + association + tres) /
                                       kOne);
  parts.total = static_cast<std::uint64_t>(std::max<std::int64_t>(sum - workload.nice, 1));
  return parts;
}

PriorityParts priority_of(const PriorityBasis& basis, const ClusterSpec& spec,
                          const WorkloadEntry& entry, Instant now) {
  const auto& asked = entry.workload.partitions;
  for (const PartitionSpec& partition : spec.partitions) {
    bool first = asked.empty() ? partition.is_default : partition.name == asked.front();
    if (first) return priority_in(basis, partition, entry, now);
  }
  return priority_in(basis, PartitionSpec{}, entry, now);
}

PriorityParts priority_of(const ClusterState& state, const WorkloadEntry& entry, Instant now) {
  return priority_of(priority_basis(state, now), *state.spec, entry, now);
}

}  // namespace tutti::scheduler
