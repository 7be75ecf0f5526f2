// Shapes: identical requests are resolved, tried and explained once per pass. A shape is what a
// gang asks for in one partition: its roles and the nodes it must avoid. The time limit is not part
// of it.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "model/gang.h"
#include "model/workload.h"
#include "scheduler/need.h"

namespace tutti::scheduler {

// TopologyAsk with its names resolved.
struct TopologyNeed {
  std::optional<std::uint32_t> required;  // level: all slots in one domain of it, or no start
  std::uint32_t segment = 0;              // nodes that lie in one domain of segment_level
  std::uint32_t segment_level = 0;
  std::uint32_t switches = 0;  // at most so many domains of the narrowest level; 0 = any
  bool is_bound() const { return required || segment > 1 || switches > 0; }
};

struct Shape {
  std::size_t partition = 0;
  std::vector<RoleNeed> roles;  // as in Workload::roles
  NodeSet candidates;           // of all roles together
  TopologyNeed topology;
  // What the request is worth as a whole, for priorities and texts.
  std::uint32_t nodes = 0, tasks = 0, cpus = 0, gpus = 0;
  bool outside_node_limits = false;  // of the partition: MinNodes, MaxNodes
  // Set when the request names what the cluster does not have, or needs more than any node set of
  // the partition has: a refusal word of model/reasons.h and a sentence.
  std::optional<Error> never;
};

// Makes a request definite. Never fails: what cannot be is noted in Shape::never. `avoid` are names
// of nodes that refused the last launches. Cost: O(classes of nodes x roles + nodes / 64).
Shape resolve_shape(const ClusterIndex& cluster, std::size_t partition,
                    const std::vector<RoleAsk>& roles, const std::vector<std::string>& avoid,
                    const TopologyAsk& topology = {});

class ShapeTable {
 public:
  explicit ShapeTable(const ClusterIndex& cluster) : cluster_(cluster) {}

  // Nodes that a request is confined to, and a number that tells apart requests that are otherwise
  // equal but see other rooms (users of a reservation). 0 = none.
  struct Within {
    std::uint32_t number = 0;
    const NodeSet* nodes = nullptr;
  };
  // The number of the shape; `roles` and `avoid` must outlive the table.
  std::uint32_t intern(std::size_t partition, const std::vector<RoleAsk>& roles,
                       const std::vector<std::string>& avoid, const Within& within,
                       const TopologyAsk& topology);
  const Shape& operator[](std::uint32_t id) const { return shapes_[id].shape; }
  const TopologyAsk& topology_of(std::uint32_t id) const { return shapes_[id].topology; }
  std::size_t size() const { return shapes_.size(); }

 private:
  struct Entry {
    Shape shape;
    const std::vector<RoleAsk>* roles;
    const std::vector<std::string>* avoid;
    std::uint32_t within = 0;
    TopologyAsk topology;
  };
  const ClusterIndex& cluster_;
  std::deque<Entry> shapes_;  // references stay good
  std::unordered_multimap<std::uint64_t, std::uint32_t> by_hash_;  // looked up, never iterated
  std::uint32_t last_ = 0;
};

}  // namespace tutti::scheduler
