// FreeMap: what is free on every node now, down to the core and the device, with an index by free
// capacity. A pass holds one and takes from it as it starts gangs.
//
// Order of preference among nodes, the same for every request: lower weight, then fewest free GPUs
// and CPUs (the best fit: what has little left is filled up, a node that is free as a whole is
// broken last), then index. Nodes that may not take work are not in the index.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "model/gang.h"
#include "scheduler/cluster_index.h"

namespace tutti::scheduler {

class FreeMap {
 public:
  // All of every node is free; only nodes in `usable` are indexed once build_index() was called.
  FreeMap(const ClusterIndex& cluster, NodeSet usable);

  const ClusterIndex& cluster() const { return cluster_; }
  const NodeSet& usable() const { return usable_; }
  const Capacity& at(NodeIndex node) const { return free_[node]; }

  // Books what a gang holds already. Returns what that is as counts. Devices or CPUs that the
  // configuration no longer has are passed over.
  Capacity hold(const Slot& slot);
  // After the last hold() and before the first of what follows.
  void build_index();

  // Counts only, while a gang of several roles is being tried.
  void take(NodeIndex node, const Capacity& amount);
  void give(NodeIndex node, const Capacity& amount);
  // Picks cores and devices (the lowest free, devices side by side where possible) and books them.
  // Requires that `amount` is free. Devices of it that were not chosen yet are, in `amount` too.
  Slot start(NodeIndex node, Capacity& amount);

  // Calls visit(node) for the usable candidates in order of preference, leaving out nodes with
  // fewer free GPUs or cores than given, until it returns false.
  struct Least {
    std::int32_t gpus = 0;
    std::int32_t cores = 0;
  };
  template <class Visit>
  void visit(const NodeSet& candidates, Least least, Visit&& visit) const {
    for (auto it = buckets_.begin(); it != buckets_.end();) {
      Key key = Key::unpack(it->first);
      if (key.gpus < least.gpus) {
        it = buckets_.lower_bound(Key{key.weight, least.gpus, false, 0}.pack());
        continue;
      }
      if (key.cores < least.cores) {
        it = buckets_.lower_bound(Key{key.weight, key.gpus, key.idle, least.cores}.pack());
        continue;
      }
      for (NodeIndex node : it->second)
        if (candidates.contains(node) && !visit(node)) return;
      ++it;
    }
  }

 private:
  struct Key {
    std::uint32_t weight = 0;
    std::int32_t gpus = 0;
    bool idle = false;
    std::int32_t cores = 0;
    std::uint64_t pack() const {
      return (std::uint64_t{weight} << 32) | (static_cast<std::uint64_t>(gpus) << 21) |
             (std::uint64_t{idle} << 20) | static_cast<std::uint64_t>(cores);
    }
    static Key unpack(std::uint64_t packed) {
      return {static_cast<std::uint32_t>(packed >> 32),
              static_cast<std::int32_t>((packed >> 21) & 0x7FF), ((packed >> 20) & 1) != 0,
              static_cast<std::int32_t>(packed & 0xFFFFF)};
    }
  };
  std::uint64_t key_of(NodeIndex node) const;
  void index(NodeIndex node);
  void unindex(NodeIndex node);
  void change(NodeIndex node, const Capacity& amount, bool taken);
  void pick_cores(NodeIndex node, std::int32_t count, Slot& slot);
  void pick_gpus(NodeIndex node, std::size_t type, std::int32_t count, Slot& slot);
  void choose_devices(NodeIndex node, Capacity& amount) const;
  bool core_is_free(NodeIndex node, std::uint32_t core) const;
  bool gpu_is_free(NodeIndex node, std::uint32_t device) const;

  const ClusterIndex& cluster_;
  NodeSet usable_;
  std::vector<Capacity> free_;
  // Bit sets of busy cores and devices, node after node.
  std::vector<std::uint64_t> busy_;
  std::vector<std::uint32_t> cores_at_, devices_at_;
  std::map<std::uint64_t, std::vector<NodeIndex>> buckets_;  // node lists are sorted
  bool indexed_ = false;
};

}  // namespace tutti::scheduler
