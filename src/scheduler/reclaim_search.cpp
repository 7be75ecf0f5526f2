#include "scheduler/reclaim_search.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace tutti::scheduler {

namespace {
constexpr Duration kMostWait = Duration::seconds(86400);
// Above so many units what they may be taken together is judged once, at the end.
constexpr std::size_t kMostJudged = 512;
}  // namespace

ReclaimSearch::ReclaimSearch(Pass& pass, const Candidate& candidate,
                             const Rights::Claimant& claimant, std::vector<ReclaimUnit> units)
    : pass_(pass), candidate_(candidate), claimant_(claimant), units_(std::move(units)) {}

Instant ReclaimSearch::leaves_at(const ReclaimUnit& unit, Instant at) const {
  const Instant soonest = pass_.input.now + unit.yield.notice + pass_.input.state.spec->kill_wait;
  return std::max(at, soonest);
}

// Changes when the unit's room comes back.
void ReclaimSearch::shift(const ReclaimUnit& unit) {
  for (std::uint32_t i = 0; i < unit.gang->slots.size(); ++i) {
    const Slot& slot = unit.gang->slots[i];
    if (slot.released || slot.node >= pass_.cluster.size() || (unit.slot && *unit.slot != i))
      continue;
    const Instant at = leaves_at(unit, at_);
    const Instant before = pass_.timeline.set_release(slot.node, unit.owner, at);
    moved_.push_back({slot.node, unit.owner, before});
  }
}

void ReclaimSearch::shift_back() {
  for (auto it = moved_.rbegin(); it != moved_.rend(); ++it)
    pass_.timeline.set_release(it->node, it->owner, it->before);
  moved_.clear();
}

void ReclaimSearch::note_times() {
  for (const Moved& each : moved_)
    for (const Timeline::Release& release : pass_.timeline.releases(each.node))
      if (release.owner == each.owner) pass_.timeline.note_time(release.at);
}

std::optional<Forecast> ReclaimSearch::earliest() {
  const Window window = window_of(pass_, candidate_);
  Instant from = window.from;
  if (std::any_of(units_.begin(), units_.end(),
                  [](const ReclaimUnit& unit) { return unit.right == Rights::Kind::kNominal; }))
    from = std::max(from, claimant_.nominal_from);
  auto found = pass_.forecaster.earliest(pass_.shapes[candidate_.shape], from,
                                         pass_.occupancy(candidate_.limit));
  if (found && !window.holds(found->at, candidate_.limit)) found.reset();
  return found;
}

bool ReclaimSearch::quota_allows(const Set& set, Instant at) {
  if (candidate_.queue == kNoQueue || pass_.quota.empty()) return true;
  std::vector<std::pair<QueueId, Charge>> back;
  auto refund = [&](QueueId queue, Charge charge) {
    pass_.quota.refund(queue, charge);
    back.emplace_back(queue, std::move(charge));
  };
  std::vector<GangId> gone;
  for (std::uint32_t i : set) {
    const ReclaimUnit& unit = units_[i];
    auto queue = pass_.quota.queue_of(unit.entry->workload);
    const Instant end =
        expected_end(*unit.gang, pass_.input.now, pass_.input.state.spec->kill_wait);
    if (!queue || end <= at) continue;
    refund(*queue,
           charge_of(pass_.cluster, unit.slot ? std::vector<Slot>{unit.gang->slots[*unit.slot]}
                                              : unit.gang->slots));
  }
  for (const ReclaimBook::Held& held : pass_.reclaim->held)
    if (held.end <= at) refund(held.queue, held.charge);
  const auto fit = pass_.quota.judge(candidate_.queue, pass_.charge_of_shape(candidate_.shape));
  for (const auto& [queue, charge] : back) pass_.quota.charge(queue, charge);
  return fit != QuotaTree::Fit::kOver;
}

std::optional<Placement> ReclaimSearch::fits(const Set& set, Instant at, const NodeSet& nodes) {
  if (!quota_allows(set, at)) return std::nullopt;
  at_ = Instant();
  moved_.clear();
  for (std::uint32_t i : set) shift(units_[i]);
  auto placement = pass_.forecaster.place_on(pass_.shapes[candidate_.shape], nodes, at,
                                             pass_.occupancy(candidate_.limit));
  shift_back();
  return placement;
}

std::vector<ReclaimUnit> ReclaimSearch::units_of(const Set& set) const {
  std::vector<ReclaimUnit> out;
  for (std::uint32_t i : set) out.push_back(units_[i]);
  std::sort(out.begin(), out.end(), [](const ReclaimUnit& a, const ReclaimUnit& b) {
    return std::tie(a.gang->id, a.slot) < std::tie(b.gang->id, b.slot);
  });
  return out;
}

bool ReclaimSearch::may_take(const Set& set, bool last_resort) const {
  std::map<GangId, std::uint32_t> surplus;
  std::vector<Rights::Taken> taken;
  const Rights& rights = pass_.reclaim->rights;
  for (std::uint32_t i : set) {
    const ReclaimUnit& unit = units_[i];
    if (unit.slot && ++surplus[unit.gang->id] > unit.surplus) return false;
    taken.push_back({unit.gang, &unit.entry->workload, unit.right, !unit.slot,
                     rights.holdings_of(*unit.gang, unit.slot)});
  }
  // A whole gang and a part of it is not a set.
  for (std::uint32_t i : set)
    if (!units_[i].slot && surplus.contains(units_[i].gang->id)) return false;
  return rights.together(claimant_, taken, last_resort);
}

// What a victim loses by waiting: nothing if there is other room for it when it leaves.
void ReclaimSearch::add_restart_costs() {
  const Duration longest = std::min(candidate_.limit, kMostWait);
  for (ReclaimUnit& unit : units_) {
    if (unit.slot) continue;
    std::uint64_t gpus = 0;
    for (const Slot& slot : unit.gang->slots) gpus += slot.gpus.size();
    const std::uint64_t wait = gpus * static_cast<std::uint64_t>(longest.whole_seconds());
    unit.cost += wait;
    if (units_.size() > kMostPruned || unit.yield.mode == ReclaimMode::kCancel) continue;
    auto partition = pass_.cluster.partition(unit.gang->partition);
    if (!partition) continue;
    const Workload& workload = unit.entry->workload;
    const std::uint32_t id = pass_.shapes.intern(*partition, workload.roles, unit.gang->avoid_nodes,
                                                 {}, workload.extras->terms.topology);
    pass_.shape_states.resize(std::max<std::size_t>(pass_.shape_states.size(), id + 1));
    NodeSet elsewhere = pass_.free.usable();
    for (const Slot& slot : unit.gang->slots)
      if (slot.node < pass_.cluster.size()) elsewhere.remove(slot.node);
    const Duration limit = time_limit_in(pass_.cluster.spec().partitions[*partition], workload);
    if (pass_.forecaster.place_on(pass_.shapes[id], elsewhere, leaves_at(unit, Instant()),
                                  pass_.occupancy(limit)))
      unit.cost -= wait;
  }
}

// Every set, the cheapest first; a part of what does not do does not do either.
std::optional<ReclaimSearch::Set> ReclaimSearch::cheapest(Instant at, bool last_resort) {
  const std::uint32_t count = 1u << units_.size();
  auto cost_of = [&](std::uint32_t mask) {
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < units_.size(); ++i)
      if (mask >> i & 1) sum += units_[i].cost;
    return sum;
  };
  std::uint32_t whole = 0;
  for (std::uint32_t i = 0; i < units_.size(); ++i)
    if (!units_[i].slot) whole |= 1u << i;
  // Shrink before anybody is evicted; then the cost, then how many.
  std::vector<std::tuple<bool, std::uint64_t, int, std::uint32_t>> order;
  for (std::uint32_t mask = 1; mask < count; ++mask)
    order.emplace_back((mask & whole) != 0, cost_of(mask), __builtin_popcount(mask), mask);
  std::sort(order.begin(), order.end());
  std::vector<std::uint32_t> failed;
  for (const auto& [evicts, cost, size, mask] : order) {
    const bool known = std::any_of(failed.begin(), failed.end(),
                                   [m = mask](std::uint32_t f) { return (m & f) == m; });
    if (known) continue;
    Set set;
    for (std::uint32_t i = 0; i < units_.size(); ++i)
      if (mask >> i & 1) set.push_back(i);
    if (!may_take(set, last_resort)) continue;
    if (fits(set, at, pass_.free.usable())) return set;
    failed.push_back(mask);
  }
  return std::nullopt;
}

// The units that the placement rests on, dearest dropped first.
ReclaimSearch::Set ReclaimSearch::needed_for(const Placement& placement, Instant at,
                                             const Set& set) const {
  std::map<NodeIndex, Capacity> spare;
  for (const Share& share : placement) {
    auto [it, fresh] = spare.try_emplace(share.node);
    if (fresh)
      it->second =
          pass_.timeline.throughout(share.node, at, at + pass_.occupancy(candidate_.limit));
    it->second -= share.take;
  }
  auto amounts = [&](const ReclaimUnit& unit) {
    std::vector<std::pair<NodeIndex, Capacity>> out;
    for (std::uint32_t i = 0; i < unit.gang->slots.size(); ++i) {
      const NodeIndex node = unit.gang->slots[i].node;
      if ((unit.slot && *unit.slot != i) || !spare.contains(node)) continue;
      for (const Timeline::Release& release : pass_.timeline.releases(node))
        if (release.owner == unit.owner && release.at > at) out.emplace_back(node, release.amount);
    }
    return out;
  };
  // With all of them gone; then one after the other comes back where it can.
  for (std::uint32_t i : set)
    for (const auto& [node, amount] : amounts(units_[i])) spare[node] += amount;
  Set kept = set;
  std::sort(kept.begin(), kept.end(), std::greater<>());
  std::erase_if(kept, [&](std::uint32_t i) {
    const auto parts = amounts(units_[i]);
    const bool spared = std::all_of(parts.begin(), parts.end(), [&](const auto& part) {
      Capacity rest = spare[part.first];
      rest -= part.second;
      return rest.covers(Capacity());
    });
    if (!spared) return false;
    for (const auto& [node, amount] : parts) spare[node] -= amount;
    return true;
  });
  std::sort(kept.begin(), kept.end());
  return kept;
}

ReclaimSearch::Set ReclaimSearch::prune(Set set, Instant at, bool last_resort) {
  if (set.size() > kMostPruned) return set;
  for (std::size_t i = set.size(); i-- > 0;) {
    Set less = set;
    less.erase(less.begin() + static_cast<std::ptrdiff_t>(i));
    if (may_take(less, last_resort) && fits(less, at, pass_.free.usable())) set = std::move(less);
  }
  return set;
}

std::optional<ReclaimSearch::Set> ReclaimSearch::greedy(Instant at, bool last_resort) {
  Set all;
  for (std::uint32_t i = 0; i < units_.size(); ++i) {
    all.push_back(i);
    if (units_.size() <= kMostJudged && !may_take(all, last_resort)) all.pop_back();
  }
  std::optional<Placement> placement = fits(all, at, pass_.free.usable());
  if (!placement) return std::nullopt;
  std::size_t low = 1, high = all.size();
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (auto found = fits(Set(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(middle)), at,
                          pass_.free.usable())) {
      high = middle;
      placement = std::move(found);
    } else {
      low = middle + 1;
    }
  }
  all.resize(low);
  Set set = prune(needed_for(*placement, at, all), at, last_resort);
  if (set.empty() || !may_take(set, last_resort)) return std::nullopt;
  return set;
}

std::optional<ReclaimFound> ReclaimSearch::run() {
  auto waiting = earliest();
  at_ = Instant();
  moved_.clear();
  for (const ReclaimUnit& unit : units_)
    if (!unit.slot || unit.surplus > 0) shift(unit);
  note_times();
  auto best = earliest();
  shift_back();
  const bool waiting_does =
      waiting && best && waiting->at <= best->at && quota_allows({}, waiting->at);
  if (!best || waiting_does) return std::nullopt;
  // Where a quota is all that is in the way, room comes with the notice.
  for (const ReclaimUnit& unit : units_) {
    if (!waiting || waiting->at > best->at) break;
    best->at = std::max(best->at, leaves_at(unit, Instant()));
  }
  add_restart_costs();
  std::sort(units_.begin(), units_.end(), [](const ReclaimUnit& a, const ReclaimUnit& b) {
    // Surplus before whole gangs: shrink before anybody is evicted.
    return std::tuple(!a.slot, a.cost, a.gang->id, b.slot.value_or(0)) <
           std::tuple(!b.slot, b.cost, b.gang->id, a.slot.value_or(0));
  });
  for (bool last_resort : {false, true}) {
    auto set =
        units_.size() <= kExact ? cheapest(best->at, last_resort) : greedy(best->at, last_resort);
    if (!set) continue;
    auto placement = fits(*set, best->at, pass_.free.usable());
    if (!placement) continue;
    at_ = best->at;  // who leaves for a later start stays until then
    Forecast forecast{best->at, std::move(*placement), false};
    return ReclaimFound{units_of(*set), std::move(forecast)};
  }
  return std::nullopt;
}

void ReclaimSearch::move_releases(const std::vector<ReclaimUnit>& victims) {
  for (const ReclaimUnit& victim : victims) shift(victim);
  note_times();
  moved_.clear();
}

}  // namespace tutti::scheduler
