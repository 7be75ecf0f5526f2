// Order: who comes first. Partition tier, then priority (Slurm's multifactor sum), then who has
// been eligible longer, then number. Total: no two candidates are equal.
#pragma once

#include <cstdint>

#include "scheduler/plan.h"

namespace tutti::scheduler {

// When the element could first be considered: submission or begin time.
Instant eligible_since(const Workload& workload, const Gang* gang);

// Priority in one partition.
PriorityParts priority_in(const PriorityBasis& basis, const PartitionSpec& partition,
                          const Workload& workload, Instant now);

}  // namespace tutti::scheduler
