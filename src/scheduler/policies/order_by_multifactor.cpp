#include "scheduler/order.h"
#include "scheduler/registry.h"

namespace tutti::scheduler {

OrderPolicy order_by_multifactor() {
  return {"multifactor", "Slurm's sum of age, fair share, size and partition, less nice",
          [](const PriorityBasis& basis, const PartitionSpec& partition, const Workload& workload,
             Instant now) { return priority_in(basis, partition, workload, now).total; }};
}

}  // namespace tutti::scheduler
