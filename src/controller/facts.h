// What is told to agents, derived from the state. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "model/cluster_state.h"
#include "model/launch.h"

namespace tutti::controller {

JobFacts job_facts(const ClusterState& state, const WorkloadEntry& entry, const Gang& gang);
SlotOrder slot_order(const Gang& gang, std::uint32_t slot);
// The batch step on the gang's first slot. `script` and `environment` are the stored texts.
StepOrder batch_order(const ClusterState& state, const WorkloadEntry& entry, const Gang& gang,
                      std::string script, const std::string& environment);
std::vector<std::string> split_environment(const std::string& nul_separated);

// The key of a submission or of a step request: 16 hexadecimal digits, not all zero; "" = 0, none.
// Errors: kInvalid.
Result<std::uint64_t> request_key(const std::string& text);

// "STEP 51.0 ON node01 CANCELLED AT ..." as Slurm words it; the agent adds its own name.
std::string job_text(const WorkloadEntry& entry, const Gang& gang);

}  // namespace tutti::controller
