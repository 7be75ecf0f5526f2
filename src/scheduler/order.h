// Order: who comes first. Partition tier, then priority (Slurm's multifactor sum), then who has
// been eligible longer, then number. Total: no two candidates are equal.
#pragma once

#include <cstdint>

#include "scheduler/plan.h"

namespace tutti::scheduler {

// When the element could first be considered: submission or begin time.
Instant eligible_since(const Workload& workload, const Gang* gang);

// What one gang of it asks for at least: cpu, mem, node, gres/gpu, gres/gpu:TYPE.
TresAmounts asked_by(const Workload& workload);

// Priority in one partition.
PriorityParts priority_in(const PriorityBasis& basis, const PartitionSpec& partition,
                          const WorkloadEntry& entry, Instant now);

}  // namespace tutti::scheduler
