#include "model/reasons.h"
#include "scheduler/registry.h"

namespace tutti::scheduler {

AdmitRule require_partition_time_limit() {
  return {"partition time limit", "a job's time limit is within the partition's MaxTime",
          [](const PartitionSpec& partition, const Workload&, const Shape&,
             Duration limit) -> std::string_view {
            bool over = partition.max_time && limit > *partition.max_time;
            return over ? reason::kPartitionTimeLimit : std::string_view();
          }};
}

}  // namespace tutti::scheduler
