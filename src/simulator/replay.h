// Replay: a trace on a cluster under a profile, and what became of every job.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "ledger/ledger.h"
#include "model/cluster.h"
#include "simulator/trace.h"
#include "simulator/world.h"

namespace tutti::simulator {

struct JobResult {
  std::uint32_t job = 0;  // position in Trace::jobs
  Instant submitted;
  Instant started;  // first; unset = it never did
  Instant ended;
  std::uint32_t starts = 0;
  friend bool operator==(const JobResult&, const JobResult&) = default;
};

// At a moment, for plots: in thousandths of GPUs, of CPUs where the cluster has no GPUs.
struct Sample {
  Instant at;
  std::uint64_t held = 0;
  std::uint32_t waiting = 0, running = 0;
};

struct ReplayOptions {
  WorldOptions world;
  // Asked between events; true ends the replay, which still reports what has been.
  std::function<bool()> interrupted;
  std::function<void(std::uint64_t jobs_over)> progress;
};

struct ReplayResult {
  std::string profile;
  std::vector<JobResult> jobs;  // as in the trace, without those that the cluster cannot hold
  TraceProblems refused;        // jobs that can never run there
  std::vector<Sample> samples;  // at each change, thinned to some thousands
  std::vector<ledger::TypeTotals> ledger;
  Instant begin, end;
  std::uint64_t capacity = 0;            // thousandths
  ledger::Units idle_while_waiting = 0;  // free while some job waited
  std::string unit;                      // what is counted: "GPU", "CPU"
  std::uint64_t passes = 0, work_units = 0;
  bool was_interrupted = false;
};

// Errors: a defect (an unsound plan), with how to repeat it.
Result<ReplayResult> replay(const Trace& trace, const ClusterSpec& spec,
                            const ReplayOptions& options);

}  // namespace tutti::simulator
