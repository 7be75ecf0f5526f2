#include "scheduler/registry.h"

namespace tutti::scheduler {

OrderPolicy order_by_submission() {
  return {"submission", "who was eligible first goes first",
          [](const PriorityBasis&, const PartitionSpec&, const WorkloadEntry&, Instant) {
            return std::uint64_t{0};
          }};
}

}  // namespace tutti::scheduler
