// Reference outputs of real Slurm 22.05.8 (tests/golden/slurm) and the situation they were taken
// in: 4 nodes of 128 CPUs and 8 GPUs, alice's jobs 31..35 and the array 19.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "frontend/slurm/view_text.h"
#include "model/views.h"

namespace tutti::slurm::golden {

struct Command {
  std::string line, text, errors;
  int exit_code = 0;
};
// The commands of tests/golden/slurm/NAME.txt, in order; a command may occur more than once.
std::vector<Command> load(const std::string& name);

// 2026-11-30 at this time, UTC.
Instant at(int hour, int minute, int second);
TimeText times(Instant now, std::string_view format = {});

// Nodes, partitions and settings of the lab, without jobs.
StateView cluster();
// Jobs 31 (runs on node[01-02]), 32..35 (wait), as at 20:01:19.
StateView jobs_31_to_35();
// Array 19 of 8 elements, 2 at once, two of them running (gangs 20 and 21), as at 20:00:15.
StateView array_19();
// A workload as `sbatch` of alice lowers it: 1 task, account research, partition batch.
WorkloadView simple_job(std::uint32_t id, const std::string& name, Instant submitted);
GangView gang_on(std::uint32_t id, std::uint32_t workload, GangState state,
                 const std::vector<std::string>& nodes, std::uint32_t cpus_per_node,
                 std::uint64_t memory_mib, std::uint32_t gpus_per_node);

enum class Match : std::uint8_t { kExact, kAnyOrderOfLines };
struct Case {
  std::string line;
  std::size_t occurrence = 0;  // which of several equal command lines
  std::function<Output()> render;
  Match match = Match::kExact;
};
// Runs the cases against the file, prints "equal N of M compared" and fails for each that differs.
// Commands of the file that no case names must be in `kept` (see docs/slurm-compatibility.md).
void compare(const std::string& file, const std::vector<Case>& cases,
             const std::vector<std::string>& kept);

}  // namespace tutti::slurm::golden
