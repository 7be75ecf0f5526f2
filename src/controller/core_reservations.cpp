// What operators do to reservations, and what time does to them.
#include <algorithm>
#include <fmt/format.h>

#include "controller/core.h"
#include "controller/reservation_rules.h"
#include "model/reasons.h"

namespace tutti::controller {

void Core::on_reservation_request(ApiCall& call) {
  auto request = from_json<ReservationRequest>(std::string_view(call.body));
  if (!request) return refuse(call, Error{ErrorCode::kInvalid, std::string(reason::kMalformed), request.error().message, {}});
  if (!call.caller.is_operator)
    return refuse(call, Error{ErrorCode::kDenied, std::string(reason::kNotOperator), "only an operator may change reservations", {}});
  if (request->action == "delete") {
    if (!state_.reservations->find(request->name))
      return refuse(call, Error{ErrorCode::kNotFound, std::string(reason::kInvalidReservation), fmt::format("there is no reservation {}", request->name), {}});
    if (is_used(state_, agenda_, request->name))
      return refuse(call, Error{ErrorCode::kConflict, std::string(reason::kReservationBusy), fmt::format("jobs ask for reservation {}", request->name), {}});
    record(ReservationRemoved{request->name, call.caller.uid});
    return answer(call, {200, to_json(ActionReply{{{request->name, {}}}})});
  }
  if (request->action != "create" && request->action != "update")
    return refuse(call, Error{ErrorCode::kInvalid, std::string(reason::kMalformed), fmt::format("unknown action \"{}\": expected create, update or delete", request->action), {}});
  auto made = make_reservation(state_, agenda_, *request, now_);
  if (!made) return refuse(call, made.error());
  made->by_uid = call.caller.uid;
  std::string name = made->name;
  record(ReservationSet{std::move(*made)});
  answer(call, {200, to_json(ActionReply{{{name, {}}}})});
}

// Those that are over go, or move to their next occurrence.
void Core::check_reservations() {
  std::vector<Reservation> over;
  for (const Reservation& each : state_.reservations->all)
    if (each.end <= now_) over.push_back(each);
  for (const Reservation& each : over) {
    if (auto next = next_occurrence(each, now_))
      record(ReservationSet{std::move(*next)});
    else
      record(ReservationRemoved{each.name, std::nullopt});
  }
}

Instant Core::next_reservation_time() const {
  Instant next = Instant::never();
  for (const Reservation& each : state_.reservations->all) next = std::min(next, each.end);
  return next;
}

}  // namespace tutti::controller
