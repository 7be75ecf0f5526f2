// Where the ranks of a step go inside an allocation that its gang already holds. Pure, like the
// planner; the controller carries it out.
#pragma once

#include <vector>

#include "base/error.h"
#include "model/api.h"
#include "model/cluster.h"
#include "model/gang.h"
#include "model/workload.h"

namespace tutti::scheduler {

struct StepLayout {
  std::vector<StepSlot> slots;  // in node order; ranks ascending within each
  std::uint32_t total_tasks = 0;
  std::uint32_t cpus_per_task = 1;
};

// Follows man srun: tasks default to the allocation's, nodes to as many as the tasks fill, block
// or cyclic distribution. A step takes the CPUs it asks for (as with --exact) and shares GPUs that
// it did not ask for by name. Errors: kConflict with reason step_resources_busy (other steps have
// them: try again), kInvalid with reason step_never_fits. Cost: O(slots x steps).
Result<StepLayout> lay_out_step(const ClusterSpec& spec, const Workload& workload, const Gang& gang,
                                const StepRequest& request);

}  // namespace tutti::scheduler
