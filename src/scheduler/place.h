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

// The same with nodes of any domains: the topology is not looked at (place_gang.cpp).
std::optional<Placement> place_anywhere(Room& room, const Shape& shape, const NodeSet& usable);

// The lowest domain that holds the gang, or what else its TopologyNeed demands (place_topology.cpp).
// Complete where equal parts lie on each node: if the demands can be met, they are.
std::optional<Placement> place_in_domains(Room& room, const Shape& shape, const NodeSet& usable);
// Whether domains matter to it: several nodes on a cluster with a topology.
bool looks_at_domains(const ClusterIndex& cluster, const Shape& shape);

// One role alone (place_role.cpp); `index` goes into Share::role.
std::optional<Placement> place_role(const Room& room, const RoleNeed& need, std::uint32_t index,
                                    const NodeSet& usable);

}  // namespace tutti::scheduler
