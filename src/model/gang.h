// Gang: the unit that is placed and started whole, with what it holds and how it fared. A gang
// exists from its first allocation on; before that it is only an element of its workload.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/archive.h"
#include "base/time.h"
#include "model/device_part.h"
#include "model/eviction.h"
#include "model/ids.h"
#include "model/workload.h"

namespace tutti {

enum class GangState : std::uint8_t {
  kPending,    // holds nothing (again): was released or requeued
  kPreparing,  // holds its slots; the roll call is under way, no rank has run
  kRunning,    // "go" was said
  kEnding,     // ranks are being ended, slots are being cleaned
  kDone,
};
template <>
struct EnumNames<GangState> {
  static constexpr std::array kTable{
      std::pair{GangState::kPending, "pending"sv}, std::pair{GangState::kPreparing, "preparing"sv},
      std::pair{GangState::kRunning, "running"sv}, std::pair{GangState::kEnding, "ending"sv},
      std::pair{GangState::kDone, "done"sv}};
};

enum class Outcome : std::uint8_t {
  kNone,
  kCompleted,
  kFailed,
  kCancelled,
  kTimeout,
  kNodeFail,
  kOutOfMemory,
  kPreempted,
  kDeadline,
  kLaunchFailed,
  kRequeued,
};
template <>
struct EnumNames<Outcome> {
  static constexpr std::array kTable{std::pair{Outcome::kNone, "none"sv},
                                     std::pair{Outcome::kCompleted, "completed"sv},
                                     std::pair{Outcome::kFailed, "failed"sv},
                                     std::pair{Outcome::kCancelled, "cancelled"sv},
                                     std::pair{Outcome::kTimeout, "timeout"sv},
                                     std::pair{Outcome::kNodeFail, "node_fail"sv},
                                     std::pair{Outcome::kOutOfMemory, "out_of_memory"sv},
                                     std::pair{Outcome::kPreempted, "preempted"sv},
                                     std::pair{Outcome::kDeadline, "deadline"sv},
                                     std::pair{Outcome::kLaunchFailed, "launch_failed"sv},
                                     std::pair{Outcome::kRequeued, "requeued"sv}};
};

// How a process or step ended, as wait(2) tells: an exit code, or the signal that killed it.
struct ExitStatus {
  std::int32_t code = 0;
  std::int32_t signal = 0;
  friend bool operator==(const ExitStatus&, const ExitStatus&) = default;
};
template <class A>
void describe(A& a, ExitStatus& x) {
  a("code", x.code);
  a("signal", x.signal);
}

// The room for the members of a gang on one node. `cpu_ids`: logical CPUs of the node.
struct Slot {
  NodeIndex node = 0;
  std::uint32_t role = 0;  // index into Workload::roles
  std::uint32_t tasks = 1;
  std::vector<std::uint16_t> cpu_ids;
  std::uint64_t memory_mib = 0;
  std::vector<std::uint16_t> gpus;  // whole devices: indices of the node, ascending
  std::vector<DevicePart> parts;    // of devices that are shared, by device, start
  bool exclusive = false;
  bool released = false;  // clean again: nothing of the gang is left there
};
template <class A>
void describe(A& a, Slot& x) {
  a("node", x.node);
  a("role", x.role);
  a("tasks", x.tasks);
  a("cpu_ids", x.cpu_ids);
  a("memory_mib", x.memory_mib);
  a("gpus", x.gpus);
  a("parts", x.parts);
  a("exclusive", x.exclusive);
  a("released", x.released);
}

enum class StepState : std::uint8_t { kPreparing, kRunning, kDone };
template <>
struct EnumNames<StepState> {
  static constexpr std::array kTable{std::pair{StepState::kPreparing, "preparing"sv},
                                     std::pair{StepState::kRunning, "running"sv},
                                     std::pair{StepState::kDone, "done"sv}};
};

struct Usage {
  std::uint64_t cpu_ms = 0;
  std::uint64_t max_rss_kib = 0;
};
template <class A>
void describe(A& a, Usage& x) {
  a("cpu_ms", x.cpu_ms);
  a("max_rss_kib", x.max_rss_kib);
}

// What a step uses of one slot of its gang.
struct StepSlot {
  std::uint32_t slot = 0;  // index into Gang::slots
  std::vector<std::uint32_t> ranks;
  std::uint32_t cpus = 0;
  std::vector<std::uint16_t> gpus;
  bool done = false;
};
template <class A>
void describe(A& a, StepSlot& x) {
  a("slot", x.slot);
  a("ranks", x.ranks);
  a("cpus", x.cpus);
  a("gpus", x.gpus);
  a("done", x.done);
}

struct Step {
  StepId id = 0;
  std::uint64_t request_key = 0;  // of the request that made it; 0 = none
  std::string name;
  StepState state = StepState::kPreparing;
  Instant created, started, ended;
  std::vector<StepSlot> slots;
  std::uint32_t cpus_per_task = 1;
  bool overlap = false;     // shares CPUs and GPUs with other steps
  bool takes_gpus = false;  // asked for GPUs by name, so they are its own
  ExitStatus exit;          // the worst of its ranks
  Outcome outcome = Outcome::kNone;
  Usage usage;
  std::string reason;  // why it could not be launched
};
template <class A>
void describe(A& a, Step& x) {
  a("id", x.id);
  a("request_key", x.request_key);
  a("name", x.name);
  a("state", x.state);
  a("created_ms", x.created);
  a("started_ms", x.started);
  a("ended_ms", x.ended);
  a("slots", x.slots);
  a("cpus_per_task", x.cpus_per_task);
  a("overlap", x.overlap);
  a("takes_gpus", x.takes_gpus);
  a("exit", x.exit);
  a("outcome", x.outcome);
  a("usage", x.usage);
  a("reason", x.reason);
}

struct Gang {
  GangId id;
  WorkloadId workload;
  std::optional<std::uint32_t> array_index;
  GangState state = GangState::kPending;
  Outcome outcome = Outcome::kNone;
  Epoch epoch;              // of the present or last allocation
  std::string partition;    // where it was placed
  std::vector<Slot> slots;  // empty while pending
  Hold hold = Hold::kNone;  // of this element alone
  std::string hold_reason;
  Instant eligible;  // earliest next start (back-off, requeue)
  Instant allocated, started, ended;
  Instant charged_from;  // what it holds since then is not yet in the usage; unset = not charged
  Instant limit_end;                     // when the time limit ends; unset = no limit
  std::uint32_t restarts = 0;            // requeues that count for the user
  std::uint32_t launch_failures = 0;     // roll calls refused since the last success
  std::vector<std::string> avoid_nodes;  // nodes that refused the last roll calls
  std::string last_failure;              // why the last attempt did not start
  ExitStatus exit, derived_exit;         // of the batch script; worst of the steps
  std::optional<std::uint32_t> ended_by_uid;
  bool warned = false;                // the warning signal before the time limit was sent
  std::uint16_t rendezvous_port = 0;  // distinct from those of other gangs on its nodes
  bool requeue_when_clean = false;    // pending again, not done, once every slot is released
  std::vector<Step> steps;
  std::optional<Eviction> eviction;  // it is leaving, or a part of it
  Instant checkpointed;              // when it last reported a saved state
  std::uint64_t checkpoint_step = 0;
  Instant ranks_met;            // when its ranks reported that all have met
  Instant suspended;            // stopped in place since then
  std::uint32_t evictions = 0;  // lives that ended so that another could start
  std::string evicted_for;      // why the last one did, for its next life
};
template <class A>
void describe(A& a, Gang& x) {
  a("id", x.id);
  a("workload", x.workload);
  a("array_index", x.array_index);
  a("state", x.state);
  a("outcome", x.outcome);
  a("epoch", x.epoch);
  a("partition", x.partition);
  a("slots", x.slots);
  a("hold", x.hold);
  a("hold_reason", x.hold_reason);
  a("eligible_ms", x.eligible);
  a("allocated_ms", x.allocated);
  a("started_ms", x.started);
  a("ended_ms", x.ended);
  a("charged_from_ms", x.charged_from);
  a("limit_end_ms", x.limit_end);
  a("restarts", x.restarts);
  a("launch_failures", x.launch_failures);
  a("avoid_nodes", x.avoid_nodes);
  a("last_failure", x.last_failure);
  a("exit", x.exit);
  a("derived_exit", x.derived_exit);
  a("ended_by_uid", x.ended_by_uid);
  a("warned", x.warned);
  a("rendezvous_port", x.rendezvous_port);
  a("requeue_when_clean", x.requeue_when_clean);
  a("steps", x.steps);
  a("eviction", x.eviction);
  a("checkpointed_ms", x.checkpointed);
  a("checkpoint_step", x.checkpoint_step);
  a("ranks_met_ms", x.ranks_met);
  a("suspended_ms", x.suspended);
  a("evictions", x.evictions);
  a("evicted_for", x.evicted_for);
}

}  // namespace tutti
