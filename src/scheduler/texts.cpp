#include "scheduler/texts.h"

#include <fmt/format.h>

#include <algorithm>

namespace tutti::scheduler {

namespace {

bool all_exclusive(const Shape& shape) {
  return std::all_of(shape.roles.begin(), shape.roles.end(),
                     [](const RoleNeed& need) { return need.exclusive; });
}

}  // namespace

std::string count_text(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string need_text(const ClusterIndex& cluster, const Shape& shape) {
  std::string nodes = count_text(shape.nodes, "node");
  if (all_exclusive(shape)) return fmt::format("{} of its own", nodes);
  std::string out;
  if (shape.gpus > 0) {
    out = count_text(shape.gpus, "GPU");
    for (const RoleNeed& need : shape.roles) {
      if (need.any_gpu || !need.asks_gpus()) continue;
      out += fmt::format(" of {}", cluster.gpu_types()[need.gpu_type]);
      break;
    }
    out += " and ";
  }
  out += count_text(shape.cpus, "CPU");
  bool any_number = std::any_of(shape.roles.begin(), shape.roles.end(), [](const RoleNeed& need) {
    return need.nodes_max > need.nodes_min && need.nodes_min == 1;
  });
  if (any_number && shape.tasks > 1) return out + fmt::format(" in {} tasks", shape.tasks);
  if (any_number) return out;
  return out + (shape.nodes > 1 ? " on " + nodes : std::string(" on a node"));
}

std::string topology_text(const ClusterIndex& cluster, const Shape& shape) {
  const auto& levels = cluster.topology().levels();
  if (shape.topology.required)
    return fmt::format("no one {} holds all of it", levels[*shape.topology.required].name);
  if (shape.topology.segment > 1)
    return fmt::format("not enough segments of {} nodes within one {} each",
                       shape.topology.segment, levels[shape.topology.segment_level].name);
  return fmt::format("not on {}", count_text(shape.topology.switches, "switch"));
}

std::string free_text(const Shape& shape, const FreeTotals& totals) {
  if (all_exclusive(shape))
    return fmt::format("{} {} empty", totals.idle_nodes, totals.idle_nodes == 1 ? "is" : "are");
  if (shape.gpus == 0)
    return fmt::format("{} {} free in all",
                       count_text(static_cast<std::uint64_t>(totals.cpus), "CPU"),
                       totals.cpus == 1 ? "is" : "are");
  return fmt::format("{} and {} are free in all",
                     count_text(static_cast<std::uint64_t>(totals.gpus), "GPU"),
                     count_text(static_cast<std::uint64_t>(totals.cpus), "CPU"));
}

}  // namespace tutti::scheduler
