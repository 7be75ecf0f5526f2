#include <algorithm>
#include <numeric>
#include <tuple>

#include "scheduler/place.h"

namespace tutti::scheduler {

namespace {

// Looks of the exact search; beyond it the answer is "not found now", never "cannot".
constexpr std::uint64_t kMostLooks = 200'000;
constexpr std::size_t kMostRolesPermuted = 4;

void sort_by_node(Placement& placement) {
  std::sort(placement.begin(), placement.end(), [](const Share& a, const Share& b) {
    return std::tie(a.node, a.role) < std::tie(b.node, b.role);
  });
}

// One role after the other in the given order, each on what the earlier ones left.
std::optional<Placement> place_in_order(Room& room, const Shape& shape, const NodeSet& usable,
                                        const std::vector<std::uint32_t>& order) {
  Placement all;
  bool whole = true;
  for (std::uint32_t role : order) {
    auto part = place_role(room, shape.roles[role], role, usable);
    if (!part) {
      whole = false;
      break;
    }
    for (const Share& share : *part) {
      room.take(share.node, share.take);
      all.push_back(share);
    }
  }
  for (const Share& share : all) room.give(share.node, share.take);
  if (!whole) return std::nullopt;
  sort_by_node(all);
  return all;
}

// Exact search node by node: at each, how many tasks of every role. For gangs of a few roles on a
// few nodes, where the order in which roles are placed decides.
class JointSearch {
 public:
  JointSearch(Room& room, const Shape& shape, const NodeSet& usable) : room_(room), shape_(shape) {
    shape.candidates.for_each([&](NodeIndex node) {
      if (usable.contains(node)) nodes_.push_back(node);
    });
    for (const RoleNeed& need : shape.roles) {
      left_.push_back(need.tasks_follow_nodes ? 0 : need.tasks);
      used_.push_back(0);
    }
  }

  // Only what the search models: plain roles, each task alike.
  bool applies() const {
    return std::all_of(shape_.roles.begin(), shape_.roles.end(), [](const RoleNeed& need) {
      return need.gpus_total == 0 && !need.contiguous && need.choices.size() == 1 &&
             need.choices[0].counted.empty();
    });
  }

  std::optional<Placement> run() {
    if (!search_node(0)) return std::nullopt;
    sort_by_node(found_);
    return found_;
  }

 private:
  bool search_node(std::size_t at) {
    if (std::all_of(left_.begin(), left_.end(), [](std::uint32_t n) { return n == 0; }) &&
        counts_are_right())
      return true;
    if (at == nodes_.size() || ++looks_ > kMostLooks) return false;
    return search_role(at, 0);
  }

  bool search_role(std::size_t at, std::uint32_t role) {
    if (role == shape_.roles.size()) return search_node(at + 1);
    const RoleNeed& need = shape_.roles[role];
    NodeIndex node = nodes_[at];
    const NodeClass& kind = room_.cluster().of(node);
    bool allowed = need.choices[0].nodes.contains(node) && used_[role] < need.nodes_max;
    // Tasks that follow the nodes come as a fixed number on each.
    std::uint32_t each = need.tasks_follow_nodes ? std::max(need.tasks_per_node, 1u) : 0;
    std::uint32_t wanted = each > 0 ? each : left_[role];
    std::uint32_t most = allowed ? most_tasks(need, kind, room_.at(node), wanted) : 0;
    if (most < each) most = 0;
    std::uint32_t least = each > 0 ? each : 1;
    bool required = std::binary_search(need.required.begin(), need.required.end(), node);
    for (std::uint32_t tasks = most; tasks >= least; --tasks) {
      Share share{node, role, tasks, take_of(need, kind, room_.at(node), tasks, 0)};
      room_.take(node, share.take);
      if (each == 0) left_[role] -= tasks;
      ++used_[role];
      found_.push_back(share);
      bool done = search_role(at, role + 1);
      room_.give(node, share.take);
      if (each == 0) left_[role] += tasks;
      --used_[role];
      if (done) return true;
      found_.pop_back();
      if (looks_ > kMostLooks) return false;
    }
    return !required && search_role(at, role + 1);
  }

  bool counts_are_right() const {
    for (std::size_t role = 0; role < shape_.roles.size(); ++role) {
      const RoleNeed& need = shape_.roles[role];
      if (used_[role] < need.nodes_min) return false;
      for (NodeIndex node : need.required) {
        bool there = std::any_of(found_.begin(), found_.end(), [&](const Share& share) {
          return share.node == node && share.role == role;
        });
        if (!there) return false;
      }
    }
    return true;
  }

  Room& room_;
  const Shape& shape_;
  std::vector<NodeIndex> nodes_;
  std::vector<std::uint32_t> left_, used_;
  Placement found_;
  std::uint64_t looks_ = 0;
};

}  // namespace

std::optional<Placement> place_gang(Room& room, const Shape& shape, const NodeSet& usable) {
  if (shape.never) return std::nullopt;
  return looks_at_domains(room.cluster(), shape) ? place_in_domains(room, shape, usable)
                                                 : place_anywhere(room, shape, usable);
}

std::optional<Placement> place_anywhere(Room& room, const Shape& shape, const NodeSet& usable) {
  if (shape.roles.size() == 1) return place_role(room, shape.roles[0], 0, usable);
  std::vector<std::uint32_t> order(shape.roles.size());
  std::iota(order.begin(), order.end(), 0u);
  // The most demanding role first; then, for few roles, every other order.
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const RoleNeed &x = shape.roles[a], &y = shape.roles[b];
    return std::tuple(x.exclusive, x.least_gpus(), x.least_cpus()) >
           std::tuple(y.exclusive, y.least_gpus(), y.least_cpus());
  });
  if (auto found = place_in_order(room, shape, usable, order)) return found;
  if (order.size() <= kMostRolesPermuted) {
    std::vector<std::uint32_t> other(order.size());
    std::iota(other.begin(), other.end(), 0u);
    do {
      if (other == order) continue;
      if (auto found = place_in_order(room, shape, usable, other)) return found;
    } while (std::next_permutation(other.begin(), other.end()));
  }
  JointSearch search(room, shape, usable);
  return search.applies() ? search.run() : std::nullopt;
}

}  // namespace tutti::scheduler
