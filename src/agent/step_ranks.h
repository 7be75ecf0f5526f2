// The ranks of a step on this node as processes: forked up to a barrier, released at the go,
// reaped. Used by the single-threaded supervisor only, which is their parent and the subreaper of
// all they leave behind: when no child is left, nothing of the step is left.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "agent/process.h"
#include "agent/step_launch.h"
#include "agent/supervisor_protocol.h"

namespace tutti::agent {

// Descriptors that a rank gets as 0, 1, 2; all above 2.
struct RankDescriptors {
  int in = -1, out = -1, err = -1;
  bool terminal = false;  // `in` is to be its controlling terminal
};

struct RankStart {
  const SupervisorOrder* order = nullptr;
  const LaunchPlan* plan = nullptr;
  std::string notify_socket;
  bool reset_oom_score = false;
};

class StepRanks {
 public:
  // Forks one process per rank of the order; each has its session, streams, limits and environment
  // and waits. If one cannot be forked the others never run.
  Status fork_all(const RankStart& start, const std::vector<RankDescriptors>& descriptors);
  // All ranks execute their program. Later calls do nothing.
  void release();
  bool is_released() const { return released_; }
  // Ranks still at the barrier leave without having run anything.
  void abandon();

  // Readable when a rank could not execute, at end of file when all have; -1 then.
  int exec_reports() const { return exec_reports_.get(); }
  // True when this was the end: all ranks have executed or failed.
  bool on_exec_report();

  struct Reaped {
    std::vector<std::size_t> ranks;  // positions that have ended
    bool none_left = false;          // no process of the step is left at all
  };
  Reaped reap();
  bool all_ended() const { return ended_ == ranks_.size(); }

  // To every living rank: its process group, or (for a batch script) itself.
  void signal_ranks(int signal, bool groups) const;
  // To every process of the step.
  static void signal_tree(int signal);

  std::vector<std::uint32_t> pids() const;
  const std::vector<RankStatus>& statuses() const { return statuses_; }
  ExitStatus worst() const;

 private:
  struct Rank {
    pid_t pid = 0;
    bool ended = false;
    int exec_error = 0;
  };
  std::vector<Rank> ranks_;
  std::vector<RankStatus> statuses_;
  std::string command_;
  Descriptor barrier_;
  Descriptor exec_reports_;
  std::size_t ended_ = 0;
  bool released_ = false;
};

}  // namespace tutti::agent
