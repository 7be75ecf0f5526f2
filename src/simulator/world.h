// World: a cluster in virtual time. It owns the state, the clock and what is due, and drives the
// production planner and the production fold: what starts when is decided by scheduler::plan() and
// by nothing here. It plays the part of the agents and of the users' programs: how long a start
// takes, how long work runs, which node fails.
//
// A function of its inputs: the same calls give the same states, byte for byte.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/event.h"
#include "scheduler/plan.h"
#include "state/apply.h"

namespace tutti::simulator {

struct WorldOptions {
  std::string profile = "tutti";
  std::uint32_t reserve_depth = 100;
  Duration start_delay;                        // from the decision until ranks run
  Duration avoid_for = Duration::seconds(30);  // how long a gang leaves out a node that failed it
  Duration release_delay;  // from the end of the last rank until its GPUs can be given out
  bool lint = false;       // look for broken invariants after every pass; costs as much again
  bool forget = true;      // drop what is over; else the whole history stays in the state
};

// What a watcher is told, after the state has changed.
struct WorldChange {
  enum class Kind : std::uint8_t { kSubmitted, kAllocated, kStarted, kEnding, kReleased, kOver };
  Kind kind;
  WorkloadId workload;
  GangId gang;  // 0 where none exists
};

class World {
 public:
  // All nodes are up. Errors: the specification names no nodes.
  static Result<World> create(ClusterSpec spec, Instant start, WorldOptions options);

  // The workload arrives now and would run for `run` if left alone (each element of an array).
  // It is ended at its limit. Errors: kInvalid, with the planner's word, when it can never run.
  Result<WorkloadId> submit(Workload workload, Duration run);
  // Any other change: a drained node, a quota, a cancelled job. What follows from it (running gangs
  // of a lost node end) is part of it. Errors: the fold's.
  Status change(EventBody body);
  // The node fails now; gangs on it end and those that may are queued again.
  Status fail_node(NodeIndex node, std::string reason);
  Status repair_node(NodeIndex node);

  // Moves the clock to `to` without doing anything yet, so that what arrives at that time is there
  // for the pass of advance(to). Errors: as advance().
  Status move_to(Instant to);
  // The next time at which something is due; never() when nothing is.
  Instant next_due() const;
  // Moves the clock to `to` (not back, not past next_due()), does all that is due then, plans once
  // and carries the plan out. Errors: a plan that the fold refuses, or a broken invariant.
  Status advance(Instant to);

  Instant now() const { return now_; }
  const ClusterState& state() const { return state_; }
  const Agenda& agenda() const { return agenda_; }
  const scheduler::Plan& last_plan() const { return plan_; }
  std::uint64_t passes() const { return passes_; }
  std::uint64_t work_units() const { return work_units_; }
  scheduler::PassInput input() const;
  void watch(std::function<void(const WorldChange&)> watcher) { watcher_ = std::move(watcher); }

 private:
  // Something that becomes due for one life of a gang.
  struct Due {
    enum class Kind : std::uint8_t {
      kForgive,
      kRelease,
      kEnd,
      kLeave,
      kGo
    };  // at one time: in this order
    Instant at;
    Kind kind;
    std::uint32_t gang;
    std::uint64_t epoch;
    std::uint64_t order;
    friend bool operator>(const Due& a, const Due& b) {
      return std::tie(a.at, a.kind, a.order) > std::tie(b.at, b.kind, b.order);
    }
  };

  World(ClusterSpec spec, Instant start, WorldOptions options);
  Status record(EventBody body);
  void tell(WorldChange::Kind kind, WorkloadId workload, GangId gang);
  void schedule(Due::Kind kind, Instant at, const Gang& gang);
  Status carry_out(const scheduler::Plan& plan);
  Status allocate(const scheduler::Start& start);
  Status evict(const scheduler::Evict& decided);
  Status leave(const Gang& gang);
  Status go(const Gang& gang);
  Status end(const Gang& gang, Outcome outcome, bool requeue, const std::string& avoid);
  Status release(const Gang& gang);
  Status on_due(const Due& due);
  Status forget_if_over(WorkloadId id);
  Status plan_now();

  WorldOptions options_;
  ClusterState state_;
  Agenda agenda_;
  Instant now_;
  bool dirty_ = false;  // something has changed since the last pass
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  std::map<std::uint32_t, Duration> runs_;  // by workload, while it is open
  std::uint64_t next_order_ = 1;
  scheduler::Plan plan_;
  std::uint64_t passes_ = 0, work_units_ = 0;
  std::function<void(const WorldChange&)> watcher_;
};

}  // namespace tutti::simulator
