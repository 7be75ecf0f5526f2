// The planner: plan(state, now) -> Plan. A function: no clock, no I/O, no threads, no randomness,
// no iteration order that depends on addresses. The controller, the simulator, what-if and the
// scenario tests call the same one. It decides; executing a Plan takes no further choices.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "model/cluster_state.h"
#include "model/views.h"
#include "scheduler/fair_share.h"

namespace tutti::scheduler {

// One gang that may start: an element of a workload that has no gang yet (array_index set for an
// array), or an existing gang that is pending again.
struct ElementRef {
  WorkloadId workload;
  std::optional<std::uint32_t> array_index;
  GangId gang;  // 0 = does not exist yet
  friend auto operator<=>(const ElementRef&, const ElementRef&) = default;
};

struct Start {
  ElementRef element;
  std::string partition;
  std::vector<Slot> slots;  // ordered by node index, then role
  Duration limit;           // infinite = none
  bool backfilled = false;  // started while a gang before it in order waits
  // When one that was promised its room may have it recalled at the latest; never() if nobody.
  Instant recalled = Instant::never();
  std::uint16_t rendezvous_port = 0;  // that no other gang on its nodes has
};

// What a promised gang would use of one node; which devices is decided when it starts.
struct PromisedShare {
  NodeIndex node = 0;
  std::uint32_t cpus = 0, gpus = 0;
  std::uint64_t memory_mib = 0;
};

// A blocked gang's promised start. `nodes` and `shares` are where it would go if nothing changed;
// the promise is the time.
struct Promise {
  ElementRef element;
  std::string partition;
  bool firm = false;  // from this pass on, or before
  bool earmarked = false;  // room is being taken back for it: it is firm at once
  Instant at;
  Instant until;  // when its time limit would end, with the grace; never() without a limit
  std::vector<NodeIndex> nodes;
  std::vector<PromisedShare> shares;  // by node, then role
  PromisedRooms rooms;                // the same, as the journal keeps it
  std::vector<GangId> recalls;        // gangs that are told to leave in time for it; ascending
};

// The decision to take room back from a gang: its notice goes out now.
struct Evict {
  GangId gang;
  std::string queue;  // whose budget of loss it is booked on; "" = none
  Eviction eviction;
};

// A decision of before that nobody needs any more, or that another gang takes over.
struct Withdraw {
  GangId gang;
  std::string cause;
};
struct TakeOver {
  GangId gang;
  ElementRef beneficiary;
};

// An elastic gang grows into idle room.
struct Growth {
  GangId gang;
  std::vector<Slot> slots;
};

// Gangs of one shape that wait for one reason share the explanation.
struct Waiting {
  ElementRef element;
  std::shared_ptr<const Wait> wait;
};

struct PassStats {
  std::uint64_t considered = 0, placed = 0, shapes = 0, work_units = 0;
};

struct Plan {
  std::vector<Start> starts;      // in the order they were decided
  std::vector<Promise> promises;  // firm ones of before by time, then as they were made
  std::vector<PromiseChange> promise_changes;  // what PromisesChanged records, after the starts
  std::vector<Evict> evictions;                // by gang
  std::vector<Withdraw> withdrawals;           // by gang
  std::vector<TakeOver> take_overs;            // by gang
  std::vector<Growth> growths;                 // by gang
  std::vector<GangId> resumes;                 // suspended gangs whose room is free again, by gang
  std::vector<Waiting> waiting;  // every pending element that does not start, by workload, gang;
                                 // an array's unstarted elements once, as its next element
  Instant next_look;             // a pass before this time cannot decide more unless an event
                      // comes (begin times, back-offs); never() if nothing waits for time
  PassStats stats;
};

struct PassInput {
  const ClusterState& state;
  const Agenda& agenda;
  Instant now;
  std::string profile = "tutti";             // a name of profiles()
  std::uint64_t budget = ~std::uint64_t{0};  // work units; the rest waits for the next pass
  std::uint32_t reserve_depth = 100;  // blocked gangs that are looked at for backfill promises
};

// Cost: O(nodes + pending + running) plus the placement of each distinct shape.
Plan plan(const PassInput& input);

// Whether the workload could run on the configured cluster with all nodes up and empty, and within
// its partitions' limits. Errors carry a word of model/reasons.h. Called at submit.
Status check_can_ever_run(const ClusterSpec& spec, const Workload& workload);

// The limit in force: what was asked, else the partition's default, else its maximum, else none.
Duration time_limit_in(const PartitionSpec& partition, const Workload& workload);

// What priorities are measured against; made once for many jobs. Cost: O(nodes + partitions), and
// that of fair_shares().
struct PriorityBasis {
  PriorityWeights weights;
  std::uint64_t nodes = 0, cpus = 0;
  std::uint32_t partition_factor_max = 0, qos_max = 0, association_max = 0;
  std::shared_ptr<const AccountBook> book;
  FairShares shares;
  std::map<std::string, TresAmounts> held_by;  // what a partition has; only if TRES have weights
};
PriorityBasis priority_basis(const ClusterState& state, Instant now);

// Slurm's multifactor sum (man sprio), each part already weighted, in the first partition asked
// for. The total is 0 while the job is held. The second form makes the basis each time.
PriorityParts priority_of(const PriorityBasis& basis, const ClusterSpec& spec,
                          const WorkloadEntry& entry, Instant now);
PriorityParts priority_of(const ClusterState& state, const WorkloadEntry& entry, Instant now);

// Why an element may not be considered now (hold, dependency, begin time, throttle, back-off), as a
// word of model/reasons.h; nullopt when it may. Dependencies follow man sbatch.
struct Ineligible {
  std::string_view reason;
  Instant until;  // when time alone cures it; unset otherwise
};
std::optional<Ineligible> ineligible(const ClusterState& state, const WorkloadEntry& entry,
                                     const Gang* gang, Instant now);

// The plan linter: every sentence is a broken invariant of design/scheduling.md (two owners of a
// device, a gang placed in part, a start that delays a promise...). Empty = sound. Run after every
// pass in tests and debug builds and before each commit in production.
std::vector<std::string> lint(const PassInput& input, const Plan& plan);
// Its two halves: what must never be carried out (double booking, gangs in part), and words that
// are not kept (promises, evictions, quotas).
std::vector<std::string> lint_holdings(const PassInput& input, const Plan& plan);
std::vector<std::string> lint_word(const PassInput& input, const Plan& plan);

// Names that PassInput::profile takes, with one sentence each.
std::vector<std::pair<std::string, std::string>> profiles();

}  // namespace tutti::scheduler
