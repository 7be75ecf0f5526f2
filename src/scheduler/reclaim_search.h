// ReclaimSearch: which of those that may be taken are enough, and cost least. Sets are minimal: no
// part of one would do (up to kMostPruned victims it is tried one by one). Up to kExact units every
// set is looked at, so that the cheapest is found. Internal to scheduler/.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/pass.h"
#include "scheduler/reclaim.h"

namespace tutti::scheduler {

struct ReclaimFound {
  std::vector<ReclaimUnit> victims;  // by gang, slot
  Forecast forecast;
};

class ReclaimSearch {
 public:
  static constexpr std::size_t kExact = 12;
  static constexpr std::size_t kMostPruned = 64;

  // The candidate has no promise booked.
  ReclaimSearch(Pass& pass, const Candidate& candidate, const Rights::Claimant& claimant,
                std::vector<ReclaimUnit> units);

  // nullopt: no set does, or waiting starts the candidate no later.
  std::optional<ReclaimFound> run();
  // From here on the timeline counts the room of these as free when their notice is over.
  void move_releases(const std::vector<ReclaimUnit>& victims);

 private:
  using Set = std::vector<std::uint32_t>;  // positions in units_

  std::vector<ReclaimUnit> units_of(const Set& set) const;
  bool may_take(const Set& set, bool last_resort) const;
  // Where it goes at `at` if these leave; nothing stays changed.
  std::optional<Placement> fits(const Set& set, Instant at, const NodeSet& nodes);
  // The earliest start after now that its rights allow.
  std::optional<Forecast> earliest();
  // Whether the quotas allow its start at `at` if these leave.
  bool quota_allows(const Set& set, Instant at);
  std::optional<Set> cheapest(Instant at, bool last_resort);
  std::optional<Set> greedy(Instant at, bool last_resort);
  Set needed_for(const Placement& placement, Instant at, const Set& set) const;
  Set prune(Set set, Instant at, bool last_resort);
  void add_restart_costs();
  void shift(const ReclaimUnit& unit);
  void shift_back();
  void note_times();
  Instant leaves_at(const ReclaimUnit& unit, Instant at) const;

  Pass& pass_;
  const Candidate& candidate_;
  const Rights::Claimant& claimant_;
  std::vector<ReclaimUnit> units_;  // by cost, gang, slot
  Instant at_;                      // the start that is searched for
  struct Moved {
    NodeIndex node;
    Timeline::Owner owner;
    Instant before;
  };
  std::vector<Moved> moved_;
};

}  // namespace tutti::scheduler
