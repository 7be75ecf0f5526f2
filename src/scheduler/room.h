// Room: the free map that a placement is tried on. Either the present, with what is promised kept
// free (RoomNow), or a later moment, or a supposed one (RoomThen).
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "scheduler/free_map.h"
#include "scheduler/timeline.h"

namespace tutti::scheduler {

class Room {
 public:
  virtual ~Room() = default;
  virtual Capacity at(NodeIndex node) const = 0;
  // Calls visit for the nodes of the set in order of preference until it returns false; nodes with
  // less than `least` may be left out.
  using Visit = std::function<bool(NodeIndex)>;
  virtual void visit(const NodeSet& nodes, FreeMap::Least least, const Visit& visit) const = 0;
  // Counts only, while a gang of several roles is being tried; undone by give().
  virtual void take(NodeIndex node, const Capacity& amount) = 0;
  virtual void give(NodeIndex node, const Capacity& amount) = 0;
  const ClusterIndex& cluster() const { return cluster_; }
  // Nodes looked at so far: the work a pass is charged for.
  std::uint64_t looked() const { return looked_; }

 protected:
  explicit Room(const ClusterIndex& cluster) : cluster_(cluster) {}
  const ClusterIndex& cluster_;
  mutable std::uint64_t looked_ = 0;
};

// Now, for work that ends by `until` (never() if it does not): promises that begin before are kept.
class RoomNow : public Room {
 public:
  enum class Promises { kKept, kIgnored };
  RoomNow(FreeMap& free, const Timeline& timeline, Instant now, Instant until,
          Promises promises = Promises::kKept);
  // Promises of these owners may begin meanwhile: they would have the work recalled in time. Sorted.
  void set_recalling(std::vector<Timeline::Owner> owners) { recalling_ = std::move(owners); }
  bool may_be_recalled_by(Timeline::Owner owner) const {
    return std::binary_search(recalling_.begin(), recalling_.end(), owner);
  }
  Capacity at(NodeIndex node) const override;
  void visit(const NodeSet& nodes, FreeMap::Least least, const Visit& visit) const override;
  void take(NodeIndex node, const Capacity& amount) override { free_.take(node, amount); }
  void give(NodeIndex node, const Capacity& amount) override { free_.give(node, amount); }

 private:
  FreeMap& free_;
  const Timeline& timeline_;
  Instant now_, until_;
  std::vector<Timeline::Owner> recalling_;
  bool keeps_promises_;
};

// A map given node by node.
class RoomThen : public Room {
 public:
  explicit RoomThen(const ClusterIndex& cluster) : Room(cluster), free_(cluster.size()) {}
  void set(NodeIndex node, const Capacity& free) { free_[node] = free; }
  // Whether a placement exists does not depend on the order, and sorting is most of the cost.
  enum class Order { kPreferred, kByIndex };
  void set_order(Order order) { order_ = order; }
  Capacity at(NodeIndex node) const override { return free_[node]; }
  void visit(const NodeSet& nodes, FreeMap::Least least, const Visit& visit) const override;
  void take(NodeIndex node, const Capacity& amount) override { free_[node] -= amount; }
  void give(NodeIndex node, const Capacity& amount) override { free_[node] += amount; }

 private:
  std::vector<Capacity> free_;
  Order order_ = Order::kPreferred;
};

}  // namespace tutti::scheduler
