// Events of promises and reservations.
#include <fmt/format.h>

#include <algorithm>

#include "state/fold.h"

namespace tutti::state {

namespace {

std::pair<WorkloadId, GangId> key_of(const auto& record) { return {record.workload, record.gang}; }

auto place_of(std::vector<PromiseRecord>& records, WorkloadId workload, GangId gang) {
  return std::lower_bound(
      records.begin(), records.end(), std::pair(workload, gang),
      [](const PromiseRecord& record, const auto& key) { return key_of(record) < key; });
}

bool is_element(const ClusterState& state, WorkloadId workload, GangId gang) {
  if (gang) {
    const Gang* known = state.gangs.find(gang.value());
    return known && known->workload == workload && known->state == GangState::kPending;
  }
  const WorkloadEntry* entry = state.workloads.find(workload.value());
  return entry && entry->has_unstarted();
}

}  // namespace

void Fold::forget_promises(WorkloadId workload, Which which) {
  const auto& records = state.promises->records;
  auto first = std::lower_bound(
      records.begin(), records.end(), workload,
      [](const PromiseRecord& record, WorkloadId id) { return record.workload < id; });
  auto is_over = [&](const PromiseRecord& record) {
    return record.workload == workload &&
           (which == Which::kAll || !is_element(state, workload, record.gang));
  };
  bool any = false;
  for (auto it = first; it != records.end() && it->workload == workload; ++it)
    any = any || is_over(*it);
  if (!any) return;
  PromiseBook book = *state.promises;
  std::erase_if(book.records, is_over);
  state.promises = std::make_shared<const PromiseBook>(std::move(book));
}

void Fold::renumber_promises(const std::vector<std::optional<NodeIndex>>& now_at) {
  if (state.promises->records.empty()) return;
  PromiseBook book = *state.promises;
  for (PromiseRecord& record : book.records) {
    std::vector<PromisedRoom> rooms;
    for (PromisedRoom room : record.rooms) {
      if (room.node >= now_at.size() || !now_at[room.node]) continue;
      room.node = *now_at[room.node];
      rooms.push_back(std::move(room));
    }
    // Without one of them the pass looks for other room.
    if (rooms.size() < record.rooms.size()) rooms.clear();
    std::sort(rooms.begin(), rooms.end(), [](const PromisedRoom& one, const PromisedRoom& other) {
      return std::pair(one.node, one.role) < std::pair(other.node, other.role);
    });
    record.rooms = std::move(rooms);
  }
  state.promises = std::make_shared<const PromiseBook>(std::move(book));
}

Status Fold::operator()(const PromisesChanged& e) {
  PromiseBook book = *state.promises;
  for (const PromiseChange& change : e.changes) {
    auto place = place_of(book.records, change.workload, change.gang);
    const bool known =
        place != book.records.end() && key_of(*place) == std::pair(change.workload, change.gang);
    const bool made = change.step == PromiseStep::kMade;
    const bool fits = made ? !known && is_element(state, change.workload, change.gang)
                           : known && (change.step != PromiseStep::kMoved || place->firm);
    if (!fits)
      return fail(ErrorCode::kCorrupt,
                  fmt::format("a promise of workload {} is {}, which does not fit",
                              change.workload.value(), enum_name(change.step)));
    if (change.step == PromiseStep::kDropped) {
      book.records.erase(place);
      continue;
    }
    if (made) {
      PromiseRecord record;
      record.workload = change.workload;
      record.gang = change.gang;
      record.since = at;
      place = book.records.insert(place, std::move(record));
    }
    if (change.step == PromiseStep::kFirm) place->firm = true;
    if (change.step == PromiseStep::kMoved && change.at > place->at) {
      ++place->moves;
      place->cause = change.cause;
    }
    place->at = change.at;
    place->partition = change.partition;
    place->rooms = change.rooms;
  }
  state.promises = std::make_shared<const PromiseBook>(std::move(book));
  return {};
}

Status Fold::operator()(const ReservationSet& e) {
  ReservationList list = *state.reservations;
  auto place = std::lower_bound(
      list.all.begin(), list.all.end(), e.reservation.name,
      [](const Reservation& each, const std::string& name) { return each.name < name; });
  if (place != list.all.end() && place->name == e.reservation.name)
    *place = e.reservation;
  else
    list.all.insert(place, e.reservation);
  state.reservations = std::make_shared<const ReservationList>(std::move(list));
  return {};
}

Status Fold::operator()(const ReservationRemoved& e) {
  if (!state.reservations->find(e.name))
    return fail(ErrorCode::kCorrupt,
                fmt::format("reservation {} is removed, but there is none of that name", e.name));
  ReservationList list = *state.reservations;
  std::erase_if(list.all, [&](const Reservation& each) { return each.name == e.name; });
  state.reservations = std::make_shared<const ReservationList>(std::move(list));
  return {};
}

}  // namespace tutti::state
