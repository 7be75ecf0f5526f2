#include "model/reasons.h"
#include "scheduler/registry.h"

namespace tutti::scheduler {

// DRAIN lets what is queued start and only refuses new submissions (man scontrol).
AdmitRule require_partition_up() {
  return {"partition up", "nothing starts in a partition that is down or inactive",
          [](const PartitionSpec& partition, const Workload&, const Shape&,
             Duration) -> std::string_view {
            if (partition.state == PartitionState::kDown) return reason::kPartitionStopped;
            if (partition.state == PartitionState::kInactive) return reason::kPartitionInactive;
            return {};
          }};
}

}  // namespace tutti::scheduler
