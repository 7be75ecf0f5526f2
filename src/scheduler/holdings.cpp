#include <algorithm>

#include "scheduler/pass.h"

namespace tutti::scheduler {

NodeSet usable_nodes(const ClusterState& state) {
  NodeSet out(state.spec->nodes.size());
  for (NodeIndex node = 0; node < state.spec->nodes.size(); ++node) {
    const NodeState* known = state.node(node);
    if (known && known->status == NodeStatus::kUp && !known->drained && !known->down) out.add(node);
  }
  return out;
}

Pass::Pass(const PassInput& pass_input, const Profile& pass_profile)
    : input(pass_input),
      profile(pass_profile),
      cluster(*pass_input.state.spec),
      free(cluster, usable_nodes(pass_input.state)),
      timeline(free),
      forecaster(free, timeline),
      eligibility(pass_input.state, pass_input.now),
      shapes(cluster),
      quota(*pass_input.state.queues, cluster),
      basis(priority_basis(*pass_input.state.spec)),
      blocked_nodes(cluster.size()),
      promised_nodes(cluster.size()) {
  plan.next_look = Instant::never();
}

Instant Pass::end_of(Duration limit) const {
  return limit.is_infinite() ? Instant::never() : input.now + limit + input.state.spec->kill_wait;
}

Duration Pass::occupancy(Duration limit) const {
  return limit.is_infinite() ? limit : limit + input.state.spec->kill_wait;
}

// Ends within its limit and the grace of its ending; what is overdue or ending already, soon.
Instant expected_end(const Gang& gang, Instant now, Duration kill_wait) {
  Instant soon = now + std::max(kill_wait, Duration::seconds(1));
  if (gang.state == GangState::kEnding) return soon;
  if (!gang.limit_end.is_set() || gang.limit_end >= Instant::never()) return Instant::never();
  Instant end = gang.limit_end + kill_wait;
  return end > now ? end : soon;
}

namespace {

// Also what is being cleaned up is used still.
void charge_quota(Pass& pass, const Gang& gang) {
  const WorkloadEntry* entry = pass.input.state.workloads.find(gang.workload.value());
  if (!entry) return;
  auto queue = pass.quota.queue_of(entry->workload);
  if (!queue) return;
  const Charge charge = charge_of(pass.cluster, gang.slots);
  pass.quota.charge(*queue, charge);
  pass.quota.add_demand(*queue, charge);
}

}  // namespace

const Charge& Pass::charge_of_shape(std::uint32_t shape) {
  std::optional<Charge>& charge = shape_states[shape].charge;
  if (!charge) charge = charge_of(shapes[shape]);
  return *charge;
}

void book_holdings(Pass& pass) {
  const ClusterState& state = pass.input.state;
  for (std::uint32_t id : pass.input.agenda.active) {
    const Gang* gang = state.gangs.find(id);
    if (!gang) continue;
    Instant end = expected_end(*gang, pass.input.now, state.spec->kill_wait);
    auto owner = static_cast<Timeline::Owner>(pass.owners.size());
    pass.owners.push_back({gang->workload, gang->array_index, gang->id});
    if (!pass.quota.empty()) charge_quota(pass, *gang);
    for (const Slot& slot : gang->slots) {
      if (slot.released || slot.node >= pass.cluster.size()) continue;
      pass.timeline.add_release(slot.node, {end, owner, pass.free.hold(slot)});
    }
  }
  pass.free.build_index();
}

}  // namespace tutti::scheduler
