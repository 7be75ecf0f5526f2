// What Slurm's options have no words for: the queue, the group, whom a job yields to. Said in lines
// "#TUTTI KEY=VALUE ..." of a batch script, which Slurm takes for comments, or in the environment
// as TUTTI_KEY, which counts before the script.
#pragma once

#include <string_view>

#include "frontend/slurm/lowering_parts.h"

namespace tutti::slurm {

// Keys: queue=NAME, group=NAME:SIZE, gpu-types=A,B, reclaim=MODE, notice=60s, min-runtime=10m,
// elastic=yes, ready-deadline=5m. `script` may be empty. Lines count up to the first command, as #SBATCH does.
Parsed<void> lower_terms(Lowering& lowering, std::string_view script, std::string_view file,
                         Terms& terms);

}  // namespace tutti::slurm
