// From a job as people name it to workloads, gangs and array elements.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/index_set.h"
#include "model/cluster_state.h"

namespace tutti::controller {

// What a name stands for: elements that have not started, and gangs that exist.
struct JobTarget {
  WorkloadId workload;
  bool simple_unstarted = false;
  IndexSet unstarted;
  std::vector<GangId> gangs;
  bool whole = false;  // every element of the workload
  bool empty() const { return !simple_unstarted && unstarted.empty() && gangs.empty(); }
};

// `job` is a workload's number (all its elements, or those in `array`) or a gang's own. Nothing if
// unknown. Cost: O(elements that exist).
std::optional<JobTarget> find_job(const ClusterState& state, std::uint32_t job, const IndexSet* array);
// Everything of a workload.
JobTarget whole_of(const WorkloadEntry& entry);

}  // namespace tutti::controller
