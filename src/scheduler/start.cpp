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
  bool own_dependencies = !element.entry->workload.extras.dependencies.empty();
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

// The job starts in another of its partitions.
void withdraw_promise(Pass& pass, Element& element) {
  std::vector<Promise>& promises = pass.plan.promises;
  auto it = std::find_if(promises.begin(), promises.end(),
                         [&](const Promise& made) { return made.element == element.ref; });
  if (it == promises.end()) return;
  for (NodeIndex node : it->nodes) pass.timeline.remove_promise(node, *element.promise);
  promises.erase(it);
  element.promise.reset();
}

void book_start(Pass& pass, const Candidate& candidate, const Shape& shape,
                const Placement& placement) {
  Element& element = pass.elements[candidate.element];
  auto owner = static_cast<Timeline::Owner>(pass.owners.size());
  pass.owners.push_back(element.ref);
  Start start;
  start.element = element.ref;
  start.partition = pass.cluster.spec().partitions[candidate.partition].name;
  start.limit = candidate.limit;
  start.backfilled = !pass.blocked_shapes.empty();
  start.slots.reserve(placement.size());
  Instant end = pass.end_of(candidate.limit);
  for (const Share& share : placement) {
    Slot slot = pass.free.start(share.node, share.take);
    slot.role = share.role;
    slot.tasks = share.tasks;
    slot.exclusive = shape.roles[share.role].exclusive;
    start.slots.push_back(std::move(slot));
    pass.timeline.add_release(share.node, {end, owner, share.take});
  }
  pass.plan.starts.push_back(std::move(start));
  element.wait.reset();
  if (element.promise) withdraw_promise(pass, element);
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

}  // namespace

bool start(Pass& pass, const Candidate& candidate) {
  Element& element = pass.elements[candidate.element];
  const Shape& shape = pass.shapes[candidate.shape];
  const ShapeState& state = pass.shape_states[candidate.shape];
  bool closed = pass.profile.reserve.behind == ReservePolicy::Behind::kWait &&
                shape.candidates.intersects(pass.blocked_nodes);
  if (shape.never || closed) return false;
  while (candidate.limit < state.fails_from) {
    RoomNow room(pass.free, pass.timeline, pass.input.now, pass.end_of(candidate.limit));
    ++pass.plan.stats.considered;
    auto placement = place_gang(room, shape, pass.free.usable());
    pass.plan.stats.work_units += room.looked() + 1;
    if (!placement) {
      note_failure(pass, candidate, shape);
      return false;
    }
    book_start(pass, candidate, shape, *placement);
    if (!advance(pass, element)) return true;
    if (pass.plan.stats.work_units > pass.input.budget) return true;
  }
  return false;
}

}  // namespace tutti::scheduler
