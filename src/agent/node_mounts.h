// The mounts of a virtual node, made inside its own mount namespace. Private to the node holder.
#pragma once

#include <string>
#include <vector>

#include "agent/virtual_cluster.h"
#include "base/error.h"

namespace tutti::agent {

struct NodeMounts {
  std::string name;
  std::string directory;
  std::string hosts_path;
  std::vector<NodeDevice> devices;
};
// Must run in a mount namespace of its own. What cannot be had and can be lived without is added
// to `missing`.
Status make_node_mounts(const NodeMounts& node, std::vector<std::string>& missing);

}  // namespace tutti::agent
