// PreemptionSpec: who yields to whom on a cluster without a quota tree, as slurm.conf says it.
#pragma once

#include <array>
#include <cstdint>

#include "base/archive.h"
#include "base/time.h"
#include "model/terms.h"

namespace tutti {

// Who yields to whom where no quota tree says so, as slurm.conf has it.
enum class PreemptType : std::uint8_t {
  kOff,
  kPartitionPriority,  // jobs of partitions of a lower PriorityTier (preempt/partition_prio)
  kQos,                // jobs of a QOS that theirs lists (preempt/qos)
};
template <>
struct EnumNames<PreemptType> {
  static constexpr std::array kTable{
      std::pair{PreemptType::kOff, std::string_view("off")},
      std::pair{PreemptType::kPartitionPriority, std::string_view("partition_priority")},
      std::pair{PreemptType::kQos, std::string_view("qos")}};
};
struct PreemptionSpec {
  PreemptType type = PreemptType::kOff;
  ReclaimMode mode = ReclaimMode::kOff;  // where neither partition nor QOS says
  Duration exempt_time;                  // not a victim before it has run so long
};
template <class A>
void describe(A& a, PreemptionSpec& x) {
  a("type", x.type);
  a("mode", x.mode);
  a("exempt_time_ms", x.exempt_time);
}

}  // namespace tutti
