// What makes a reservation out of an administrator's request, and who may use one. Pure. Rules: man
// scontrol (22.05), RESERVATIONS.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"
#include "model/cluster_state.h"

namespace tutti::controller {

// Fills in, chooses the nodes and checks. `request.action` is "create" or "update". Errors carry a
// word of model/reasons.h: times that make no sense, unknown nodes, an overlap, busy nodes.
// Cost: O(nodes + running gangs).
Result<Reservation> make_reservation(const ClusterState& state, const Agenda& agenda,
                                     const ReservationRequest& request, Instant now);

// Errors: kInvalidReservation (there is none, or it is over), kReservationAccess.
using InGroup = std::function<bool(const std::string& group)>;
Status may_use(const ClusterState& state, const Workload& workload, const InGroup& in_group,
               Instant now);

// Whether an open workload asks for it.
bool is_used(const ClusterState& state, const Agenda& agenda, const std::string& name);

// The next occurrence that is not over; unset when it does not repeat.
std::optional<Reservation> next_occurrence(const Reservation& reservation, Instant now);

}  // namespace tutti::controller
