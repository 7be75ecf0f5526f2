#include <algorithm>

#include "model/reasons.h"
#include "scheduler/pass.h"

namespace tutti::scheduler {

namespace {

// Moves to the next element that may start; false when the array has none (left).
bool advance(Pass& pass, Element& element) {
  element.settled = true;
  if (element.gang || !element.ref.array_index) return false;
  auto next = element.entry->unstarted.next(*element.ref.array_index + 1);
  bool own_dependencies = !element.entry->workload.extras->dependencies.empty();
  std::optional<Ineligible> why;
  std::optional<std::uint32_t> passed_over;
  while (next && own_dependencies) {
    why = pass.eligibility.check(*element.entry, nullptr, next);
    if (!why) break;
    if (!passed_over) passed_over = next;
    next = element.entry->unstarted.next(*next + 1);
  }
  if (!next && !passed_over) {
    // Elements before the first that could start may be left.
    passed_over = element.entry->unstarted.first();
    if (passed_over == element.ref.array_index || !own_dependencies) return false;
    why = pass.eligibility.check(*element.entry, nullptr, passed_over);
    if (!why) return false;
  }
  element.ref.array_index = next ? next : passed_over;
  if (element.throttle_room != kNoLimit) --element.throttle_room;
  if (!next) {
    note_ineligible(pass, element, *why);
    return false;
  }
  if (element.throttle_room == 0) {
    note_ineligible(pass, element, {reason::kArrayThrottle, Instant()});
    return false;
  }
  element.settled = false;
  return true;
}

std::vector<Promise>::iterator promise_of(Pass& pass, const Element& element) {
  return std::find_if(
      pass.plan.promises.begin(), pass.plan.promises.end(),
      [&](const Promise& made) { return made.element == pass.owners[*element.promise]; });
}

// While an element is tried in another partition than the one it has a promise in, its own promise
// does not stand in its way.
class OwnPromise {
 public:
  OwnPromise(Pass& pass, Element& element) : pass_(pass), element_(element) {
    if (!element.promise) return;
    for (NodeIndex node : promise_of(pass, element)->nodes) {
      for (const Timeline::Promised& part : pass.timeline.promises(node))
        if (part.owner == *element.promise) parts_.emplace_back(node, part);
      pass.timeline.remove_promise(node, *element.promise);
    }
  }
  // Nothing started, or the next element of the array inherits the promise.
  void keep() {
    for (const auto& [node, part] : parts_) pass_.timeline.add_promise(node, part);
    parts_.clear();
    if (!element_.promise) return;
    promise_of(pass_, element_)->element = element_.ref;
    pass_.owners[*element_.promise] = element_.ref;
  }
  // It started elsewhere.
  void drop() {
    if (!element_.promise) return;
    pass_.plan.promises.erase(promise_of(pass_, element_));
    element_.promise.reset();
    forget_charge(pass_, element_);
    parts_.clear();
  }
  bool touches(const Placement& placement) const {
    return std::any_of(parts_.begin(), parts_.end(), [&](const auto& part) {
      return std::any_of(placement.begin(), placement.end(),
                         [&](const Share& share) { return share.node == part.first; });
    });
  }

 private:
  Pass& pass_;
  Element& element_;
  std::vector<std::pair<NodeIndex, Timeline::Promised>> parts_;
};

void book_start(Pass& pass, const Candidate& candidate, const Shape& shape,
                const Placement& placement) {
  Element& element = pass.elements[candidate.element];
  auto owner = static_cast<Timeline::Owner>(pass.owners.size());
  pass.owners.push_back(element.ref);
  Start start;
  start.element = element.ref;
  start.partition = pass.cluster.spec().partitions[candidate.partition].name;
  start.limit = candidate.limit;
  start.backfilled = pass.somebody_waits;
  start.slots.reserve(placement.size());
  Instant end = pass.end_of(candidate.limit);
  for (const Share& share : placement) {
    Slot slot = pass.free.start(share.node, share.take);
    slot.role = share.role;
    slot.tasks = share.tasks;
    slot.exclusive = shape.roles[share.role].exclusive;
    start.slots.push_back(std::move(slot));
    pass.timeline.add_release(share.node, {end, owner, share.take});
    if (end >= Instant::never()) pass.forecaster.note_endless(share.node);
  }
  if (candidate.queue != kNoQueue)
    pass.quota.charge(candidate.queue, charge_of(pass.cluster, start.slots));
  pass.plan.starts.push_back(std::move(start));
  ++pass.plan.stats.placed;
}

// A later request of the shape with the same or a longer limit need not be tried.
void note_failure(Pass& pass, const Candidate& candidate, const Shape& shape) {
  ShapeState& state = pass.shape_states[candidate.shape];
  state.fails_from = Duration();
  if (!pass.timeline.has_promises()) return;
  RoomNow room(pass.free, pass.timeline, pass.input.now, pass.end_of(candidate.limit),
               RoomNow::Promises::kIgnored);
  if (place_gang(room, shape, pass.free.usable())) state.fails_from = candidate.limit;
  pass.plan.stats.work_units += room.looked();
}

// The candidate as the one shape it has. True when nothing of it is left to wait for room: all has
// started, or a quota is in the way.
bool start_as(Pass& pass, const Candidate& candidate) {
  Element& element = pass.elements[candidate.element];
  const Shape& shape = pass.shapes[candidate.shape];
  const ShapeState& state = pass.shape_states[candidate.shape];
  bool closed = pass.profile.reserve.behind == ReservePolicy::Behind::kWait &&
                shape.candidates.intersects(pass.blocked_nodes);
  if (shape.never || closed) return false;
  if (!window_of(pass, candidate).holds(pass.input.now, candidate.limit)) return false;
  while (true) {
    if (auto over = over_quota(pass, candidate)) {
      if (!element.wait) note_over_quota(pass, candidate, *over);
      return true;
    }
    if (candidate.limit >= state.fails_from) return false;
    RoomNow room(pass.free, pass.timeline, pass.input.now, pass.end_of(candidate.limit));
    ++pass.plan.stats.considered;
    OwnPromise promise(pass, element);
    auto placement = place_gang(room, shape, pass.free.usable());
    pass.plan.stats.work_units += room.looked() + 1;
    if (!placement) {
      note_failure(pass, candidate, shape);
      promise.keep();
      return false;
    }
    book_start(pass, candidate, shape, *placement);
    std::shared_ptr<const Wait> planned = std::move(element.wait);
    element.wait.reset();
    bool more = advance(pass, element);
    if (more && element.promise && !promise.touches(*placement)) {
      promise.keep();
      element.wait = std::move(planned);
    } else {
      promise.drop();
    }
    if (!more) return true;
    if (pass.plan.stats.work_units > pass.input.budget) return true;
    if (candidate.queue != kNoQueue) return pass.same_again = true;
  }
}

}  // namespace

// In each GPU type that the quota allows: first those in which the gang stays within nominal, then
// those for which it would borrow.
bool start(Pass& pass, Candidate& candidate) {
  const std::vector<std::uint32_t>& flavours = pass.shape_states[candidate.shape].flavours;
  if (candidate.queue == kNoQueue || flavours.empty()) return start_as(pass, candidate);
  const Element& element = pass.elements[candidate.element];
  std::optional<std::uint32_t> waits_for;
  bool any_allowed = false;
  for (auto fit : {QuotaTree::Fit::kWithinNominal, QuotaTree::Fit::kBorrows}) {
    for (std::uint32_t flavour : flavours) {
      Candidate attempt = candidate;
      attempt.shape = flavour;
      if (pass.shapes[flavour].never ||
          pass.quota.judge(candidate.queue, pass.charge_of_shape(flavour)) != fit)
        continue;
      any_allowed = true;
      const bool done = start_as(pass, attempt);
      if (element.settled || pass.same_again) return true;
      if (!done && !waits_for) waits_for = flavour;
    }
  }
  candidate.shape = waits_for.value_or(flavours.front());
  if (!any_allowed) return start_as(pass, candidate);  // says which quota is in the way
  return !waits_for;
}

}  // namespace tutti::scheduler
