// Reclaim: room taken back from running gangs for one that waits, when it then provably fits. See
// design/scheduling.md, 5. Internal to scheduler/.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "scheduler/forecast.h"
#include "scheduler/quota.h"
#include "scheduler/reclaim_rights.h"

namespace tutti::scheduler {

struct Pass;
struct Candidate;

// What may be taken as one: a whole gang, or one slot of an elastic one's surplus.
struct ReclaimUnit {
  const Gang* gang = nullptr;
  const WorkloadEntry* entry = nullptr;
  Timeline::Owner owner = 0;
  std::optional<std::uint32_t> slot;  // none = whole
  Rights::Kind right = Rights::Kind::kNone;
  Yield yield;
  std::uint64_t cost = 0;  // GPU-seconds
  std::uint32_t surplus = 0;
};

// Candidates that are alike in whom they yield to.
using RecallKey = std::tuple<std::string, std::string, std::uint32_t, std::int32_t,
                             std::optional<std::uint32_t>, std::int64_t>;

// What the stage keeps during a pass.
struct ReclaimBook {
  explicit ReclaimBook(const Pass& pass);
  Rights rights;
  std::vector<ReclaimUnit> holders;  // active gangs that may ever be taken, whole, by gang
  std::vector<GangId> taken;         // decided in this pass, or already leaving
  // Which promises would have a candidate recalled, by what decides that, as of so many promises.
  std::map<RecallKey, std::vector<Timeline::Owner>> recalling;
  std::size_t recalling_as_of = 0;
  // Of queues: what comes back when.
  struct Held {
    Instant end;
    QueueId queue;
    Charge charge;
  };
  std::vector<Held> held;
};

// Before the candidates: what is leaving for nobody any more goes on.
void begin_reclaim(Pass& pass);
// A blocked candidate: true when room will be taken back for it and its start is promised.
bool reclaim(Pass& pass, const Candidate& candidate);
// When notice of the recall of a start would have to go out.
Instant recall_notice(const Pass& pass, const Candidate& candidate, Instant recalled);
// When a promise to another would have this candidate recalled if it started now; until then it may
// use the room.
// Cost: O(promises) for each new kind of candidate.
const std::vector<Timeline::Owner>& recalling_promises(Pass& pass, const Candidate& candidate);
// After the candidates: decisions of which the beneficiary has started or gone.
void settle_reclaim(Pass& pass);

// When the slots of an active gang come back.
Instant expected_end(const Gang& gang, Instant now, Duration kill_wait);
// The surplus of an elastic gang: slots beyond its minimum; 0 if it is not elastic.
std::uint32_t surplus_of(const Workload& workload, const Gang& gang);

}  // namespace tutti::scheduler
