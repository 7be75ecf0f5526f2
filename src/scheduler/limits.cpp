// Limits as resources of the timeline: what a quota keeps from starting now is promised the time at
// which quota and devices are both free. Without a known end that frees the
// limit there is no promise, and nobody is blocked.
#include <algorithm>

#include "model/reasons.h"
#include "scheduler/pass.h"

namespace tutti::scheduler {

namespace {

// Searches of one pass: each sums up all that runs.
constexpr std::uint32_t kMostLimitSearches = 16;
constexpr int kMostRounds = 4;

void add_running(Pass& pass) {
  if (pass.quota_ends_known) return;
  pass.quota_ends_known = true;
  for (std::uint32_t id : pass.input.agenda.active) {
    const Gang* gang = pass.input.state.gangs.find(id);
    const WorkloadEntry* entry =
        gang ? pass.input.state.workloads.find(gang->workload.value()) : nullptr;
    auto queue = entry ? pass.quota.queue_of(entry->workload) : std::nullopt;
    if (!queue) continue;
    const Instant end = expected_end(*gang, pass.input.now, pass.input.state.spec->kill_wait);
    if (end < Instant::never())
      pass.quota_ends.push_back({end, *queue, charge_of(pass.cluster, gang->slots), false});
  }
  std::stable_sort(pass.quota_ends.begin(), pass.quota_ends.end(),
                   [](const QuotaChange& a, const QuotaChange& b) { return a.at < b.at; });
}

// All that will be given back and taken, by time; what is given back first.
std::vector<QuotaChange> changes_to_come(Pass& pass) {
  add_running(pass);
  std::vector<QuotaChange> later;
  for (const Start& start : pass.plan.starts) {
    const WorkloadEntry* entry = pass.input.state.workloads.find(start.element.workload.value());
    auto queue = entry ? pass.quota.queue_of(entry->workload) : std::nullopt;
    const Instant end = pass.end_of(start.limit);
    if (queue && end < Instant::never())
      later.push_back({end, *queue, charge_of(pass.cluster, start.slots), false});
  }
  for (const PromisedCharge& promised : pass.promised_charges) {
    later.push_back({promised.at, promised.queue, promised.charge, true});
    if (promised.until < Instant::never())
      later.push_back({promised.until, promised.queue, promised.charge, false});
  }
  auto before = [](const QuotaChange& a, const QuotaChange& b) {
    return std::pair(a.at, a.takes) < std::pair(b.at, b.takes);
  };
  std::stable_sort(later.begin(), later.end(), before);
  std::vector<QuotaChange> out;
  out.reserve(later.size() + pass.quota_ends.size());
  std::merge(pass.quota_ends.begin(), pass.quota_ends.end(), later.begin(), later.end(),
             std::back_inserter(out), before);
  return out;
}

// From when on, at or after `from`, the quota allows the candidate for so long.
std::optional<Instant> quota_allows(Pass& pass, const Candidate& candidate, Instant from) {
  const Charge& charge = pass.charge_of_shape(candidate.shape);
  const Duration duration = pass.occupancy(candidate.limit);
  QuotaTree tree = pass.quota;
  auto allowed = [&] { return tree.judge(candidate.queue, charge) != QuotaTree::Fit::kOver; };
  std::optional<Instant> since;
  if (allowed()) since = from;
  const std::vector<QuotaChange> changes = changes_to_come(pass);
  for (std::size_t i = 0; i < changes.size();) {
    const Instant at = changes[i].at;
    if (since && at >= *since + duration) return since;
    for (; i < changes.size() && changes[i].at == at; ++i) {
      if (changes[i].takes)
        tree.charge(changes[i].queue, changes[i].charge);
      else
        tree.refund(changes[i].queue, changes[i].charge);
    }
    if (!allowed())
      since.reset();
    else if (!since)
      since = std::max(at, from);
  }
  return since;
}

std::optional<Forecast> earliest_within_limits(Pass& pass, Candidate& candidate) {
  const bool by_quota = candidate.queue != kNoQueue;
  for (int round = 0; round < kMostRounds; ++round) {
    if (by_quota) {
      auto from = quota_allows(pass, candidate, std::max(candidate.not_before, pass.input.now));
      if (!from) return std::nullopt;
      candidate.not_before = *from;
    }
    auto forecast = earliest_for(pass, candidate);
    if (!forecast || !by_quota) return forecast;
    auto again = quota_allows(pass, candidate, forecast->at);
    if (again && *again == forecast->at) return forecast;
    candidate.not_before = forecast->at;
  }
  return std::nullopt;
}

void tell_planned(Pass& pass, Element& element, Instant at, const std::vector<NodeIndex>& nodes) {
  auto wait = std::make_shared<Wait>(*element.wait);
  wait->planned_start = at;
  wait->planned_nodes.clear();
  for (NodeIndex node : nodes) wait->planned_nodes.push_back(pass.cluster.name(node));
  element.wait = std::move(wait);
}

}  // namespace

void promise_later(Pass& pass, Candidate candidate) {
  Element& element = pass.elements[candidate.element];
  if (!element.wait || element.wait->planned_start.is_set()) return;
  if (element.wait->reason != reason::kQueueQuota) return;
  if (pass.shapes[candidate.shape].never) return;
  if (!element.promise) {
    const NodeSet& nodes = pass.shapes[candidate.shape].candidates;
    if (pass.limit_searches >= kMostLimitSearches ||
        pass.profile.reserve.behind == ReservePolicy::Behind::kWait ||
        !pass.profile.reserve.promises(nodes.intersects(pass.promised_nodes), pass.promised,
                                       pass.input.reserve_depth))
      return;
    ++pass.limit_searches;
    auto forecast = earliest_within_limits(pass, candidate);
    // What could start now is held up by something else than a limit.
    if (!forecast || forecast->at <= pass.input.now) return;
    book_promise(pass, candidate, forecast->at, forecast->placement);
    pass.promised_nodes |= nodes;
    ++pass.promised;
  }
  for (const Promise& promise : pass.plan.promises)
    if (promise.element == pass.owners[*element.promise])
      return tell_planned(pass, element, promise.at, promise.nodes);
}

}  // namespace tutti::scheduler
