// File names of a step's streams: Slurm's patterns (sbatch(1) and srun(1), "filename pattern").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/launch.h"

namespace tutti::agent {

struct PatternValues {
  const JobFacts* job = nullptr;
  const StepOrder* step = nullptr;
  std::string_view node;   // this node
  std::uint32_t rank = 0;  // global
};

// %j job, %J job.step (the job alone for a batch script), %A workload of an array, %a index in it,
// %x name, %u user, %N node, %n index of the node in the step, %t rank, %s step, %% a percent sign;
// a number pads with zeros up to 10 digits ("%4t"). Anything else stays as it is. A name with a
// backslash is taken literally without the backslashes, as Slurm does.
std::string expand_pattern(std::string_view pattern, const PatternValues& values);

// `path` below `directory` unless it is absolute.
std::string absolute_path(std::string_view directory, std::string_view path);

}  // namespace tutti::agent
