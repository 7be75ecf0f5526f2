// Firm promises: kept before anything else is planned, pulled earlier in their turn, and what
// became of all promises, for the journal. See design/scheduling.md, 4.

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "scheduler/explain.h"
#include "scheduler/pass.h"

namespace tutti::scheduler {

namespace {

// A firm promise moves, either way, for no less: the journal is not for every second.
constexpr Duration kGrain = Duration::seconds(60);
// When promises become firm is looked at so often.
constexpr std::int64_t kFirmLookMs = 30'000;

bool is_kept(const PromiseRecord& record, Instant at) { return at < record.at + kGrain; }

// Why a firm promise cannot be kept where it was made: what happened there since.
std::string cause_of_slip(const Pass& pass, const PromiseRecord& record) {
  for (const PromisedRoom& room : record.rooms) {
    if (room.node >= pass.cluster.size() || pass.free.usable().contains(room.node)) continue;
    const NodeState* state = pass.input.state.node(room.node);
    if (!state) continue;
    std::string_view how = state->down      ? "is down"
                           : state->drained ? "is drained"
                                            : "does not respond";
    return fmt::format("node {} {}", pass.cluster.name(room.node), how);
  }
  for (const Reserved& reserved : pass.reserved)
    for (const PromisedRoom& room : record.rooms)
      if (reserved.nodes.contains(room.node) && reserved.what->end > record.at)
        return fmt::format("reservation {}", reserved.what->name);
  for (const PromisedRoom& room : record.rooms) {
    for (const Timeline::Release& release : pass.timeline.releases(room.node))
      if (release.at > record.at)
        return fmt::format("{} may run longer than when this was promised",
                           label(pass.owners[release.owner]));
  }
  return "the room of its nodes changed";
}

Timeline::Owner owner_of(Pass& pass, Element& element) {
  auto owner = static_cast<Timeline::Owner>(pass.owners.size());
  pass.owners.push_back(element.ref);
  return owner;
}

std::vector<Promise>::iterator find_promise(Pass& pass, Timeline::Owner owner) {
  return std::find_if(pass.plan.promises.begin(), pass.plan.promises.end(),
                      [&](const Promise& made) { return made.element == pass.owners[owner]; });
}

std::optional<std::uint32_t> element_of(const Pass& pass, const PromiseRecord& record) {
  auto key = [](const ElementRef& ref) { return std::pair(ref.workload, ref.gang); };
  auto it = std::lower_bound(
      pass.elements.begin(), pass.elements.end(), std::pair(record.workload, record.gang),
      [&](const Element& element, const auto& wanted) { return key(element.ref) < wanted; });
  if (it == pass.elements.end() || key(it->ref) != std::pair(record.workload, record.gang))
    return std::nullopt;
  return static_cast<std::uint32_t>(it - pass.elements.begin());
}

// What of its order may move a firm promise of others: everything but age, fair share and size.
std::int64_t standing(const Workload& workload) {
  return std::int64_t{workload.extras->terms.class_value} - workload.nice;
}

bool outranks(const Pass& pass, const Candidate& candidate, const Kept& kept) {
  if (candidate.tier != kept.candidate.tier) return candidate.tier > kept.candidate.tier;
  const Workload& one = pass.elements[candidate.element].entry->workload;
  if (one.extras->fixed_priority) return true;
  return standing(one) > standing(pass.elements[kept.candidate.element].entry->workload);
}

PromisedRoom room_of(const Pass& pass, const Share& share) {
  PromisedRoom out;
  out.node = share.node;
  out.role = share.role;
  out.tasks = share.tasks;
  out.cores = static_cast<std::uint32_t>(share.take.cores);
  out.memory_mib = static_cast<std::uint64_t>(share.take.memory_mib);
  const std::size_t types = pass.cluster.of(share.node).types.size();
  if (share.take.gpu_count() > 0)
    for (std::size_t i = 0; i < types; ++i)
      out.gpus.push_back(static_cast<std::uint16_t>(share.take.gpus[i]));
  return out;
}

// The very rooms again, if they are there throughout.
std::optional<Placement> same_rooms(const Pass& pass, const Shape& shape,
                                    const PromisedRooms& rooms, Instant from, Instant until) {
  Placement out;
  for (const PromisedRoom& room : rooms) {
    if (room.node >= pass.cluster.size() || room.role >= shape.roles.size()) return std::nullopt;
    if (!pass.free.usable().contains(room.node) || !shape.candidates.contains(room.node))
      return std::nullopt;
    Share share{room.node, room.role, room.tasks, {}};
    share.take.cores = static_cast<std::int32_t>(room.cores);
    share.take.memory_mib = static_cast<std::int64_t>(room.memory_mib);
    share.take.vacancy = 1;
    for (std::size_t i = 0; i < room.gpus.size() && i < kGpuTypesPerNode; ++i)
      share.take.gpus[i] = static_cast<std::int16_t>(room.gpus[i]);
    Capacity left = pass.timeline.throughout(room.node, from, until);
    // What other roles of the gang take there too.
    for (const Share& other : out)
      if (other.node == room.node) left -= other.take;
    const bool alone = shape.roles[room.role].exclusive;
    left -= share.take;
    if (left.cores < 0 || left.memory_mib < 0 || (alone && left.vacancy < -1)) return std::nullopt;
    for (std::int16_t gpus : left.gpus)
      if (gpus < 0) return std::nullopt;
    out.push_back(share);
  }
  if (out.empty()) return std::nullopt;
  return out;
}

// Where and when it is again: as before, else anywhere by then, else as early as can be.
std::optional<Forecast> place_again(Pass& pass, const Kept& kept, Instant at,
                                    const PromisedRooms& rooms) {
  const Shape& shape = pass.shapes[kept.candidate.shape];
  const Duration duration = pass.occupancy(kept.candidate.limit);
  at = std::max(at, pass.input.now);
  SeenBy seen(pass, kept.candidate);
  if (!window_of(pass, kept.candidate).holds(at, kept.candidate.limit))
    return earliest_for(pass, kept.candidate);
  if (auto placement = same_rooms(pass, shape, rooms, at, at + duration))
    return Forecast{at, std::move(*placement), false};
  if (auto placement = pass.forecaster.place_on(shape, pass.free.usable(), at, duration))
    return Forecast{at, std::move(*placement), false};
  return earliest_for(pass, kept.candidate);
}

void book_kept(Pass& pass, Kept& kept, Forecast forecast) {
  book_promise(pass, kept.candidate, forecast.at, forecast.placement);
  kept.placement = std::move(forecast.placement);
  kept.at = forecast.at;
}

// The candidate of each kept element in the partition it was promised in, else its first.
void find_candidates(Pass& pass) {
  std::vector<char> exact(pass.kept.size(), 0), any(pass.kept.size(), 0);
  for (const Candidate& candidate : pass.candidates) {
    const auto& which = pass.elements[candidate.element].kept;
    if (!which) continue;
    Kept& kept = pass.kept[*which];
    bool same = pass.cluster.spec().partitions[candidate.partition].name == kept.record->partition;
    if (any[*which] && !same) continue;
    if (exact[*which]) continue;
    kept.candidate = candidate;
    any[*which] = 1;
    exact[*which] = same;
  }
  std::vector<Kept> found;
  for (std::size_t i = 0; i < pass.kept.size(); ++i) {
    std::optional<std::uint32_t>& which = pass.elements[pass.kept[i].candidate.element].kept;
    which.reset();
    if (!any[i]) continue;
    which = static_cast<std::uint32_t>(found.size());
    found.push_back(std::move(pass.kept[i]));
  }
  pass.kept = std::move(found);
}

}  // namespace

void book_promise(Pass& pass, const Candidate& candidate, Instant at, const Placement& placement) {
  Element& element = pass.elements[candidate.element];
  Timeline::Owner owner = owner_of(pass, element);
  Promise made;
  made.element = element.ref;
  made.partition = pass.cluster.spec().partitions[candidate.partition].name;
  made.at = at;
  made.until = at + pass.occupancy(candidate.limit);
  std::vector<PromisedRoom> rooms;
  for (const Share& share : placement) {
    rooms.push_back(room_of(pass, share));
    pass.timeline.add_promise(share.node, {made.at, made.until, owner, share.take});
    const NodeClass& kind = pass.cluster.of(share.node);
    made.shares.push_back({share.node, static_cast<std::uint32_t>(share.take.cores) * kind.threads,
                           static_cast<std::uint32_t>(share.take.gpu_count()),
                           static_cast<std::uint64_t>(share.take.memory_mib)});
    if (made.nodes.empty() || made.nodes.back() != share.node) made.nodes.push_back(share.node);
  }
  made.rooms = std::move(rooms);
  if (candidate.queue != kNoQueue)
    pass.promised_charges.push_back({candidate.element, candidate.queue,
                                     pass.charge_of_shape(candidate.shape), made.at, made.until});
  pass.plan.promises.push_back(std::move(made));
  element.promise = owner;
}

void forget_charge(Pass& pass, const Element& element) {
  const auto position = static_cast<std::uint32_t>(&element - pass.elements.data());
  std::erase_if(pass.promised_charges,
                [&](const PromisedCharge& each) { return each.element == position; });
}

void unbook_promise(Pass& pass, Element& element) {
  auto promise = find_promise(pass, *element.promise);
  for (NodeIndex node : promise->nodes) pass.timeline.remove_promise(node, *element.promise);
  pass.plan.promises.erase(promise);
  element.promise.reset();
  forget_charge(pass, element);
}

void keep_promises(Pass& pass) {
  if (pass.profile.reserve.behind == ReservePolicy::Behind::kWait) return;
  for (const PromiseRecord& record : pass.input.state.promises->records) {
    if (!record.firm) continue;
    auto position = element_of(pass, record);
    if (!position) continue;
    const Element& element = pass.elements[*position];
    if (element.wait) continue;
    Kept kept;
    kept.record = &record;
    kept.candidate.element = *position;
    pass.elements[*position].kept = static_cast<std::uint32_t>(pass.kept.size());
    pass.kept.push_back(std::move(kept));
  }
  if (pass.kept.empty()) return;
  find_candidates(pass);
  std::vector<Kept*> by_time;
  for (Kept& kept : pass.kept) by_time.push_back(&kept);
  std::sort(by_time.begin(), by_time.end(), [](const Kept* a, const Kept* b) {
    return std::tie(a->record->at, a->candidate.element) <
           std::tie(b->record->at, b->candidate.element);
  });
  // Those that can stay do, before any that cannot looks for other room.
  std::vector<Kept*> lost;
  for (Kept* kept : by_time) {
    auto found = place_again(pass, *kept, kept->record->at, kept->record->rooms);
    if (!found || !is_kept(*kept->record, found->at)) {
      lost.push_back(kept);
      continue;
    }
    book_kept(pass, *kept, std::move(*found));
    ++pass.promised;
  }
  for (Kept* kept : lost) {
    kept->cause = cause_of_slip(pass, *kept->record);
    auto found = place_again(pass, *kept, kept->record->at, kept->record->rooms);
    if (!found) continue;
    book_kept(pass, *kept, std::move(*found));
    ++pass.promised;
  }
}

void pull_earlier(Pass& pass, const Candidate& candidate, bool behind_others) {
  Element& element = pass.elements[candidate.element];
  Kept* kept = element.kept ? &pass.kept[*element.kept] : nullptr;
  auto promise = find_promise(pass, *element.promise);
  const Instant at = promise->at;
  std::vector<std::pair<NodeIndex, Timeline::Promised>> own;
  for (NodeIndex node : promise->nodes) {
    for (const Timeline::Promised& part : pass.timeline.promises(node))
      if (part.owner == *element.promise) own.emplace_back(node, part);
    pass.timeline.remove_promise(node, *element.promise);
  }
  auto forecast = earliest_for(pass, candidate);
  for (const auto& [node, part] : own) pass.timeline.add_promise(node, part);
  if (forecast && forecast->at + (kept ? kGrain : Duration::milliseconds(1)) <= at) {
    unbook_promise(pass, element);
    book_promise(pass, candidate, forecast->at, forecast->placement);
    if (kept) {
      kept->at = forecast->at;
      kept->placement = forecast->placement;
    }
    // What was said of it in another partition is not the earliest.
    element.wait.reset();
    note_planned(pass, candidate, behind_others, *forecast);
  } else if (kept && !element.wait) {
    Forecast as_kept{kept->at, kept->placement, forecast && forecast->room_is_free};
    note_planned(pass, candidate, behind_others, as_kept);
  }
}

StandAside::StandAside(Pass& pass, const Candidate& candidate)
    : pass_(pass), candidate_(candidate) {
  if (pass.kept.empty()) return;
  if (auto own = pass.elements[candidate.element].kept) pass.kept[*own].had_turn = true;
  const ShapeState& state = pass.shape_states[candidate.shape];
  if (candidate.limit >= state.fails_from && pass.promised >= pass.input.reserve_depth) return;
  for (std::uint32_t i = 0; i < pass.kept.size(); ++i) {
    const Kept& kept = pass.kept[i];
    Element& element = pass.elements[kept.candidate.element];
    if (kept.had_turn || !element.promise || !outranks(pass, candidate, kept)) continue;
    if (!pass.shapes[candidate.shape].candidates.intersects(
            pass.shapes[kept.candidate.shape].candidates))
      continue;
    unbook_promise(pass, element);
    aside_.push_back(i);
  }
}

void StandAside::come_back() {
  for (std::uint32_t i : aside_) {
    Kept& kept = pass_.kept[i];
    std::vector<PromisedRoom> rooms;
    for (const Share& share : kept.placement) rooms.push_back(room_of(pass_, share));
    auto found = place_again(pass_, kept, kept.at, rooms);
    if ((!found || !is_kept(*kept.record, found->at)) && kept.cause.empty())
      kept.cause = fmt::format("{} comes before it", label(pass_.elements[candidate_.element].ref));
    if (found) book_kept(pass_, kept, std::move(*found));
  }
  aside_.clear();
}

namespace {

PromiseChange change_of(PromiseStep step, const Promise& promise) {
  PromiseChange out;
  out.step = step;
  out.workload = promise.element.workload;
  out.gang = promise.element.gang;
  out.at = promise.at;
  out.partition = promise.partition;
  if (step != PromiseStep::kMade) out.rooms = promise.rooms;
  return out;
}

bool is_within_nominal(const Pass& pass, const Promise& promise) {
  for (const PromisedCharge& each : pass.promised_charges)
    if (pass.elements[each.element].ref == promise.element)
      return pass.quota.judge(each.queue, each.charge) == QuotaTree::Fit::kWithinNominal;
  return true;
}

void settle_planned(Pass& pass, Promise& promise) {
  const Instant now = pass.input.now;
  std::vector<PromiseChange>& out = pass.plan.promise_changes;
  const PromiseRecord* record =
      pass.input.state.promises->find(promise.element.workload, promise.element.gang);
  if (promise.earmarked && (!record || !record->firm)) {
    if (!record) out.push_back(change_of(PromiseStep::kMade, promise));
    out.push_back(change_of(PromiseStep::kFirm, promise));
    promise.firm = true;
    return;
  }
  // It rests on a recall that has not been decided: planned anew at every pass.
  if (!promise.recalls.empty() && (!record || !record->firm)) return;
  if (!record) {
    // What starts before it could become firm binds nobody.
    if (promise.at <= now + kFirmAfter) return;
    out.push_back(change_of(PromiseStep::kMade, promise));
  }
  if (!record || !record->firm) {
    const Instant due = (record ? record->since : now) + kFirmAfter;
    // Who would borrow has no claim to keep the time.
    if (now >= due && is_within_nominal(pass, promise)) {
      out.push_back(change_of(PromiseStep::kFirm, promise));
      promise.firm = true;
      return;
    }
    if (now >= due) return;
    const Instant look = Instant::from_ms((due.ms() + kFirmLookMs - 1) / kFirmLookMs * kFirmLookMs);
    pass.plan.next_look = std::min(pass.plan.next_look, look);
    return;
  }
  promise.firm = true;
  auto element = element_of(pass, *record);
  const auto& which = pass.elements[*element].kept;
  const bool later = promise.at > record->at;
  if (later && is_kept(*record, promise.at)) return;
  if (promise.at == record->at && promise.partition == record->partition &&
      promise.rooms.get() == record->rooms.get())
    return;
  PromiseChange change = change_of(PromiseStep::kMoved, promise);
  if (later && which) change.cause = pass.kept[*which].cause;
  if (later && change.cause.empty())
    change.cause = promise.element.array_index ? "its time went to an earlier element of the array"
                                               : "its place in the order changed";
  out.push_back(std::move(change));
}

}  // namespace

void settle_promises(Pass& pass) {
  if (pass.profile.reserve.behind == ReservePolicy::Behind::kWait) return;
  std::vector<Promise*> by_element;
  for (Promise& promise : pass.plan.promises) by_element.push_back(&promise);
  auto key = [](const ElementRef& ref) { return std::pair(ref.workload, ref.gang); };
  std::sort(by_element.begin(), by_element.end(),
            [&](const Promise* a, const Promise* b) { return key(a->element) < key(b->element); });
  for (Promise* promise : by_element) settle_planned(pass, *promise);
  for (const PromiseRecord& record : pass.input.state.promises->records) {
    auto position = element_of(pass, record);
    if (!position) continue;
    const Element& element = pass.elements[*position];
    if (element.promise) continue;
    // Started with nothing left of it: its start ends the promise.
    if (element.settled && !element.wait) continue;
    if (!element.wait && pass.out_of_budget) continue;
    PromiseChange change;
    change.step = PromiseStep::kDropped;
    change.workload = record.workload;
    change.gang = record.gang;
    change.cause = element.kept && !pass.kept[*element.kept].cause.empty()
                       ? pass.kept[*element.kept].cause
                   : element.wait ? element.wait->reason
                                  : "no planned start";
    pass.plan.promise_changes.push_back(std::move(change));
  }
}

}  // namespace tutti::scheduler
