// The environment of a rank: a pure function of the facts of the job, the slot, the step and the
// rank. Names and forms are Slurm's (22.05; tests/golden/slurm/srun-env.txt), plus TUTTI_*.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/launch.h"

namespace tutti::agent {

struct RankIdentity {
  std::string node;           // this node
  std::uint32_t local = 0;    // position in StepOrder::ranks
  std::uint32_t pid = 0;      // of the rank
  std::string notify_socket;  // empty = none
  std::string notice_file;    // where a notice of the end is put
};

// "NAME=value" each. The variables of the submitter come first, in their order, without those that
// are set here; for a batch script also without what a surrounding job left (SLURM_JOB_*,
// SLURM_STEP_*...). Nothing else of the submitter's is changed.
// Devices are named by the node's indices; with gpus_per_task each rank sees its own.
std::vector<std::string> rank_environment(const JobFacts& job, const SlotOrder& slot,
                                          const StepOrder& step, const RankIdentity& rank);

// The value of `name` in a "NAME=value" list; nullptr-like empty view with data() == nullptr when
// it is not there.
std::string_view find_variable(const std::vector<std::string>& environment, std::string_view name);

// "batch", "extern", "interactive" or the number: as a step is named in paths and cgroups.
std::string step_word(StepId step);
// The inverse; nullopt for anything else.
std::optional<StepId> step_from_word(std::string_view word);

}  // namespace tutti::agent
