// Promises as the journal keeps them: which waiting gang was told a start, since when, and, once it
// is old enough to be firm, by when it starts and where. An input of plan(), so that what was
// promised yesterday still binds after a restart. See design/scheduling.md, 4.
//
// A promise that is not firm is planned anew at every pass; its record only says how old it is. The
// records of the firm ones are jointly feasible at any time at which nothing was lost: each pass
// keeps them where they are or writes down where it moved them, and why.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/archive.h"
#include "base/shared_value.h"
#include "base/time.h"
#include "model/ids.h"

namespace tutti {

// After so long a promise no longer moves for age and fair share of others.
constexpr Duration kFirmAfter = Duration::seconds(300);

// The room of a firm promise on one node, as counts. `gpus` by the types of the node, in the order
// of its devices.
struct PromisedRoom {
  NodeIndex node = 0;
  std::uint32_t role = 0, tasks = 0, cores = 0;
  std::uint64_t memory_mib = 0;
  std::vector<std::uint16_t> gpus;
  friend bool operator==(const PromisedRoom&, const PromisedRoom&) = default;
};
template <class A>
void describe(A& a, PromisedRoom& x) {
  a("node", x.node);
  a("role", x.role);
  a("tasks", x.tasks);
  a("cores", x.cores);
  a("memory_mib", x.memory_mib);
  a("gpus", x.gpus);
}
using PromisedRooms = SharedValue<std::vector<PromisedRoom>>;

struct PromiseRecord {
  WorkloadId workload;
  GangId gang;  // 0 = the next unstarted element
  Instant at;   // as made; of a firm one: it starts no later
  Instant since;
  bool firm = false;
  std::string partition;
  PromisedRooms rooms;      // of a firm one: where that is possible; by node, role
  std::uint32_t moves = 0;  // to a later time
  std::string cause;        // of the last move to a later time
  friend bool operator==(const PromiseRecord&, const PromiseRecord&) = default;
};
template <class A>
void describe(A& a, PromiseRecord& x) {
  a("workload", x.workload);
  a("gang", x.gang);
  a("at_ms", x.at);
  a("since_ms", x.since);
  a("firm", x.firm);
  a("partition", x.partition);
  a("rooms", x.rooms);
  a("moves", x.moves);
  a("cause", x.cause);
}

// By workload, gang. As many as the planner's depth allows, so a flat list serves.
struct PromiseBook {
  std::vector<PromiseRecord> records;
  const PromiseRecord* find(WorkloadId workload, GangId gang) const;
  friend bool operator==(const PromiseBook&, const PromiseBook&) = default;
};

enum class PromiseStep : std::uint8_t {
  kMade,
  kFirm,     // it is old enough: `at` and `rooms` bind from now on
  kMoved,    // of a firm one: earlier, or elsewhere, or (with a cause) later
  kDropped,  // it has no planned start any more; the cause says why
};
template <>
struct EnumNames<PromiseStep> {
  static constexpr std::array kTable{std::pair{PromiseStep::kMade, std::string_view("made")},
                                     std::pair{PromiseStep::kFirm, std::string_view("firm")},
                                     std::pair{PromiseStep::kMoved, std::string_view("moved")},
                                     std::pair{PromiseStep::kDropped, std::string_view("dropped")}};
};

struct PromiseChange {
  PromiseStep step = PromiseStep::kMade;
  WorkloadId workload;
  GangId gang;
  Instant at;
  std::string partition;
  PromisedRooms rooms;
  std::string cause;
  friend bool operator==(const PromiseChange&, const PromiseChange&) = default;
};
template <class A>
void describe(A& a, PromiseChange& x) {
  a("step", x.step);
  a("workload", x.workload);
  a("gang", x.gang);
  a("at_ms", x.at);
  a("partition", x.partition);
  a("rooms", x.rooms);
  a("cause", x.cause);
}

// What one pass changed, in the order in which it did.
struct PromisesChanged {
  static constexpr std::string_view kName = "promises_changed";
  std::vector<PromiseChange> changes;
};
void describe(auto& a, PromisesChanged& x) { a("changes", x.changes); }

inline const PromiseRecord* PromiseBook::find(WorkloadId workload, GangId gang) const {
  std::size_t low = 0, high = records.size();
  while (low < high) {
    std::size_t middle = (low + high) / 2;
    const PromiseRecord& record = records[middle];
    if (record.workload == workload && record.gang == gang) return &record;
    if (record.workload < workload || (record.workload == workload && record.gang < gang))
      low = middle + 1;
    else
      high = middle;
  }
  return nullptr;
}

}  // namespace tutti
