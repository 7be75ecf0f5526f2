// Placement of one gang on a Room: whole or not at all. Complete for a gang of one role: if any
// assignment exists, one is found. Several roles: a bounded exact search after the quick tries.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/room.h"
#include "scheduler/shape.h"

namespace tutti::scheduler {

// The part of a gang on one node: one slot to be.
struct Share {
  NodeIndex node = 0;
  std::uint32_t role = 0;
  std::uint32_t tasks = 0;
  Capacity take;
};
using Placement = std::vector<Share>;  // by node, then role

// Leaves `room` as it was. `usable` = nodes that may take work (all candidates beside them are
// passed over).
std::optional<Placement> place_gang(Room& room, const Shape& shape, const NodeSet& usable);

// One role alone (place_role.cpp); `index` goes into Share::role.
std::optional<Placement> place_role(const Room& room, const RoleNeed& need, std::uint32_t index,
                                    const NodeSet& usable);

}  // namespace tutti::scheduler
