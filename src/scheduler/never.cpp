// "Can never run here": judged at submit on the configured cluster with all nodes up and empty.
#include <fmt/format.h>

#include <algorithm>

#include "model/reasons.h"
#include "scheduler/place.h"
#include "scheduler/plan.h"
#include "scheduler/texts.h"

namespace tutti::scheduler {

namespace {

std::optional<Placement> place_on_empty(const ClusterIndex& cluster, const Shape& shape) {
  RoomThen room(cluster);
  NodeSet all(cluster.size());
  for (const NodeClass& kind : cluster.classes()) {
    all |= kind.members;
    kind.members.for_each([&](NodeIndex node) { room.set(node, kind.full); });
  }
  return place_gang(room, shape, all);
}

// The most tasks of a role that the cluster holds at once.
std::uint64_t placeable_tasks(const ClusterIndex& cluster, const RoleNeed& need) {
  std::vector<std::uint64_t> each;
  need.candidates.for_each([&](NodeIndex node) {
    const NodeClass& kind = cluster.of(node);
    each.push_back(most_tasks(need, kind, kind.full, need.tasks));
  });
  std::sort(each.rbegin(), each.rend());
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < each.size() && i < need.nodes_max; ++i) sum += each[i];
  return std::min<std::uint64_t>(sum, need.tasks);
}

// Whether memory alone stands in the way.
bool fits_without_memory(const ClusterIndex& cluster, std::size_t partition,
                         std::vector<RoleAsk> roles, const TopologyAsk& topology) {
  for (RoleAsk& ask : roles) {
    ask.memory_mib_per_cpu = ask.memory_mib_per_gpu = 0;
    ask.memory_mib_per_node = 1;
    ask.memory_whole_node = false;
  }
  Shape shape = resolve_shape(cluster, partition, roles, {}, topology);
  return !shape.never && place_on_empty(cluster, shape).has_value();
}

// Over the partition's own MaxNodes or under its MinNodes: Slurm accepts that and lets the job wait
// (PartitionNodeLimit), so only the machines are judged here.
bool is_limited_by_nodes(const PartitionSpec& partition, const std::vector<RoleAsk>& roles) {
  return std::any_of(roles.begin(), roles.end(), [&](const RoleAsk& ask) {
    return std::max(ask.nodes_min, 1u) > partition.max_nodes || ask.nodes_max < partition.min_nodes;
  });
}

Status check_partition(const ClusterIndex& cluster, std::size_t partition,
                       const std::vector<RoleAsk>& roles, const TopologyAsk& topology) {
  const PartitionSpec& spec = cluster.spec().partitions[partition];
  Shape shape = resolve_shape(cluster, partition, roles, {}, topology);
  if (shape.never) return tl::unexpected<Error>(*shape.never);
  bool limited = is_limited_by_nodes(spec, roles);
  if (limited) {
    PartitionSpec open = spec;
    ClusterSpec without = cluster.spec();
    without.partitions = {open};
    without.partitions[0].max_nodes = kNoLimit;
    without.partitions[0].min_nodes = 0;
    ClusterIndex index(without);
    if (place_on_empty(index, resolve_shape(index, 0, roles, {}, topology))) return {};
  } else if (place_on_empty(cluster, shape)) {
    return {};
  }
  std::string need = need_text(cluster, shape);
  if (!limited && fits_without_memory(cluster, partition, roles, topology))
    return invalid(fmt::format("needs {} with more memory than the nodes of partition {} have",
                               need, spec.name),
                   std::string(reason::kMemoryNeverFits));
  std::string detail;
  if (shape.topology.is_bound() &&
      place_on_empty(cluster, resolve_shape(cluster, partition, roles, {})))
    detail = fmt::format("; {}", topology_text(cluster, shape));
  for (const RoleNeed& need_of : shape.roles) {
    if (!detail.empty()) break;
    if (need_of.candidates.count() < need_of.nodes_min)
      detail =
          fmt::format("; {} of it {} large enough", count_text(need_of.candidates.count(), "node"),
                      need_of.candidates.count() == 1 ? "is" : "are");
    else if (std::uint64_t fit = placeable_tasks(cluster, need_of); fit < need_of.tasks)
      detail = fmt::format("; {} of {} tasks fit", fit, need_of.tasks);
  }
  return invalid(fmt::format("can never run here: needs {}, which partition {} does not have{}",
                             need, spec.name, detail),
                 std::string(reason::kNeverFits));
}

}  // namespace

Status check_can_ever_run(const ClusterSpec& spec, const Workload& workload) {
  ClusterIndex cluster(spec);
  std::vector<std::string> names = workload.partitions;
  if (names.empty()) names.emplace_back();
  for (const std::string& name : names) {
    if (cluster.partition(name)) continue;
    return invalid(name.empty() ? "no partition given and the cluster has no default"
                                : fmt::format("there is no partition {}", name),
                   std::string(reason::kInvalidPartition));
  }
  TopologyAsk topology = workload.extras->terms.topology;
  topology.switches = 0;  // in the end it starts with more of them
  // One of several partitions is enough; the first one's problem is told.
  std::optional<Error> first;
  for (const std::string& name : names) {
    Status status = check_partition(cluster, *cluster.partition(name), workload.roles, topology);
    if (status) return {};
    if (!first) first = status.error();
  }
  return tl::unexpected<Error>(*first);
}

}  // namespace tutti::scheduler
