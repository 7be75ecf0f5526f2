// The one definition of what an event means: event -> state. Pure; used by the controller while it
// decides, by recovery, by the simulator and by tests, so all of them agree.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "model/cluster_state.h"
#include "model/event.h"

namespace tutti::state {

// Folds the event in and keeps the agenda right. An event that does not fit the state (names an
// unknown gang, comes in the wrong phase) changes nothing and is kCorrupt: a controller that gets
// this for an event of its own has a defect, a recovery has a damaged journal.
// Cost: O(log n) and a copy of the record that changes.
Status apply(ClusterState& state, Agenda& agenda, const Event& event);

// The agenda from scratch: what apply() must have kept. O(n); debug builds compare.
Agenda derive_agenda(const ClusterState& state);

// The whole state as text, and back. The journal's snapshot. Errors: kCorrupt, kInvalid.
std::string encode_snapshot(const ClusterState& state);
Result<ClusterState> decode_snapshot(std::string_view text);

}  // namespace tutti::state
