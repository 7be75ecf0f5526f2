// The policies a pass is made of, and the profiles that combine them. Each policy is one file with
// one factory; registry.cpp lists all of them. See docs/guides/add-a-policy.md.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "scheduler/plan.h"
#include "scheduler/shape.h"

namespace tutti::scheduler {

// Decides which of two candidates comes first: the larger key. Ties go to who has been eligible
// longer, then to the lower number.
struct OrderPolicy {
  std::string_view name, sentence;
  std::uint64_t (*key)(const PriorityBasis& basis, const PartitionSpec& partition,
                       const WorkloadEntry& entry, Instant now);
};

// A rule of the partition that keeps a gang from being placed now.
struct AdmitRule {
  std::string_view name, sentence;
  // A word of model/reasons.h; empty = admitted.
  std::string_view (*refuse)(const PartitionSpec& partition, const Workload& workload,
                             const Shape& shape, Duration limit);
};

// What a gang that cannot start does to those behind it.
struct ReservePolicy {
  std::string_view name, sentence;
  enum class Behind : std::uint8_t {
    kMayPass,  // they may start if no promise is delayed
    kWait,     // nobody who could use the same nodes passes
  };
  Behind behind = Behind::kMayPass;
  // Whether the blocked gang is promised a start. `conflicts`: it could use nodes of a gang that
  // was promised before; `promised`: how many were; `depth`: PassInput::reserve_depth.
  bool (*promises)(bool conflicts, std::uint32_t promised, std::uint32_t depth);
};

struct Profile {
  std::string_view name, sentence;
  OrderPolicy order;
  std::vector<AdmitRule> admit;
  ReservePolicy reserve;
  bool reclaims = true;  // room may be taken back from running gangs, where the cluster says so
};

// nullptr when there is none of that name.
const Profile* find_profile(std::string_view name);

// The factories, one per file in policies/.
OrderPolicy order_by_multifactor();
OrderPolicy order_by_submission();
AdmitRule require_partition_up();
AdmitRule require_partition_node_limit();
AdmitRule require_partition_time_limit();
ReservePolicy reserve_for_each();
ReservePolicy reserve_for_the_head();
ReservePolicy reserve_nothing();

}  // namespace tutti::scheduler
