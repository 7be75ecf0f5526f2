#include "model/reasons.h"
#include "scheduler/registry.h"

namespace tutti::scheduler {

AdmitRule require_partition_node_limit() {
  return {
      "partition node limit", "a job's nodes lie between the partition's MinNodes and MaxNodes",
      [](const PartitionSpec&, const Workload&, const Shape& shape, Duration) -> std::string_view {
        return shape.outside_node_limits ? reason::kPartitionNodeLimit : std::string_view();
      }};
}

}  // namespace tutti::scheduler
