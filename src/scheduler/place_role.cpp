#include <algorithm>

#include "scheduler/choose.h"
#include "scheduler/place.h"

namespace tutti::scheduler {

namespace {

std::uint32_t tasks_each(const RoleNeed& need) {
  return need.tasks_follow_nodes ? std::max(need.tasks_per_node, 1u) : 1u;
}

FreeMap::Least least_of(const Room& room, const RoleNeed& need) {
  auto threads = static_cast<std::int32_t>(room.cluster().most_threads());
  return {need.least_gpus(), std::max((need.least_cpus() + threads - 1) / threads, 1)};
}

Share share_of(const Room& room, const RoleNeed& need, std::uint32_t role, const Chosen& part) {
  return {part.node, role, part.tasks,
          take_of(need, room.cluster().of(part.node), room.at(part.node), part.tasks, part.gpus)};
}

// The same part on each of a fixed number of nodes (one node above all): the first nodes in order
// of preference that hold it. Most requests end here, after a look at few nodes.
std::optional<Placement> place_equal_parts(const Room& room, const RoleNeed& need,
                                           std::uint32_t role, const NodeChoice& choice,
                                           const NodeSet& usable) {
  std::uint32_t nodes = need.nodes_min;
  std::uint32_t tasks =
      need.tasks_follow_nodes ? tasks_each(need) : (need.tasks + nodes - 1) / nodes;
  std::uint32_t gpus = need.gpus_total == 0 ? 0 : (need.gpus_total + nodes - 1) / nodes;
  if (need.tasks_per_node > 0 && tasks > need.tasks_per_node) return std::nullopt;
  // A remainder would leave nodes with less than the others: choose_nodes() spreads it.
  bool even = need.tasks_follow_nodes || need.tasks % nodes == 0;
  if (!even || (need.gpus_total > 0 && need.gpus_total % nodes != 0)) return std::nullopt;
  Placement out;
  room.visit(choice.nodes, least_of(room, need), [&](NodeIndex node) {
    if (!usable.contains(node)) return true;
    const NodeClass& kind = room.cluster().of(node);
    Capacity free = room.at(node);
    if (!fits(need, kind, free, tasks, gpus)) return true;
    out.push_back({node, role, tasks, take_of(need, kind, free, tasks, gpus)});
    return out.size() < nodes;
  });
  if (out.size() < nodes) return std::nullopt;
  std::sort(out.begin(), out.end(), [](const Share& a, const Share& b) { return a.node < b.node; });
  return out;
}

std::optional<Placement> place_any_parts(const Room& room, const RoleNeed& need, std::uint32_t role,
                                         const NodeChoice& choice, const NodeSet& usable) {
  std::vector<Option> options;
  std::size_t required = 0;
  std::uint32_t least_tasks = tasks_each(need);
  room.visit(choice.nodes, least_of(room, need), [&](NodeIndex node) {
    if (!usable.contains(node)) return true;
    const NodeClass& kind = room.cluster().of(node);
    Capacity free = room.at(node);
    Option option{node, most_tasks(need, kind, free, std::max(need.tasks, least_tasks)),
                  most_gpus(need, kind, free), false};
    if (option.most_tasks < least_tasks || (need.gpus_total > 0 && option.most_gpus == 0))
      return true;
    if (need.tasks_follow_nodes) option.most_tasks = least_tasks;
    option.required = std::binary_search(need.required.begin(), need.required.end(), node);
    required += option.required;
    options.push_back(option);
    return true;
  });
  if (required < need.required.size()) return std::nullopt;
  auto chosen = choose_nodes(need, choice, std::move(options));
  if (!chosen) return std::nullopt;
  Placement out;
  for (const Chosen& part : *chosen) out.push_back(share_of(room, need, role, part));
  return out;
}

}  // namespace

std::optional<Placement> place_role(const Room& room, const RoleNeed& need, std::uint32_t index,
                                    const NodeSet& usable) {
  for (const NodeChoice& choice : need.choices) {
    bool plain = need.required.empty() && !need.contiguous && choice.counted.empty() &&
                 !need.prefers_many_nodes;
    if (plain) {
      if (auto found = place_equal_parts(room, need, index, choice, usable)) return found;
      // With one node allowed there is nothing else to try.
      if (need.nodes_max == 1) continue;
    }
    if (auto found = place_any_parts(room, need, index, choice, usable)) return found;
  }
  return std::nullopt;
}

}  // namespace tutti::scheduler
