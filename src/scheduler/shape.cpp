#include "scheduler/shape.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "model/reasons.h"
#include "scheduler/features.h"
#include "scheduler/hash.h"

namespace tutti::scheduler {

namespace {

Error never(std::string_view reason, std::string message) {
  return Error{ErrorCode::kInvalid, std::string(reason), std::move(message), {}};
}

// How many nodes and tasks, with what sbatch leaves open filled in.
void count_members(const RoleAsk& ask, const PartitionSpec& partition, RoleNeed& need) {
  need.nodes_min = std::max({ask.nodes_min, partition.min_nodes, 1u});
  need.nodes_max = std::min(ask.nodes_max, partition.max_nodes);
  need.tasks_per_node = ask.tasks_per_node;
  need.tasks = std::max(ask.tasks, 1u);
  bool open = ask.nodes_max == kNoLimit;
  need.prefers_many_nodes = !open && ask.nodes_max > need.nodes_min;
  std::uint32_t each = std::max(ask.tasks_per_node, 1u);
  bool tasks_given = ask.tasks > 1;
  if (!tasks_given && (need.nodes_min > 1 || ask.tasks_per_node > 0 || ask.gpus_total > 0)) {
    need.tasks_follow_nodes = true;
    if (open && ask.gpus_total == 0) need.nodes_max = need.nodes_min;
    need.tasks = need.nodes_min * each;
  }
  need.tasks = std::max(need.tasks, need.nodes_min);
  if (!need.tasks_follow_nodes) need.nodes_max = std::min(need.nodes_max, need.tasks);
  if (ask.gpus_total > 0) need.nodes_max = std::min(need.nodes_max, ask.gpus_total);
  if (need.nodes_max <= need.nodes_min) need.prefers_many_nodes = false;
}

void size_members(const RoleAsk& ask, const PartitionSpec& partition, const ClusterSpec& spec,
                  RoleNeed& need) {
  need.cpus_per_task = std::max(ask.cpus_per_task, 1u);
  need.cpus_per_gpu = ask.cpus_per_gpu;
  need.cpus_per_node = ask.cpus_per_node;
  need.gpus_per_node = ask.gpus_per_node;
  need.gpus_per_task = ask.gpus_per_task;
  need.gpus_total = ask.gpus_total;
  need.part_profile = ask.gpu_profile;
  need.part_memory_mib = ask.gpu_memory_mib;
  need.part_permille = ask.gpu_share_permille;
  need.exclusive = ask.exclusive || partition.exclusive;
  need.contiguous = ask.contiguous;
  need.memory_whole_node = ask.memory_whole_node;
  need.memory_per_node = ask.memory_mib_per_node;
  need.memory_per_cpu = ask.memory_mib_per_cpu;
  need.memory_per_gpu = ask.memory_mib_per_gpu;
  if (need.memory_whole_node ||
      need.memory_per_node + need.memory_per_cpu + need.memory_per_gpu > 0)
    return;
  if (partition.default_memory_mib_per_node > 0)
    need.memory_per_node = partition.default_memory_mib_per_node;
  else if (partition.default_memory_mib_per_cpu > 0)
    need.memory_per_cpu = partition.default_memory_mib_per_cpu;
  else if (spec.default_memory_mib_per_node > 0)
    need.memory_per_node = spec.default_memory_mib_per_node;
  else
    need.memory_per_cpu = spec.default_memory_mib_per_cpu;
}

// The nodes that may be used at all, by name, partition and features.
std::optional<Error> choose_nodes(const ClusterIndex& cluster, std::size_t partition,
                                  const RoleAsk& ask, RoleNeed& need) {
  NodeSet nodes = cluster.partition_nodes(partition);
  for (const std::string& name : ask.nodes_in) {
    auto node = cluster.find(name);
    if (!node) return never(reason::kInvalidNode, fmt::format("there is no node {}", quote(name)));
    if (!nodes.contains(*node))
      return never(reason::kNeverFits, fmt::format("node {} is not in partition {}", name,
                                                   cluster.spec().partitions[partition].name));
    need.required.push_back(*node);
  }
  std::sort(need.required.begin(), need.required.end());
  need.required.erase(std::unique(need.required.begin(), need.required.end()), need.required.end());
  for (const std::string& name : ask.nodes_out) {
    auto node = cluster.find(name);
    if (!node) return never(reason::kInvalidNode, fmt::format("there is no node {}", quote(name)));
    nodes.remove(*node);
  }
  auto choices = choices_of(cluster, ask.features, nodes);
  if (!choices) return choices.error();
  need.choices = std::move(*choices);
  return std::nullopt;
}

// Leaves only nodes that could hold a slot when they are empty.
void keep_large_enough(const ClusterIndex& cluster, RoleNeed& need) {
  NodeSet large(cluster.size());
  std::uint32_t least_tasks = need.tasks_follow_nodes ? std::max(need.tasks_per_node, 1u) : 1u;
  for (const NodeClass& kind : cluster.classes())
    if (fits(need, kind, kind.full, least_tasks, need.gpus_total > 0 ? 1 : 0))
      large |= kind.members;
  need.candidates = NodeSet(cluster.size());
  for (NodeChoice& choice : need.choices) {
    choice.nodes &= large;
    for (CountedNodes& counted : choice.counted) counted.nodes &= large;
    need.candidates |= choice.nodes;
  }
}

void leave_out(const ClusterIndex& cluster, const std::vector<std::string>& avoid, RoleNeed& need) {
  need.left_out = NodeSet(cluster.size());
  for (const std::string& name : avoid) {
    auto node = cluster.find(name);
    // A node that the job insists on is tried again.
    if (!node || !need.candidates.contains(*node) ||
        std::binary_search(need.required.begin(), need.required.end(), *node))
      continue;
    need.left_out.add(*node);
  }
  if (need.left_out.empty()) return;
  need.candidates -= need.left_out;
  for (NodeChoice& choice : need.choices) {
    choice.nodes -= need.left_out;
    for (CountedNodes& counted : choice.counted) counted.nodes -= need.left_out;
  }
}

std::optional<Error> resolve_role(const ClusterIndex& cluster, std::size_t partition,
                                  const RoleAsk& ask, const std::vector<std::string>& avoid,
                                  RoleNeed& need) {
  const PartitionSpec& in = cluster.spec().partitions[partition];
  count_members(ask, in, need);
  size_members(ask, in, cluster.spec(), need);
  // Instances that the administrator made are devices of their own, with the profile as their type.
  if (!ask.gpu_profile.empty()) {
    auto made = cluster.gpu_type(ask.gpu_profile);
    if (!made && !ask.gpu_type.empty())
      made = cluster.gpu_type(fmt::format("{}_{}", ask.gpu_type, ask.gpu_profile));
    if (made) {
      need.part_profile.clear();
      need.any_gpu = false;
      need.gpu_type = *made;
    }
  }
  if (!ask.gpu_type.empty() && need.asks_gpus() && need.any_gpu) {
    auto type = cluster.gpu_type(ask.gpu_type);
    if (!type)
      return never(reason::kNeverFits,
                   fmt::format("no node has GPUs of type {}", quote(ask.gpu_type)));
    need.any_gpu = false;
    need.gpu_type = *type;
  }
  if (auto problem = choose_nodes(cluster, partition, ask, need)) return problem;
  if (in.max_memory_mib_per_node > 0 && need.memory_per_node > in.max_memory_mib_per_node)
    return never(reason::kMemoryNeverFits,
                 fmt::format("{} MiB of memory on a node; partition {} allows {} MiB",
                             need.memory_per_node, in.name, in.max_memory_mib_per_node));
  keep_large_enough(cluster, need);
  leave_out(cluster, avoid, need);
  return std::nullopt;
}

std::optional<Error> resolve_topology(const ClusterIndex& cluster, const TopologyAsk& ask,
                                      Shape& shape) {
  const Topology& topology = cluster.topology();
  auto level_of = [&](const std::string& name) -> Result<std::uint32_t> {
    if (auto level = topology.level(name)) return *level;
    return invalid(
        topology.empty()
            ? fmt::format("topology level {}: the cluster has no topology", quote(name))
            : fmt::format("topology level {}: the levels of the cluster are {}", quote(name),
                          join(cluster.spec().topology_levels, ", ")),
        std::string(reason::kNeverFits));
  };
  if (!ask.required.empty()) {
    auto level = level_of(ask.required);
    if (!level) return level.error();
    shape.topology.required = *level;
  }
  // Wherever there is a narrower domain that holds the gang, it is taken: nothing more to note.
  if (!ask.preferred.empty())
    if (auto level = level_of(ask.preferred); !level) return level.error();
  if (topology.empty()) return std::nullopt;  // --switches and --segment mean nothing then
  shape.topology.switches = ask.switches;
  if (ask.segment <= 1) return std::nullopt;
  const RoleNeed& need = shape.roles[0];
  if (shape.roles.size() > 1 || need.nodes_min % ask.segment != 0)
    return never(reason::kNeverFits,
                 fmt::format("a gang of {} nodes{} is not made of segments of {} nodes",
                             need.nodes_min, shape.roles.size() > 1 ? " and several roles" : "",
                             ask.segment));
  shape.roles[0].nodes_max = need.nodes_min;
  shape.roles[0].prefers_many_nodes = false;
  shape.topology.segment = ask.segment;
  shape.topology.segment_level = topology.narrowest_of(ask.segment);
  return std::nullopt;
}

void add_up(const RoleAsk& ask, const RoleNeed& need, Shape& shape) {
  shape.nodes += need.nodes_min;
  shape.tasks += need.tasks;
  std::uint32_t gpus = std::max(
      {need.gpus_per_node * need.nodes_min, need.gpus_per_task * need.tasks, need.gpus_total});
  shape.gpus += gpus;
  shape.cpus += std::max({need.tasks * need.cpus_per_task, gpus * need.cpus_per_gpu,
                          ask.cpus_per_node * need.nodes_min});
}

std::uint64_t hash_of(std::size_t partition, const std::vector<RoleAsk>& roles,
                      const std::vector<std::string>& avoid) {
  Hash hash;
  hash.add(partition).add(roles.size());
  auto pair = [](std::uint32_t a, std::uint32_t b) { return (std::uint64_t{a} << 32) | b; };
  for (const RoleAsk& ask : roles) {
    hash.add(pair(ask.nodes_min, ask.nodes_max)).add(pair(ask.tasks, ask.tasks_per_node));
    hash.add(pair(ask.cpus_per_task, ask.cpus_per_gpu))
        .add(pair(ask.cpus_per_node, ask.gpus_total));
    hash.add(pair(ask.gpus_per_node, ask.gpus_per_task)).add(ask.gpu_type).add(ask.features);
    hash.add(ask.memory_mib_per_node).add(ask.memory_mib_per_cpu).add(ask.memory_mib_per_gpu);
    hash.add(ask.gpu_profile).add(ask.gpu_memory_mib).add(ask.gpu_share_permille);
    hash.add(pair((ask.memory_whole_node ? 1u : 0u) | (ask.exclusive ? 2u : 0u),
                  ask.contiguous ? 1u : 0u));
    for (const std::string& node : ask.nodes_in) hash.add(node);
    for (const std::string& node : ask.nodes_out) hash.add(node);
  }
  for (const std::string& node : avoid) hash.add(node);
  return hash.value();
}

}  // namespace

Shape resolve_shape(const ClusterIndex& cluster, std::size_t partition,
                    const std::vector<RoleAsk>& roles, const std::vector<std::string>& avoid,
                    const TopologyAsk& topology) {
  Shape shape;
  shape.partition = partition;
  shape.candidates = NodeSet(cluster.size());
  shape.roles.resize(roles.size());
  for (std::size_t i = 0; i < roles.size(); ++i) {
    RoleNeed& need = shape.roles[i];
    const PartitionSpec& in = cluster.spec().partitions[partition];
    if (std::max(roles[i].nodes_min, 1u) > in.max_nodes || roles[i].nodes_max < in.min_nodes)
      shape.outside_node_limits = true;
    if (auto problem = resolve_role(cluster, partition, roles[i], avoid, need)) {
      if (!shape.never) shape.never = std::move(problem);
      continue;
    }
    shape.candidates |= need.candidates;
    add_up(roles[i], need, shape);
  }
  if (auto problem = resolve_topology(cluster, topology, shape); problem && !shape.never)
    shape.never = std::move(problem);
  return shape;
}

static void confine(Shape& shape, const NodeSet& nodes) {
  shape.candidates &= nodes;
  for (RoleNeed& need : shape.roles) {
    need.candidates &= nodes;
    for (NodeChoice& choice : need.choices) choice.nodes &= nodes;
  }
}

std::uint32_t ShapeTable::intern(std::size_t partition, const std::vector<RoleAsk>& roles,
                                 const std::vector<std::string>& avoid, const Within& within,
                                 const TopologyAsk& topology) {
  auto same = [&](const Entry& entry) {
    return entry.shape.partition == partition && entry.within == within.number &&
           *entry.roles == roles && *entry.avoid == avoid && entry.topology == topology;
  };
  // Jobs of one user often stand side by side.
  if (last_ < shapes_.size() && same(shapes_[last_])) return last_;
  std::uint64_t hash = hash_of(partition, roles, avoid);
  auto [first, last] = by_hash_.equal_range(hash);
  for (auto it = first; it != last; ++it)
    if (same(shapes_[it->second])) return last_ = it->second;
  last_ = static_cast<std::uint32_t>(shapes_.size());
  by_hash_.emplace(hash, last_);
  shapes_.push_back(
      {resolve_shape(cluster_, partition, roles, avoid, topology), &roles, &avoid, within.number,
       topology});
  if (within.nodes) confine(shapes_.back().shape, *within.nodes);
  return last_;
}

}  // namespace tutti::scheduler
