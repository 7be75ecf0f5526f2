// RoleNeed: a RoleAsk made definite for one partition of one cluster: defaults filled in, names
// resolved to indexes, the nodes that could serve it at all collected. And the arithmetic of what a
// slot takes from a node of a given kind.
//
// Source of the rules: man sbatch (22.05). Memory per CPU counts the CPUs of the slot, threads of
// whole cores included; an exclusive slot holds all CPUs and GPUs of its node and the memory it
// asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/cluster_index.h"

namespace tutti::scheduler {

// At least `count` of the gang's nodes are among `nodes` (features "a*2").
struct CountedNodes {
  NodeSet nodes;
  std::uint32_t count = 0;
};

// Nodes that can serve a role; of several alternatives ("[rack1|rack2]") one holds for the whole
// role.
struct NodeChoice {
  NodeSet nodes;
  std::vector<CountedNodes> counted;
};

struct RoleNeed {
  std::uint32_t nodes_min = 1;
  std::uint32_t nodes_max = 1;  // never more than tasks
  std::uint32_t tasks = 1;
  std::uint32_t tasks_per_node = 0;  // at most; 0 = no bound
  // As many nodes as possible up to nodes_max (-N 2-4), not as few (-n 64).
  bool prefers_many_nodes = false;
  // Tasks follow the number of nodes: tasks_per_node (or 1) on each (-N 2-4 without -n).
  bool tasks_follow_nodes = false;

  std::uint32_t cpus_per_task = 1, cpus_per_gpu = 0, cpus_per_node = 0;
  bool any_gpu = true;  // whatever type, also mixed; else gpu_type
  GpuType gpu_type = 0;
  std::uint32_t gpus_per_node = 0, gpus_per_task = 0, gpus_total = 0;
  // Each GPU counted above is a part of one: an instance of a MIG profile, or a share.
  std::string part_profile;
  std::uint64_t part_memory_mib = 0;
  std::uint32_t part_permille = 0;
  std::uint64_t memory_per_node = 0, memory_per_cpu = 0, memory_per_gpu = 0;  // MiB
  bool memory_whole_node = false;
  bool exclusive = false, contiguous = false;

  std::vector<NodeChoice> choices;  // in order of preference
  std::vector<NodeIndex> required;  // all part of the role, ascending
  NodeSet candidates;               // of all choices together
  NodeSet left_out;                 // would be candidates but for Gang::avoid_nodes

  bool asks_parts() const {
    return !part_profile.empty() || part_memory_mib > 0 || part_permille > 0;
  }
  bool asks_gpus() const { return gpus_per_node + gpus_per_task + gpus_total > 0; }
  // The least any slot needs; nodes with less are not looked at.
  std::int32_t least_gpus() const;
  std::int32_t least_cpus() const;
};

// What `tasks` tasks and `gpus_of_total` of gpus_total take from a node of that class.
struct SlotNeed {
  std::int32_t cores = 0;
  std::int32_t gpus = 0;
  std::int64_t memory_mib = 0;
};
SlotNeed slot_need(const RoleNeed& need, const NodeClass& node, std::uint32_t tasks,
                   std::uint32_t gpus_of_total);

// GPUs of the wanted type that are free and whole; for a role that asks for parts, how many of them
// there is room for.
std::int32_t free_gpus(const RoleNeed& need, const NodeClass& node, const Capacity& free);

bool fits(const RoleNeed& need, const NodeClass& node, const Capacity& free, std::uint32_t tasks,
          std::uint32_t gpus_of_total);

// The most tasks (at most `limit`) that fit with one GPU of the total, 0 if not even one does; and
// the most GPUs of the total (at most gpus_total) that fit with one task. The two do not compete:
// fits() holds for any pair up to both.
std::uint32_t most_tasks(const RoleNeed& need, const NodeClass& node, const Capacity& free,
                         std::uint32_t limit);
std::uint32_t most_gpus(const RoleNeed& need, const NodeClass& node, const Capacity& free);

// What such a slot takes, with the GPUs divided over the node's types: of one type where that is
// possible (the one with the fewest free), else from the fullest on. Requires fits().
Capacity take_of(const RoleNeed& need, const NodeClass& node, const Capacity& free,
                 std::uint32_t tasks, std::uint32_t gpus_of_total);

}  // namespace tutti::scheduler
