// Fair Tree: who of all users has had the least of their share, level by level down the tree of
// accounts. Source of the rules: Slurm's page "Fair Tree Fairshare Algorithm". Usage is what
// model/usage.h keeps, faded up to `now`, with what runs added. Integers throughout.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "model/cluster_state.h"

namespace tutti::scheduler {

// Level FS: share among siblings divided by part of the parent's usage; as mantissa * 2^exponent,
// the mantissa's top bit set, so that it compares by exponent, then mantissa.
struct LevelShare {
  enum class Kind : std::uint8_t { kZero, kFinite, kInfinite };
  Kind kind = Kind::kZero;
  std::int32_t exponent = 0;
  std::uint64_t mantissa = 0;
  friend auto operator<=>(const LevelShare&, const LevelShare&) = default;
};
// (shares / shares of all siblings) / (usage / usage of the parent).
LevelShare level_share(std::uint64_t shares, std::uint64_t all_shares, std::uint64_t usage,
                       std::uint64_t parent_usage);

inline constexpr std::uint64_t kFactor = 1'000'000'000;  // factors count in billionths

struct ShareOf {
  std::uint64_t usage = 0;         // billed milliseconds of all below
  std::uint64_t parent_usage = 0;  // of what its share is measured against
  std::uint64_t shares = 0, all_shares = 0;
  LevelShare level;
  std::uint64_t factor = 0;  // of a user; 0 for accounts
};

struct FairShares {
  std::vector<ShareOf> of;  // by AssociationId
  std::uint32_t users = 0;  // associations that are ranked
  std::uint64_t factor(AssociationId id) const { return id < of.size() ? of[id].factor : 0; }
};

// Cost: O(associations log associations + gangs that hold slots).
FairShares fair_shares(const ClusterState& state, Instant now);

}  // namespace tutti::scheduler
