#include <algorithm>

#include "model/reasons.h"
#include "scheduler/order.h"
#include "scheduler/parts.h"
#include "scheduler/explain.h"
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

// The first of the promises that would have it recalled, if they need its room.
Instant recalled_at(const Pass& pass, const RoomNow& room, const Placement& placement) {
  Instant out = Instant::never();
  for (const Share& share : placement)
    for (const Timeline::Promised& promise : pass.timeline.promises(share.node)) {
      if (!room.may_be_recalled_by(promise.owner) || promise.from >= out) continue;
      if (!pass.timeline.at(share.node, promise.from).covers(share.take)) out = promise.from;
    }
  return out;
}

// A port that no other gang on these nodes has, below those that Linux gives out by itself and
// torchrun's default. The same workload gets the same one where it can.
std::uint16_t pick_port(const Pass& pass, const ElementRef& element, const Placement& placement) {
  constexpr std::uint32_t kFirst = 20'000, kCount = 9'500;
  const std::uint32_t wanted =
      (element.workload.value() + element.array_index.value_or(0)) % kCount;
  auto is_taken = [&](std::uint16_t port) {
    for (const Share& share : placement)
      for (const Timeline::Release& release : pass.timeline.releases(share.node))
        if (release.owner < pass.ports.size() && pass.ports[release.owner] == port) return true;
    return false;
  };
  for (std::uint32_t i = 0; i < kCount; ++i) {
    auto port = static_cast<std::uint16_t>(kFirst + (wanted + i) % kCount);
    if (!is_taken(port)) return port;
  }
  return 0;
}

struct Booking {
  const Candidate& candidate;
  const Shape& shape;
  const Placement& placement;
  Instant recalled;
};

// `roles` are those of the placement from the first on, for a member of a group.
void book_element(Pass& pass, const Booking& booking, Element& element, Duration limit,
                  std::uint32_t first_role, std::uint32_t roles) {
  const Candidate& candidate = booking.candidate;
  auto owner = static_cast<Timeline::Owner>(pass.owners.size());
  pass.owners.push_back(element.ref);
  Start start;
  start.element = element.ref;
  start.partition = pass.cluster.spec().partitions[candidate.partition].name;
  start.limit = limit;
  start.backfilled = pass.somebody_waits;
  start.recalled = booking.recalled;
  if (booking.recalled < Instant::never())
    pass.plan.next_look =
        std::min(pass.plan.next_look, recall_notice(pass, candidate, booking.recalled));
  start.rendezvous_port = pick_port(pass, element.ref, booking.placement);
  pass.ports.resize(owner + 1);
  pass.ports[owner] = start.rendezvous_port;
  pass.limits.started(*element.entry, pass.cluster.spec().partitions[candidate.partition], limit);
  Instant end = std::min(pass.end_of(limit), booking.recalled);
  for (const Share& share : booking.placement) {
    if (share.role < first_role || share.role - first_role >= roles) continue;
    Capacity take = share.take;
    Slot slot = pass.free.start(share.node, take);
    slot.parts =
        device_parts(booking.shape.roles[share.role], pass.cluster.of(share.node), take.parts);
    slot.role = share.role - first_role;
    slot.tasks = share.tasks;
    slot.exclusive = booking.shape.roles[share.role].exclusive;
    start.slots.push_back(std::move(slot));
    pass.timeline.add_release(share.node, {end, owner, std::move(take)});
    if (end >= Instant::never()) pass.forecaster.note_endless(share.node);
  }
  if (candidate.queue != kNoQueue)
    pass.quota.charge(candidate.queue, charge_of(pass.cluster, start.slots));
  pass.plan.starts.push_back(std::move(start));
  ++pass.plan.stats.placed;
}

void book_start(Pass& pass, const Booking& booking) {
  const Candidate& candidate = booking.candidate;
  Element& leader = pass.elements[candidate.element];
  if (leader.members.empty())
    return book_element(pass, booking, leader, candidate.limit, 0,
                        static_cast<std::uint32_t>(booking.shape.roles.size()));
  const PartitionSpec& partition = pass.cluster.spec().partitions[candidate.partition];
  std::uint32_t first = 0;
  auto book = [&](Element& element) {
    const auto roles = static_cast<std::uint32_t>(element.entry->workload.roles.size());
    book_element(pass, booking, element, time_limit_in(partition, element.entry->workload), first,
                 roles);
    element.settled = true;
    first += roles;
  };
  book(leader);
  for (std::uint32_t member : leader.members) book(pass.elements[member]);
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
      if (reclaim(pass, candidate)) return true;
      if (!element.wait) note_over_quota(pass, candidate, *over);
      return true;
    }
    const bool hopeless = candidate.limit >= state.fails_from;
    if (hopeless && state.fails_from == Duration()) return false;
    const std::vector<Timeline::Owner>& recalling = recalling_promises(pass, candidate);
    if (hopeless && recalling.empty()) return false;
    RoomNow room(pass.free, pass.timeline, pass.input.now, pass.end_of(candidate.limit));
    room.set_recalling(recalling);
    ++pass.plan.stats.considered;
    OwnPromise promise(pass, element);
    auto placement = place_gang(room, shape, pass.free.usable());
    pass.plan.stats.work_units += room.looked() + 1;
    if (!placement) {
      note_failure(pass, candidate, shape);
      promise.keep();
      return false;
    }
    if (auto over = over_quota(pass, candidate, *placement)) {
      promise.keep();
      if (!element.wait) note_over_quota(pass, candidate, *over);
      return true;
    }
    book_start(pass, {candidate, shape, *placement, recalled_at(pass, room, *placement)});
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
    if (pass.limits.any() && !admit(pass, candidate)) return true;
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
