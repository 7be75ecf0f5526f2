// What is used of the queues, for people: the quota tree of a pass, read off.
#include "scheduler/queue_rules.h"
#include "scheduler/quota.h"

namespace tutti::scheduler {

namespace {

void count_one(const ClusterState& state, const QuotaTree& tree, const WorkloadEntry& entry,
               std::vector<QueueUse>& out) {
  auto queue = tree.queue_of(entry.workload);
  if (!queue) return;
  out[*queue].pending += entry.simple_unstarted ? 1 : entry.unstarted.count();
  for (GangId id : entry.gangs) {
    const Gang* gang = state.gangs.find(id.value());
    if (!gang || gang->state == GangState::kDone) continue;
    ++(gang->state == GangState::kPending ? out[*queue].pending : out[*queue].running);
  }
}

}  // namespace

std::vector<QueueUse> queue_uses(const ClusterState& state) {
  const QueueTree& spec = *state.queues;
  std::vector<QueueUse> out(spec.queues.size());
  if (spec.queues.empty()) return out;
  const ClusterIndex cluster(*state.spec);
  QuotaTree tree(spec, cluster);
  ShapeTable shapes(cluster);
  static const std::vector<std::string> kNobody;
  state.workloads.for_each([&](std::uint32_t, const WorkloadEntry& entry) {
    if (!entry.is_open()) return;
    auto queue = tree.queue_of(entry.workload);
    if (!queue) return;
    count_one(state, tree, entry, out);
    if (const std::uint64_t waiting = entry.simple_unstarted ? 1 : entry.unstarted.count())
      if (auto partition = cluster.partition(
              entry.workload.partitions.empty() ? "" : entry.workload.partitions->front()))
        tree.add_demand(
            *queue,
            charge_of(shapes[shapes.intern(*partition, entry.workload.roles, kNobody, {}, {})]),
            waiting);
    for (GangId id : entry.gangs) {
      const Gang* gang = state.gangs.find(id.value());
      if (!gang || gang->slots.empty()) continue;
      const Charge charge = charge_of(cluster, gang->slots);
      tree.charge(*queue, charge);
      tree.add_demand(*queue, charge);
    }
  });
  tree.settle();
  for (QueueId id = 0; id < out.size(); ++id) {
    out[id].queue = spec.queues[id].name;
    for (const QuotaSpec& quota : spec.queues[id].quotas) {
      const std::uint64_t amount = tree.amount(id, quota.resource);
      QuotaUse use{quota.resource, tree.used(id, quota.resource), std::nullopt};
      if (amount != QuotaTree::kUnlimited) use.amount = amount;
      out[id].uses.push_back(std::move(use));
    }
  }
  return out;
}

}  // namespace tutti::scheduler
