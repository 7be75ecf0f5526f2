// Topology: the domains of the cluster (racks, blocks, switches), compiled from the labels of the
// nodes: for each level of ClusterSpec::topology_levels which nodes lie together. Owned by the
// ClusterIndex.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/cluster.h"

namespace tutti::scheduler {

class Topology {
 public:
  static constexpr std::uint32_t kNoDomain = 0xFFFFFFFF;

  struct Domain {
    std::string_view name;             // the value of the label
    std::uint32_t parent = kNoDomain;  // of the next wider level; none at the widest
    std::vector<NodeIndex> nodes;      // ascending
  };
  struct Level {
    std::string_view name;
    std::vector<std::uint32_t> domain_of;  // by node; kNoDomain where it or a wider one is unnamed
    std::vector<Domain> domains;           // in order of their first node
  };

  Topology() = default;
  // Refers to `spec`. Nodes with equal values of a level and of all wider ones are in one domain.
  // Cost: O(nodes x levels).
  explicit Topology(const ClusterSpec& spec);

  bool empty() const { return levels_.empty(); }
  const std::vector<Level>& levels() const { return levels_; }  // from the widest to the narrowest
  std::optional<std::uint32_t> level(std::string_view name) const;
  // The narrowest level with a domain of at least so many nodes, the widest if there is none.
  std::uint32_t narrowest_of(std::uint32_t nodes) const;

 private:
  std::vector<Level> levels_;
};

}  // namespace tutti::scheduler
