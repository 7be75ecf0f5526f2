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

// Slurm's default, favouring large jobs: the mean of the shares of nodes and of CPUs.
std::uint64_t size_factor(const PriorityBasis& basis, const Workload& workload) {
  std::uint64_t nodes = 0, cpus = 0;
  for (const RoleAsk& ask : workload.roles) {
    std::uint64_t least = std::max(ask.nodes_min, 1u);
    std::uint64_t tasks =
        std::max<std::uint64_t>({ask.tasks, least, ask.tasks > 1 ? 0 : least * ask.tasks_per_node});
    nodes += least;
    cpus += tasks * std::max(ask.cpus_per_task, 1u);
  }
  return (ratio(nodes, basis.nodes) + ratio(cpus, basis.cpus)) / 2;
}

}  // namespace

PriorityBasis priority_basis(const ClusterSpec& spec) {
  PriorityBasis basis;
  basis.weights = spec.priority;
  basis.nodes = spec.nodes.size();
  for (const NodeSpec& node : spec.nodes) basis.cpus += node.cpus;
  for (const PartitionSpec& partition : spec.partitions)
    basis.partition_factor_max =
        std::max(basis.partition_factor_max, partition.priority_job_factor);
  return basis;
}

Instant eligible_since(const Workload& workload, const Gang* gang) {
  Instant since = std::max(workload.submitted, workload.begin);
  return gang ? std::max(since, gang->eligible) : since;
}

PriorityParts priority_in(const PriorityBasis& basis, const PartitionSpec& partition,
                          const Workload& workload, Instant now) {
  PriorityParts parts;
  parts.nice = workload.nice;
  if (workload.hold != Hold::kNone) return parts;
  if (workload.extras->fixed_priority) {
    parts.total = *workload.extras->fixed_priority;
    return parts;
  }
  const PriorityWeights& weights = basis.weights;
  Instant since = eligible_since(workload, nullptr);
  std::int64_t waited = now > since ? (now - since).whole_seconds() : 0;
  std::uint64_t age =
      weights.age *
      ratio(static_cast<std::uint64_t>(waited),
            static_cast<std::uint64_t>(std::max<std::int64_t>(weights.max_age.whole_seconds(), 1)));
  std::uint64_t size = weights.job_size * size_factor(basis, workload);
  std::uint64_t place =
      weights.partition * ratio(partition.priority_job_factor, basis.partition_factor_max);
  // Everybody's share is untouched until usage is accounted.
  std::uint64_t share = weights.fair_share * kOne;
  parts.age = rounded(age);
  parts.job_size = rounded(size);
  parts.partition = rounded(place);
  parts.fair_share = rounded(share);
  auto sum = static_cast<std::int64_t>((age + size + place + share) / kOne);
  parts.total = static_cast<std::uint64_t>(std::max<std::int64_t>(sum - workload.nice, 1));
  return parts;
}

PriorityParts priority_of(const PriorityBasis& basis, const ClusterSpec& spec,
                          const WorkloadEntry& entry, Instant now) {
  const auto& asked = entry.workload.partitions;
  for (const PartitionSpec& partition : spec.partitions) {
    bool first = asked.empty() ? partition.is_default : partition.name == asked.front();
    if (first) return priority_in(basis, partition, entry.workload, now);
  }
  return priority_in(basis, PartitionSpec{}, entry.workload, now);
}

PriorityParts priority_of(const ClusterState& state, const WorkloadEntry& entry, Instant now) {
  return priority_of(priority_basis(*state.spec), *state.spec, entry, now);
}

}  // namespace tutti::scheduler
