// The combinatorial part of placing one role: which of the nodes that could hold a part of it are
// taken, and how the tasks and GPUs are spread over them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/need.h"

namespace tutti::scheduler {

// A node that can hold at least one task of the role.
struct Option {
  NodeIndex node = 0;
  std::uint32_t most_tasks = 1;
  std::uint32_t most_gpus = 0;  // of RoleNeed::gpus_total
  bool required = false;
};

struct Chosen {
  NodeIndex node = 0;
  std::uint32_t tasks = 0;
  std::uint32_t gpus = 0;  // of RoleNeed::gpus_total
};

// `options` in order of preference, all nodes of RoleNeed::required among them. Complete: nullopt
// means that no subset of the options serves the role (counted features: greedily; job totals of
// GPUs beyond 5 million states: by the quick tries alone). The result is by node. Cost: O(n log n),
// with a GPU total in the worst case O(n x nodes x GPUs).
std::optional<std::vector<Chosen>> choose_nodes(const RoleNeed& need, const NodeChoice& choice,
                                                std::vector<Option> options);

}  // namespace tutti::scheduler
