// The events of a gang's life: allocated, roll call, started, steps, ending, released. See
// model/event.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/archive.h"
#include "base/time.h"
#include "model/gang.h"
#include "model/ids.h"

namespace tutti {

// The decision to start: from here the gang holds its slots. Creates the gang at its first start.
struct GangAllocated {
  static constexpr std::string_view kName = "gang_allocated";
  GangId gang;
  WorkloadId workload;
  std::optional<std::uint32_t> array_index;
  Epoch epoch;
  std::string partition;
  std::vector<Slot> slots;
  Instant limit_end;
  std::uint16_t rendezvous_port = 0;  // distinct from those of other gangs on its nodes; 0 = none
};
void describe(auto& a, GangAllocated& x) {
  a("gang", x.gang);
  a("workload", x.workload);
  a("array_index", x.array_index);
  a("epoch", x.epoch);
  a("partition", x.partition);
  a("slots", x.slots);
  a("limit_end_ms", x.limit_end);
  a("rendezvous_port", x.rendezvous_port);
}

// The roll call failed: no rank has run a line; everything is given back. `node` and `reason` say
// why; the gang waits until `retry_at` and leaves `node` out. After too many it is held.
struct RollCallFailed {
  static constexpr std::string_view kName = "roll_call_failed";
  GangId gang;
  std::string node, reason;
  Instant retry_at;
  bool avoid_node = true;
  bool hold = false;
};
void describe(auto& a, RollCallFailed& x) {
  a("gang", x.gang);
  a("node", x.node);
  a("reason", x.reason);
  a("retry_at_ms", x.retry_at);
  a("avoid_node", x.avoid_node);
  a("hold", x.hold);
}

// The nodes that refused a gang's roll calls may be tried again.
struct AvoidanceExpired {
  static constexpr std::string_view kName = "avoidance_expired";
  GangId gang;
};
void describe(auto& a, AvoidanceExpired& x) { a("gang", x.gang); }

// "Go": durable before any agent hears it. A batch workload's step `batch` begins with it.
struct GangStarted {
  static constexpr std::string_view kName = "gang_started";
  GangId gang;
  Instant limit_end;
};
void describe(auto& a, GangStarted& x) {
  a("gang", x.gang);
  a("limit_end_ms", x.limit_end);
}

// The warning signal before the time limit goes out once, whatever restarts in between.
struct GangWarned {
  static constexpr std::string_view kName = "gang_warned";
  GangId gang;
};
void describe(auto& a, GangWarned& x) { a("gang", x.gang); }

struct StepCreated {
  static constexpr std::string_view kName = "step_created";
  GangId gang;
  Step step;
};
void describe(auto& a, StepCreated& x) {
  a("gang", x.gang);
  a("step", x.step);
}

struct StepStarted {
  static constexpr std::string_view kName = "step_started";
  GangId gang;
  StepId step = 0;
};
void describe(auto& a, StepStarted& x) {
  a("gang", x.gang);
  a("step", x.step);
}

struct StepEnded {
  static constexpr std::string_view kName = "step_ended";
  GangId gang;
  StepId step = 0;
  ExitStatus exit;
  Outcome outcome = Outcome::kCompleted;
  Usage usage;
  std::string reason;
};
void describe(auto& a, StepEnded& x) {
  a("gang", x.gang);
  a("step", x.step);
  a("exit", x.exit);
  a("outcome", x.outcome);
  a("usage", x.usage);
  a("reason", x.reason);
}

// The end of a gang is decided; its ranks are being ended and its slots cleaned.
struct GangEnding {
  static constexpr std::string_view kName = "gang_ending";
  GangId gang;
  Outcome outcome = Outcome::kCompleted;
  ExitStatus exit;
  std::optional<std::uint32_t> by_uid;
  std::string reason;
  // Instead of ending for good: pending again once clean.
  bool requeue = false;
  bool counts_as_restart = false;
  bool hold = false;
  Instant eligible;
  std::string avoid_node;
};
void describe(auto& a, GangEnding& x) {
  a("gang", x.gang);
  a("outcome", x.outcome);
  a("exit", x.exit);
  a("by_uid", x.by_uid);
  a("reason", x.reason);
  a("requeue", x.requeue);
  a("counts_as_restart", x.counts_as_restart);
  a("hold", x.hold);
  a("eligible_ms", x.eligible);
  a("avoid_node", x.avoid_node);
}

// An elastic gang has given up slots that are clean, or gets new ones. Numbers of the slots that
// stay close up; steps follow.
struct GangResized {
  static constexpr std::string_view kName = "gang_resized";
  GangId gang;
  std::vector<std::uint32_t> dropped;  // ascending
  std::vector<Slot> added;
  std::string reason;
};
void describe(auto& a, GangResized& x) {
  a("gang", x.gang);
  a("dropped", x.dropped);
  a("added", x.added);
  a("reason", x.reason);
}

// A slot is clean (or its node is lost for good); when the last one is, the gang is done or,
// if that was decided, pending again.
struct SlotReleased {
  static constexpr std::string_view kName = "slot_released";
  GangId gang;
  std::uint32_t slot = 0;
};
void describe(auto& a, SlotReleased& x) {
  a("gang", x.gang);
  a("slot", x.slot);
}

}  // namespace tutti
