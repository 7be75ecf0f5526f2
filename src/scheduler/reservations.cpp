// Administrators' reservations in a pass: rooms that are taken for a time for all but their users.
#include <algorithm>

#include "scheduler/pass.h"

namespace tutti::scheduler {

namespace {

constexpr Duration kDay = Duration::seconds(86400);
// Of repeated ones so many are seen ahead; what comes after counts as reserved throughout, so that
// nothing starts across an occurrence that is not seen yet.
constexpr int kOccurrences = 8;

Duration period_of(const Reservation& reservation) {
  using F = ReservationFlag;
  if (reservation.has(F::kWeekly)) return Duration::seconds(7 * 86400);
  if (reservation.has(F::kDaily) || reservation.has(F::kWeekday) || reservation.has(F::kWeekend))
    return kDay;
  return Duration();
}

}  // namespace

void book_reservations(Pass& pass) {
  const Instant now = pass.input.now;
  for (const Reservation& reservation : pass.input.state.reservations->all) {
    Reserved booked;
    booked.what = &reservation;
    booked.owner = static_cast<Timeline::Owner>(pass.owners.size());
    pass.owners.emplace_back();
    booked.nodes = NodeSet(pass.cluster.size());
    for (const std::string& name : reservation.nodes)
      if (auto node = pass.cluster.find(name)) booked.nodes.add(*node);
    const Duration period = period_of(reservation);
    const bool repeats = period > Duration();
    Instant start = reservation.start, end = reservation.end;
    for (; repeats && end <= now; start = start + period) end = end + period;
    for (int i = 1; i <= (repeats ? kOccurrences : 1); ++i) {
      if (repeats && i == kOccurrences) end = Instant::never();
      if (end > now) {
        const Instant from = std::max(start, now);
        booked.nodes.for_each([&](NodeIndex node) {
          Capacity all = pass.cluster.of(node).full;
          all.vacancy = 1;
          pass.timeline.add_promise(node, {from, end, booked.owner, all});
        });
        pass.plan.next_look = std::min(pass.plan.next_look, start > now ? start : end);
      }
      start = start + period;
      end = end + period;
    }
    pass.reserved.push_back(std::move(booked));
  }
}

std::optional<std::uint32_t> reservation_of(const Pass& pass, const Workload& workload) {
  const std::string& name = workload.extras->reservation;
  if (name.empty()) return std::nullopt;
  for (std::uint32_t i = 0; i < pass.reserved.size(); ++i)
    if (pass.reserved[i].what->name == name) return i;
  return kNoLimit;
}

Window window_of(const Pass& pass, const Candidate& candidate) {
  const Instant first = std::max(pass.input.now, candidate.not_before);
  if (candidate.reservation == kNoLimit) return {first, Instant::never()};
  const Reservation& own = *pass.reserved[candidate.reservation].what;
  if (own.has(ReservationFlag::kFlex)) return {first, Instant::never()};
  return {std::max(own.start, first), own.end};
}

SeenBy::SeenBy(Pass& pass, const Candidate& candidate) : pass_(pass) {
  before_ = pass.timeline.unseen();
  pass.timeline.set_unseen(candidate.reservation == kNoLimit
                               ? std::vector<Timeline::Owner>()
                               : std::vector{pass.reserved[candidate.reservation].owner});
}

SeenBy::~SeenBy() { pass_.timeline.set_unseen(std::move(before_)); }

std::vector<std::string> reservations_on(const Pass& pass, const Candidate& candidate) {
  std::vector<std::string> out;
  for (std::uint32_t i = 0; i < pass.reserved.size(); ++i)
    if (i != candidate.reservation &&
        pass.reserved[i].nodes.intersects(pass.shapes[candidate.shape].candidates))
      out.push_back("reservation " + pass.reserved[i].what->name);
  return out;
}

const Reservation* blocking_reservation(Pass& pass, const Candidate& candidate) {
  const Shape& shape = pass.shapes[candidate.shape];
  const Instant end = pass.end_of(candidate.limit);
  const Reservation* first = nullptr;
  std::vector<Timeline::Owner> unseen;
  for (std::uint32_t i = 0; i < pass.reserved.size(); ++i) {
    const Reserved& each = pass.reserved[i];
    unseen.push_back(each.owner);
    if (i == candidate.reservation || !each.nodes.intersects(shape.candidates)) continue;
    if (each.what->start >= end && period_of(*each.what) == Duration()) continue;
    if (!first || each.what->has(ReservationFlag::kMaint)) first = each.what;
  }
  if (!first) return nullptr;
  auto before = pass.timeline.unseen();
  pass.timeline.set_unseen(std::move(unseen));
  RoomNow room(pass.free, pass.timeline, pass.input.now, end);
  const bool fits = place_gang(room, shape, pass.free.usable()).has_value();
  pass.plan.stats.work_units += room.looked();
  pass.timeline.set_unseen(std::move(before));
  return fits ? first : nullptr;
}

}  // namespace tutti::scheduler
