#include "scheduler/reclaim_rights.h"

#include <algorithm>

#include "scheduler/reclaim.h"

namespace tutti::scheduler {

namespace {

void add(Amounts& to, const Amounts& what) {
  for (const auto& [resource, amount] : what) to[resource] += amount;
}

std::uint64_t amount_of(const Amounts& amounts, std::string_view resource) {
  auto it = amounts.find(resource);
  return it == amounts.end() ? 0 : it->second;
}

Amounts demand_of(const Workload& workload) {
  Amounts out;
  for (const RoleAsk& role : workload.roles) {
    const std::uint64_t nodes = role.nodes_min, tasks = role.tasks;
    const std::uint64_t gpus = std::max(
        {std::uint64_t{role.gpus_total}, role.gpus_per_node * nodes, role.gpus_per_task * tasks});
    if (gpus > 0) out["gpu"] += gpus;
    if (gpus > 0 && !role.gpu_type.empty()) out["gpu:" + role.gpu_type] += gpus;
    out["cpu"] += std::max(tasks * role.cpus_per_task, nodes * role.cpus_per_node);
    if (role.memory_mib_per_node > 0) out["memory"] += nodes * role.memory_mib_per_node;
  }
  return out;
}

}  // namespace

bool stands_higher(const Workload& one, const Workload& other) {
  const std::int32_t a = one.extras->terms.class_value, b = other.extras->terms.class_value;
  if (a != b) return a > b;
  return one.extras->fixed_priority && other.extras->fixed_priority &&
         *one.extras->fixed_priority > *other.extras->fixed_priority;
}

Rights::Rights(const ClusterState& state, const Agenda& agenda, const QuotaTree& quota, Instant now)
    : state_(state), quota_(quota), now_(now) {
  const QueueTree& tree = *state.queues;
  enabled_ = !tree.queues.empty() || state.spec->preemption.type != PreemptType::kOff;
  if (tree.queues.empty()) return;
  used_.resize(tree.queues.size());
  for (std::uint32_t id : agenda.active) {
    const Gang* gang = state.gangs.find(id);
    if (!gang || gang->state == GangState::kEnding || leaves_whole(*gang)) continue;
    const WorkloadEntry* entry = state.workloads.find(gang->workload.value());
    if (!entry) continue;
    Amounts held = holdings_of(*gang, std::nullopt);
    if (is_leaving(*gang))
      for (std::uint32_t slot : gang->eviction->slots)
        for (const auto& [resource, amount] : holdings_of(*gang, slot)) held[resource] -= amount;
    auto own = quota.queue_of(entry->workload);
    for (QueueId queue : path(own)) add(used_[queue], held);
    if (own) holdings_.push_back({expected_end(*gang, now, state.spec->kill_wait), *own, held});
  }
  std::stable_sort(holdings_.begin(), holdings_.end(),
                   [](const Holding& a, const Holding& b) { return a.end < b.end; });
}

// What its own queue holds above the rest of its nominal ends at some time, or never.
Instant Rights::nominal_from(std::optional<QueueId> queue, const Amounts& demand) const {
  Instant from = now_;
  for (QueueId each : path(queue))
    for (const QuotaSpec& quota : state_.queues->queues[each].quotas) {
      const std::uint64_t owned = quota_.amount(each, quota.resource);
      const std::uint64_t asked = amount_of(demand, quota.resource);
      if (asked == 0) continue;
      if (asked > owned) return Instant::never();
      std::uint64_t used = amount_of(used_[each], quota.resource);
      for (const Holding& holding : holdings_) {
        if (used + asked <= owned) break;
        const auto above = path(holding.queue);
        if (std::find(above.begin(), above.end(), each) == above.end()) continue;
        const std::uint64_t held = amount_of(holding.amount, quota.resource);
        if (held == 0) continue;
        used -= std::min(used, held);
        from = std::max(from, holding.end);
      }
      if (used + asked > owned) return Instant::never();
    }
  return from;
}

std::vector<QueueId> Rights::path(std::optional<QueueId> queue) const {
  std::vector<QueueId> out;
  for (; queue; queue = quota_.parent(*queue)) out.push_back(*queue);
  return out;
}

Amounts Rights::holdings_of(const Gang& gang, std::optional<std::uint32_t> only_slot) const {
  Amounts out;
  for (std::uint32_t i = 0; i < gang.slots.size(); ++i) {
    const Slot& slot = gang.slots[i];
    if ((only_slot && i != *only_slot) || slot.released) continue;
    if (slot.node >= state_.spec->nodes.size()) continue;
    const NodeSpec& node = state_.spec->nodes[slot.node];
    for (std::uint16_t gpu : slot.gpus) {
      ++out["gpu"];
      if (gpu < node.devices.size() && !node.devices[gpu].type.empty())
        ++out["gpu:" + node.devices[gpu].type];
    }
    out["cpu"] += slot.cpu_ids.size();
    out["memory"] += slot.memory_mib;
  }
  return out;
}

const PartitionSpec* Rights::partition(std::string_view name) const {
  for (const PartitionSpec& each : state_.spec->partitions)
    if (each.name == name) return &each;
  return nullptr;
}

bool Rights::is_over(QueueId queue, const Amounts& held, const Amounts& added) const {
  for (const QuotaSpec& quota : state_.queues->queues[queue].quotas) {
    const std::uint64_t used =
        amount_of(used_[queue], quota.resource) + amount_of(added, quota.resource);
    if (amount_of(held, quota.resource) > 0 && used > quota_.amount(queue, quota.resource))
      return true;
  }
  return false;
}

std::vector<QueueId> Rights::below_lca(QueueId queue, QueueId other) const {
  std::vector<QueueId> out = path(queue);
  if (auto common = quota_.common_ancestor(queue, other))
    out.erase(std::find(out.begin(), out.end(), *common), out.end());
  return out;
}

Rights::Claimant Rights::claimant(const Workload& workload, const PartitionSpec& partition) const {
  Claimant out;
  out.workload = &workload;
  out.partition = &partition;
  out.queue = quota_.queue_of(workload);
  out.demand = demand_of(workload);
  out.nominal_from = out.queue ? nominal_from(out.queue, out.demand) : Instant::never();
  return out;
}

Rights::Kind Rights::judge(const Claimant& claimant, const Workload& victim,
                           const PartitionSpec* theirs, const Amounts& held,
                           const Amounts& added) const {
  const QueueTree& tree = *state_.queues;
  const Workload& mine = *claimant.workload;
  if (mine.id == victim.id) return Kind::kNone;
  if (tree.queues.empty()) {
    if (state_.spec->preemption.type != PreemptType::kPartitionPriority) return Kind::kNone;
    const bool higher = theirs && claimant.partition->priority_tier > theirs->priority_tier;
    return higher ? Kind::kPriority : Kind::kNone;
  }
  auto queue = quota_.queue_of(victim);
  if (!claimant.queue || !queue) return Kind::kNone;
  const QueueSpec& my_queue = tree.queues[*claimant.queue];
  const bool by_priority = my_queue.preempts_lower_priority && stands_higher(mine, victim);
  if (*claimant.queue == *queue) return by_priority ? Kind::kPriority : Kind::kNone;
  const auto above = below_lca(*queue, *claimant.queue);
  const bool borrows = std::any_of(above.begin(), above.end(),
                                   [&](QueueId each) { return is_over(each, held, added); });
  if (!borrows) return Kind::kNone;
  if (claimant.nominal_from < Instant::never() && my_queue.reclaims) return Kind::kNominal;
  return by_priority ? Kind::kPriority : Kind::kNone;
}

Rights::Kind Rights::over(const Claimant& claimant, const Gang& gang,
                          const Workload& victim) const {
  return judge(claimant, victim, partition(gang.partition), holdings_of(gang, std::nullopt), {});
}

Rights::Kind Rights::over_start(const Claimant& claimant, const Workload& victim,
                                const PartitionSpec& partition) const {
  const Amounts demand = demand_of(victim);
  return judge(claimant, victim, &partition, demand, demand);
}

bool Rights::together(const Claimant& claimant, const std::vector<Taken>& taken,
                      bool last_resort) const {
  if (state_.queues->queues.empty()) return true;
  struct Loss {
    Amounts sum, largest;
    bool surplus = false;
  };
  std::map<QueueId, Loss> losses;
  for (const Taken& each : taken) {
    auto queue = quota_.queue_of(*each.workload);
    if (!queue || *queue == *claimant.queue) continue;
    for (QueueId node : below_lca(*queue, *claimant.queue)) {
      Loss& loss = losses[node];
      add(loss.sum, each.amount);
      loss.surplus = loss.surplus || !each.whole;
      for (const auto& [resource, amount] : each.amount)
        loss.largest[resource] = std::max(loss.largest[resource], amount);
    }
  }
  for (const auto& [node, loss] : losses)
    for (const QuotaSpec& quota : state_.queues->queues[node].quotas) {
      const std::uint64_t owned = quota_.amount(node, quota.resource);
      const std::uint64_t used = amount_of(used_[node], quota.resource);
      const std::uint64_t lost = amount_of(loss.sum, quota.resource);
      if (lost == 0 || used <= owned) continue;
      if (used - std::min(used, lost) >= owned) continue;
      // Below what it owns: never for surplus, and the last one taken must have been borrowed room.
      const std::uint64_t without_last = lost - amount_of(loss.largest, quota.resource);
      if (loss.surplus || !last_resort || used - without_last <= owned) return false;
    }
  return true;
}

Yield Rights::yield_of(const Gang& gang, const Workload& workload) const {
  return yield_of(workload, partition(gang.partition));
}

Yield Rights::yield_of(const Workload& workload, const PartitionSpec* where) const {
  Yield out;
  const Terms& terms = workload.extras->terms;
  out.mode = terms.reclaim;
  out.min_runtime = terms.min_runtime;
  std::optional<Duration> notice = terms.notice;
  if (const QueueTree& tree = *state_.queues; !tree.queues.empty()) {
    auto queue = quota_.queue_of(workload);
    if (!queue) return {};
    const QueueSpec& spec = tree.queues[*queue];
    out.queue = spec.name;
    out.budget = spec.loss_budget_gpu_seconds;
    out.min_runtime = std::max(out.min_runtime, spec.min_runtime);
    if (out.mode == ReclaimMode::kDefault) out.mode = spec.reclaim;
    if (out.mode == ReclaimMode::kDefault) out.mode = ReclaimMode::kRequeue;
    if (!notice) notice = spec.notice;
  } else {
    const PreemptionSpec& preemption = state_.spec->preemption;
    if (out.mode == ReclaimMode::kDefault && where) out.mode = where->preempt_mode;
    if (out.mode == ReclaimMode::kDefault) out.mode = preemption.mode;
    if (out.mode == ReclaimMode::kDefault) out.mode = ReclaimMode::kOff;
    out.min_runtime = std::max(out.min_runtime, preemption.exempt_time);
    if (!notice && where) notice = where->grace_time;
  }
  out.notice = notice.value_or(Duration());
  // A stopped process keeps its device memory, and no plan resumes one yet: nobody is suspended.
  if (out.mode == ReclaimMode::kSuspend) out.mode = ReclaimMode::kOff;
  // Somebody's terminal, or a job that says so, cannot be started again.
  const bool again = workload.requeue && workload.is_batch();
  if ((out.mode == ReclaimMode::kRequeue || out.mode == ReclaimMode::kCheckpoint) && !again)
    out.mode = ReclaimMode::kCancel;
  return out;
}

}  // namespace tutti::scheduler
