#include "scheduler/order.h"
#include "scheduler/registry.h"

namespace tutti::scheduler {

OrderPolicy order_by_multifactor() {
  return {"multifactor", "Slurm's sum of age, fair share, size, partition, QOS, association and TRES, less nice",
          [](const PriorityBasis& basis, const PartitionSpec& partition, const WorkloadEntry& entry,
             Instant now) { return priority_in(basis, partition, entry, now).total; }};
}

}  // namespace tutti::scheduler
