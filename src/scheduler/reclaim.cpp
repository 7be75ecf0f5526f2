// The stage: who is entitled to room that others hold, when it would be theirs, whom that costs
// least, and whether the notice goes out now. The search among victims is in reclaim_search.cpp.
#include "scheduler/reclaim.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "scheduler/explain.h"
#include "scheduler/pass.h"
#include "scheduler/reclaim_search.h"

namespace tutti::scheduler {

namespace {

constexpr Duration kMostWork = Duration::seconds(3600);

std::uint64_t gpus_of(const Gang& gang, std::optional<std::uint32_t> only) {
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < gang.slots.size(); ++i)
    if (!only || i == *only) sum += gang.slots[i].gpus.size();
  return sum;
}

// Work since the last checkpoint, at most an hour of it.
std::uint64_t work_at_risk(const Gang& gang, Instant now, std::optional<std::uint32_t> only) {
  if (!gang.started.is_set()) return 0;
  const Instant since = std::max(gang.started, gang.checkpointed);
  const Duration worked = std::min(now - since, kMostWork);
  return gpus_of(gang, only) * static_cast<std::uint64_t>(worked.whole_seconds());
}

bool is_beneficiary(const Pass& pass, const Element& element, const Eviction& eviction) {
  if (element.ref.workload != eviction.beneficiary) return false;
  if (eviction.beneficiary_gang) return element.ref.gang == eviction.beneficiary_gang;
  return pass.input.state.gangs.find(eviction.beneficiary.value()) == nullptr || !element.ref.gang;
}

Element* beneficiary_of(Pass& pass, const Eviction& eviction) {
  for (Element& element : pass.elements)
    if (is_beneficiary(pass, element, eviction)) return &element;
  return nullptr;
}

// Units of what the candidate may take, dearest last.
std::vector<ReclaimUnit> units_for(Pass& pass, const Candidate& candidate,
                                   const Rights::Claimant& claimant) {
  const ReclaimBook& book = *pass.reclaim;
  const NodeSet& nodes = pass.shapes[candidate.shape].candidates;
  std::vector<ReclaimUnit> out;
  for (const ReclaimUnit& holder : book.holders) {
    const Gang& gang = *holder.gang;
    if (std::binary_search(book.taken.begin(), book.taken.end(), gang.id)) continue;
    const bool near = std::any_of(gang.slots.begin(), gang.slots.end(), [&](const Slot& slot) {
      return !slot.released && slot.node < pass.cluster.size() && nodes.contains(slot.node);
    });
    if (!near) continue;
    if (gang.started.is_set() && gang.started + holder.yield.min_runtime > pass.input.now) {
      pass.plan.next_look = std::min(pass.plan.next_look, gang.started + holder.yield.min_runtime);
      continue;
    }
    const Rights::Kind right = book.rights.over(claimant, gang, holder.entry->workload);
    if (right == Rights::Kind::kNone) continue;
    ReclaimUnit unit = holder;
    unit.right = right;
    unit.cost = work_at_risk(gang, pass.input.now, std::nullopt);
    out.push_back(unit);
    // The leader of an elastic gang stays; of the others the last go first.
    for (std::uint32_t slot = static_cast<std::uint32_t>(gang.slots.size()); slot-- > 1;) {
      if (holder.surplus == 0) break;
      unit.slot = slot;
      unit.cost = work_at_risk(gang, pass.input.now, slot);
      out.push_back(unit);
    }
  }
  return out;
}

std::string reason_of(const Pass& pass, const Candidate& candidate, const ReclaimUnit& unit) {
  const ElementRef& ref = pass.elements[candidate.element].ref;
  std::string_view why =
      unit.right == Rights::Kind::kNominal ? "takes back what its queue owns" : "stands higher";
  return fmt::format("{} {}", label(ref), why);
}

bool within_budget(const Pass& pass, const std::vector<ReclaimUnit>& victims) {
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> spent;  // and the budget
  for (const ReclaimUnit& victim : victims)
    if (victim.yield.budget) {
      auto& entry = spent[victim.yield.queue];
      entry.first += victim.cost;
      entry.second = *victim.yield.budget;
    }
  if (spent.empty()) return true;
  for (const LossEntry& loss : pass.input.state.losses->entries)
    if (auto it = spent.find(loss.queue);
        it != spent.end() && loss.at + Duration::seconds(3600) > pass.input.now)
      it->second.first += loss.gpu_seconds;
  return std::all_of(spent.begin(), spent.end(),
                     [](const auto& each) { return each.second.first <= each.second.second; });
}

void decide(Pass& pass, const Candidate& candidate, const std::vector<ReclaimUnit>& victims) {
  const ElementRef& ref = pass.elements[candidate.element].ref;
  std::map<GangId, Evict> by_gang;
  for (const ReclaimUnit& victim : victims) {
    auto [it, fresh] = by_gang.try_emplace(victim.gang->id);
    Evict& evict = it->second;
    evict.eviction.cost_gpu_seconds += victim.cost;
    if (victim.slot) evict.eviction.slots.push_back(*victim.slot);
    if (!fresh) continue;
    evict.gang = victim.gang->id;
    evict.queue = victim.yield.queue;
    evict.eviction.decided = pass.input.now;
    evict.eviction.deadline = pass.input.now + victim.yield.notice;
    evict.eviction.mode = victim.yield.mode;
    evict.eviction.beneficiary = ref.workload;
    evict.eviction.beneficiary_index = ref.array_index;
    evict.eviction.beneficiary_gang = ref.gang;
    evict.eviction.reason = reason_of(pass, candidate, victim);
  }
  for (auto& [id, evict] : by_gang) {
    std::sort(evict.eviction.slots.begin(), evict.eviction.slots.end());
    auto& taken = pass.reclaim->taken;
    taken.insert(std::lower_bound(taken.begin(), taken.end(), id), id);
    pass.plan.evictions.push_back(std::move(evict));
  }
}

// The promise that the element has already does not stand in its own way.
class OwnRoom {
 public:
  OwnRoom(Pass& pass, Element& element) : pass_(pass), element_(element) {
    if (!element.promise) return;
    for (const Promise& made : pass.plan.promises)
      if (made.element == element.ref) promise_ = &made;
    if (!promise_) return;
    for (NodeIndex node : promise_->nodes) {
      for (const Timeline::Promised& part : pass.timeline.promises(node))
        if (part.owner == *element.promise) parts_.emplace_back(node, part);
      pass.timeline.remove_promise(node, *element.promise);
    }
  }
  ~OwnRoom() {
    for (const auto& [node, part] : parts_) pass_.timeline.add_promise(node, part);
  }
  OwnRoom(const OwnRoom&) = delete;
  OwnRoom& operator=(const OwnRoom&) = delete;
  bool is_at_most(Instant at) const { return promise_ && promise_->at <= at; }
  // Another takes its place.
  void drop() {
    parts_.clear();
    if (!promise_) return;
    unbook_promise(pass_, element_);
    element_.wait.reset();
    --pass_.promised;
    promise_ = nullptr;
  }

 private:
  Pass& pass_;
  Element& element_;
  const Promise* promise_ = nullptr;
  std::vector<std::pair<NodeIndex, Timeline::Promised>> parts_;
};

const Element* element_of(const Pass& pass, const ElementRef& ref) {
  auto key = [](const ElementRef& each) { return std::pair(each.workload, each.gang); };
  auto it = std::lower_bound(
      pass.elements.begin(), pass.elements.end(), key(ref),
      [&](const Element& element, const auto& wanted) { return key(element.ref) < wanted; });
  return it == pass.elements.end() || key(it->ref) != key(ref) ? nullptr : &*it;
}

const Promise* promise_of(const Pass& pass, const ElementRef& ref) {
  for (const Promise& promise : pass.plan.promises)
    if (promise.element == ref) return &promise;
  return nullptr;
}

bool lies_on(const Promise& promise, const Gang& gang) {
  return std::any_of(gang.slots.begin(), gang.slots.end(), [&](const Slot& slot) {
    return std::find(promise.nodes.begin(), promise.nodes.end(), slot.node) != promise.nodes.end();
  });
}

}  // namespace

namespace {
void stand_promised(Pass& pass, const Candidate& candidate) {
  const NodeSet& nodes = pass.shapes[candidate.shape].candidates;
  pass.promised_nodes |= nodes;
  pass.blocked_nodes |= nodes;
  pass.somebody_waits = true;
  ++pass.promised;
  stand_in_line(pass, candidate);
}
}  // namespace

std::uint32_t surplus_of(const Workload& workload, const Gang& gang) {
  if (!workload.extras->terms.elastic || workload.roles.size() != 1) return 0;
  const auto slots = static_cast<std::uint32_t>(gang.slots.size());
  return slots > workload.roles[0].nodes_min ? slots - workload.roles[0].nodes_min : 0;
}

ReclaimBook::ReclaimBook(const Pass& pass)
    : rights(pass.input.state, pass.input.agenda, pass.quota, pass.input.now) {
  const ClusterState& state = pass.input.state;
  Timeline::Owner owner = 0;
  for (std::uint32_t id : pass.input.agenda.active) {
    const Gang* gang = state.gangs.find(id);
    if (!gang) continue;
    const Timeline::Owner own = owner++;  // as book_holdings() numbers them
    const WorkloadEntry* entry = state.workloads.find(gang->workload.value());
    if (!entry) continue;
    if (auto queue = pass.quota.queue_of(entry->workload); queue && !pass.quota.empty())
      held.push_back({expected_end(*gang, pass.input.now, state.spec->kill_wait), *queue,
                      charge_of(pass.cluster, gang->slots)});
    if (gang->state == GangState::kEnding || is_leaving(*gang)) {
      taken.push_back(gang->id);
      continue;
    }
    if (!rights.enabled()) continue;
    if (gang->suspended.is_set()) continue;
    ReclaimUnit unit;
    unit.gang = gang;
    unit.entry = entry;
    unit.owner = own;
    unit.yield = rights.yield_of(*gang, entry->workload);
    unit.surplus = surplus_of(entry->workload, *gang);
    if (unit.yield.mode != ReclaimMode::kOff) holders.push_back(std::move(unit));
  }
  std::sort(taken.begin(), taken.end());
}

void begin_reclaim(Pass& pass) { pass.reclaim = std::make_shared<ReclaimBook>(pass); }

bool reclaim(Pass& pass, const Candidate& candidate) {
  ReclaimBook& book = *pass.reclaim;
  if (book.holders.empty() || !pass.profile.reclaims) return false;
  const Shape& shape = pass.shapes[candidate.shape];
  if (shape.never) return false;
  Element& element = pass.elements[candidate.element];
  // A decision under way is never chosen again.
  for (const auto& id : book.taken)
    if (const Gang* gang = pass.input.state.gangs.find(id.value());
        gang && is_leaving(*gang) && is_beneficiary(pass, element, *gang->eviction))
      return false;
  const auto claimant = book.rights.claimant(element.entry->workload,
                                             pass.cluster.spec().partitions[candidate.partition]);
  std::vector<ReclaimUnit> units = units_for(pass, candidate, claimant);
  if (units.empty()) return false;
  OwnRoom before(pass, element);
  ReclaimSearch search(pass, candidate, claimant, std::move(units));
  auto found = search.run();
  if (!found || !within_budget(pass, found->victims) || before.is_at_most(found->forecast.at))
    return false;
  before.drop();
  search.move_releases(found->victims);
  Duration longest;
  for (const ReclaimUnit& victim : found->victims) longest = std::max(longest, victim.yield.notice);
  const Instant notice_at =
      found->forecast.at + (Duration() - longest) + (Duration() - pass.input.state.spec->kill_wait);
  note_planned(pass, candidate, shape.candidates.intersects(pass.blocked_nodes), found->forecast);
  book_promise(pass, candidate, found->forecast.at, found->forecast.placement);
  element.recalls = true;
  Promise& promise = pass.plan.promises.back();
  for (const ReclaimUnit& victim : found->victims) promise.recalls.push_back(victim.gang->id);
  std::sort(promise.recalls.begin(), promise.recalls.end());
  promise.recalls.erase(std::unique(promise.recalls.begin(), promise.recalls.end()),
                        promise.recalls.end());
  if (notice_at <= pass.input.now) {
    decide(pass, candidate, found->victims);
    promise.earmarked = true;
  } else {
    pass.plan.next_look = std::min(pass.plan.next_look, notice_at);
  }
  stand_promised(pass, candidate);
  return true;
}

Instant recall_notice(const Pass& pass, const Candidate& candidate, Instant recalled) {
  const Yield yield =
      pass.reclaim->rights.yield_of(pass.elements[candidate.element].entry->workload,
                                    &pass.cluster.spec().partitions[candidate.partition]);
  const Duration lead = yield.notice + pass.input.state.spec->kill_wait;
  return std::max(pass.input.now, recalled + (Duration() - lead));
}

const std::vector<Timeline::Owner>& recalling_promises(Pass& pass, const Candidate& candidate) {
  static const std::vector<Timeline::Owner> kNone;
  ReclaimBook& book = *pass.reclaim;
  const Rights& rights = book.rights;
  if (!rights.enabled() || !pass.profile.reclaims || pass.plan.promises.empty()) return kNone;
  const Workload& workload = pass.elements[candidate.element].entry->workload;
  const PartitionSpec& partition = pass.cluster.spec().partitions[candidate.partition];
  const Yield yield = rights.yield_of(workload, &partition);
  if (yield.mode == ReclaimMode::kOff) return kNone;
  const Duration lead = std::max(yield.notice, yield.min_runtime);
  if (book.recalling_as_of != pass.plan.promises.size()) book.recalling.clear();
  book.recalling_as_of = pass.plan.promises.size();
  auto [it, fresh] = book.recalling.try_emplace(
      RecallKey{yield.queue, partition.name, candidate.shape, workload.extras->terms.class_value,
                workload.extras->fixed_priority, lead.ms()});
  if (!fresh) return it->second;
  const Instant soonest = pass.input.now + lead + pass.input.state.spec->kill_wait;
  for (const Promise& promise : pass.plan.promises) {
    const PartitionSpec* theirs = rights.partition(promise.partition);
    const Element* other = element_of(pass, promise.element);
    if (!theirs || !other || !other->promise || promise.at < soonest) continue;
    const auto claimant = rights.claimant(other->entry->workload, *theirs);
    if (rights.over_start(claimant, workload, partition) != Rights::Kind::kNone)
      it->second.push_back(*other->promise);
  }
  std::sort(it->second.begin(), it->second.end());
  return it->second;
}

void settle_reclaim(Pass& pass) {
  for (const GangId id : pass.reclaim->taken) {
    const Gang* gang = pass.input.state.gangs.find(id.value());
    if (!gang || !is_leaving(*gang) || gang->state == GangState::kEnding) continue;
    const Eviction& eviction = *gang->eviction;
    Element* element = beneficiary_of(pass, eviction);
    const Promise* promise = element && element->promise ? promise_of(pass, element->ref) : nullptr;
    if (promise && lies_on(*promise, *gang)) continue;
    if (element && !(element->settled && !element->wait)) {
      // Somebody who comes before it is to start in the room that is being freed.
      const Instant end = expected_end(*gang, pass.input.now, pass.input.state.spec->kill_wait);
      const Promise* other = nullptr;
      for (const Promise& each : pass.plan.promises)
        if (!other && lies_on(each, *gang) && each.at <= end + Duration::seconds(60)) other = &each;
      if (other) {
        pass.plan.take_overs.push_back({id, other->element});
        continue;
      }
    }
    std::string cause;
    if (!element)
      cause = fmt::format("job {} no longer waits", eviction.beneficiary.value());
    else if (element->settled && !element->wait)
      cause = fmt::format("{} has started", label(element->ref));
    else if (promise)
      cause = fmt::format("{} is to start elsewhere", label(element->ref));
    else if (pass.out_of_budget && !element->wait)
      continue;
    else
      cause = fmt::format("{} is not to start now: {}", label(element->ref),
                          element->wait ? element->wait->reason : "");
    pass.plan.withdrawals.push_back({id, std::move(cause)});
  }
}

}  // namespace tutti::scheduler
