#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "scheduler/lint.h"

namespace tutti::scheduler {

namespace {

using Findings = std::vector<std::string>;

bool leaves(const Gang& gang) {
  return gang.eviction && gang.eviction->deadline < Instant::never();
}

void check_minimum(const PassInput& input, const Evict& evict, const Gang& gang,
                   Findings& findings) {
  const WorkloadEntry* entry = input.state.workloads.find(gang.workload.value());
  if (evict.eviction.slots.empty() || !entry) return;
  const RoleAsk& role = entry->workload.roles[0];
  const std::set<std::uint32_t> slots(evict.eviction.slots.begin(), evict.eviction.slots.end());
  if (!entry->workload.extras->terms.elastic || entry->workload.roles.size() != 1)
    findings.push_back(fmt::format("a part of job {} is taken; it is not elastic", evict.gang.value()));
  if (slots.size() + role.nodes_min > gang.slots.size())
    findings.push_back(fmt::format("job {} would keep {} of at least {} nodes", evict.gang.value(),
                                   gang.slots.size() - slots.size(), role.nodes_min));
  if (slots.contains(0))
    findings.push_back(fmt::format("the leader of job {} is taken", evict.gang.value()));
}

void check_decided(const PassInput& input, const Plan& plan, Findings& findings) {
  std::set<ElementRef> promised;
  for (const Promise& promise : plan.promises)
    if (promise.earmarked) promised.insert(promise.element);
  std::set<GangId> seen;
  for (const Evict& evict : plan.evictions) {
    const Gang* gang = input.state.gangs.find(evict.gang.value());
    if (!seen.insert(evict.gang).second)
      findings.push_back(fmt::format("job {} is evicted twice", evict.gang.value()));
    if (!gang || (gang->state != GangState::kRunning && gang->state != GangState::kPreparing)) {
      findings.push_back(fmt::format("job {} is evicted but holds nothing", evict.gang.value()));
      continue;
    }
    if (leaves(*gang))
      findings.push_back(fmt::format("job {} is leaving already", evict.gang.value()));
    const Eviction& eviction = evict.eviction;
    if (!promised.contains({eviction.beneficiary, eviction.beneficiary_index,
                            eviction.beneficiary_gang}))
      findings.push_back(fmt::format("job {} is evicted for job {}, which is not to start",
                                     evict.gang.value(), eviction.beneficiary.value()));
    if (eviction.beneficiary == gang->workload)
      findings.push_back(fmt::format("job {} is evicted for itself", evict.gang.value()));
    check_minimum(input, evict, *gang, findings);
  }
}

// Whoever leaves does so for one that waits with a planned start, or the decision is taken back.
void check_under_way(const PassInput& input, const Plan& plan, Findings& findings) {
  std::set<GangId> settled;
  for (const Withdraw& each : plan.withdrawals) settled.insert(each.gang);
  for (const TakeOver& each : plan.take_overs) settled.insert(each.gang);
  std::set<WorkloadId> promised;
  for (const Promise& promise : plan.promises) promised.insert(promise.element.workload);
  if (plan.stats.work_units > input.budget) return;
  for (std::uint32_t id : input.agenda.active) {
    const Gang* gang = input.state.gangs.find(id);
    if (!gang || gang->state == GangState::kEnding || !leaves(*gang)) continue;
    if (!settled.contains(gang->id) && !promised.contains(gang->eviction->beneficiary))
      findings.push_back(fmt::format("job {} leaves for job {}, which has no planned start", id,
                                     gang->eviction->beneficiary.value()));
  }
}

}  // namespace

std::vector<std::string> lint_evictions(const PassInput& input, const Plan& plan) {
  Findings findings;
  check_decided(input, plan, findings);
  check_under_way(input, plan, findings);
  return findings;
}

}  // namespace tutti::scheduler
