// Eviction: a running gang gives its room (or a part of it) back so that another can start. One
// transaction: notice, answer, release, start of the beneficiary. Kept on the gang that leaves
// (Gang::eviction) and told to its ranks as data. See design/scheduling.md, 5.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/archive.h"
#include "base/time.h"
#include "model/ids.h"
#include "model/terms.h"

namespace tutti {

struct Eviction {
  Instant decided;   // when the notice went out
  Instant deadline;  // then it is ended, whatever it says
  ReclaimMode mode = ReclaimMode::kRequeue;
  // For whom: a workload's next element, or its gang that waits again. 0 = nobody in particular
  // (consolidation, an administrator).
  WorkloadId beneficiary;
  std::optional<std::uint32_t> beneficiary_index;
  GangId beneficiary_gang;
  std::string reason;  // one sentence for people
  // Booked when it was decided: work since the last checkpoint, at most an hour, and the wait until
  // it can start again, at most a day; times its GPUs.
  std::uint64_t cost_gpu_seconds = 0;
  // Only these slots, the surplus of an elastic gang; empty = all of them.
  std::vector<std::uint32_t> slots;
  Instant saved;  // the job reported a checkpoint after the notice
  friend bool operator==(const Eviction&, const Eviction&) = default;
};
template <class A>
void describe(A& a, Eviction& x) {
  a("decided_ms", x.decided);
  a("deadline_ms", x.deadline);
  a("mode", x.mode);
  a("beneficiary", x.beneficiary);
  a("beneficiary_index", x.beneficiary_index);
  a("beneficiary_gang", x.beneficiary_gang);
  a("reason", x.reason);
  a("cost_gpu_seconds", x.cost_gpu_seconds);
  a("slots", x.slots);
  a("saved_ms", x.saved);
}

// What evictions have cost in the last hour, for budgets of loss. By time.
struct LossEntry {
  Instant at;
  std::string queue;  // of the victim
  std::uint64_t gpu_seconds = 0;
  friend bool operator==(const LossEntry&, const LossEntry&) = default;
};
template <class A>
void describe(A& a, LossEntry& x) {
  a("at_ms", x.at);
  a("queue", x.queue);
  a("gpu_seconds", x.gpu_seconds);
}
struct LossBook {
  std::vector<LossEntry> entries;
  friend bool operator==(const LossBook&, const LossBook&) = default;
};
template <class A>
void describe(A& a, LossBook& x) {
  a("entries", x.entries);
}

// The notice goes out: from here on the gang is leaving.
struct EvictionDecided {
  static constexpr std::string_view kName = "eviction_decided";
  GangId gang;
  std::string queue;  // whose budget it is booked on
  Eviction eviction;
};
void describe(auto& a, EvictionDecided& x) {
  a("gang", x.gang);
  a("queue", x.queue);
  a("eviction", x.eviction);
}

// The beneficiary needs the room no longer; a gang that still runs goes on.
struct EvictionWithdrawn {
  static constexpr std::string_view kName = "eviction_withdrawn";
  GangId gang;
  std::string cause;
};
void describe(auto& a, EvictionWithdrawn& x) {
  a("gang", x.gang);
  a("cause", x.cause);
}

// A higher gang takes over what is being freed for another.
struct EvictionTakenOver {
  static constexpr std::string_view kName = "eviction_taken_over";
  GangId gang;
  WorkloadId beneficiary;
  std::optional<std::uint32_t> beneficiary_index;
  GangId beneficiary_gang;
};
void describe(auto& a, EvictionTakenOver& x) {
  a("gang", x.gang);
  a("beneficiary", x.beneficiary);
  a("beneficiary_index", x.beneficiary_index);
  a("beneficiary_gang", x.beneficiary_gang);
}

// The gang has saved its state: what is lost if it ends now begins here.
struct CheckpointReported {
  static constexpr std::string_view kName = "checkpoint_reported";
  GangId gang;
  std::uint64_t step = 0;  // its own counter; 0 = not said
};
void describe(auto& a, CheckpointReported& x) {
  a("gang", x.gang);
  a("step", x.step);
}

// All ranks have met: from here on it computes.
struct RanksMet {
  static constexpr std::string_view kName = "ranks_met";
  GangId gang;
  std::uint32_t world_size = 0;  // 0 = not said
};
void describe(auto& a, RanksMet& x) {
  a("gang", x.gang);
  a("world_size", x.world_size);
}

// Stopped in place; its CPUs and memory stay its own, its time limit waits.
struct GangSuspended {
  static constexpr std::string_view kName = "gang_suspended";
  GangId gang;
};
void describe(auto& a, GangSuspended& x) { a("gang", x.gang); }

struct GangResumed {
  static constexpr std::string_view kName = "gang_resumed";
  GangId gang;
};
void describe(auto& a, GangResumed& x) { a("gang", x.gang); }

}  // namespace tutti
