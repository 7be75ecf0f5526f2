// Names of the entities. A gang's number is what Slurm calls the job id; the first gang of a
// workload has the workload's own number, further elements of an array take new ones when they
// first start.
#pragma once

#include <cstdint>

#include "base/id.h"

namespace tutti {

using WorkloadId = Id<struct WorkloadTag>;
using GangId = Id<struct GangTag>;
// Grows with every allocation of the cluster; an order that carries an older one is refused.
using Epoch = Id<struct EpochTag, std::uint64_t>;

// Position in ClusterSpec::nodes.
using NodeIndex = std::uint32_t;

// Steps count from 0; the script of a batch job and the shell of an interactive allocation are
// steps of their own.
using StepId = std::int32_t;
constexpr StepId kBatchStep = -5;
constexpr StepId kExternStep = -4;
constexpr StepId kInteractiveStep = -6;

}  // namespace tutti
