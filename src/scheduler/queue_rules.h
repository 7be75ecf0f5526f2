// What a queue tree must be before it comes into force, and the queue a workload goes to.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "model/cluster_state.h"
#include "model/queue_api.h"

namespace tutti::scheduler {

// Everything that is wrong with the tree on this cluster: names, parents, cycles, resources, GPU
// types, limits that contradict each other, accounts of two queues; as warnings quotas above what
// the cluster has and limits without effect. In the order of the tree. Cost: O(n log n).
std::vector<QueueProblem> check_queues(const QueueTree& tree, const ClusterSpec& cluster);

// Parents before their children, otherwise as given. Of a tree without cycles and unknown parents.
QueueTree parents_first(QueueTree tree);

// The queue that is called so, by its name or another of its names.
const QueueSpec* find_queue(const QueueTree& tree, std::string_view name);
// The queue of a workload: the one it names; else its account's; else one called like its first
// partition; else the default one. nullptr: none of these, no quota applies.
const QueueSpec* queue_for(const QueueTree& tree, const Workload& workload);
// Whether a new workload may go where it would: the queue exists, has no children and is not
// closed. Reason "invalid_queue".
Status check_queue_takes(const QueueTree& tree, const Workload& workload);

// What is used of every queue, with the numbers of the tree as a pass sees it.
std::vector<QueueUse> queue_uses(const ClusterState& state);

}  // namespace tutti::scheduler
