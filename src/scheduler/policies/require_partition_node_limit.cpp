#include <algorithm>

#include "model/reasons.h"
#include "scheduler/registry.h"

namespace tutti::scheduler {

AdmitRule require_partition_node_limit() {
  return {"partition node limit", "a job's nodes lie between the partition's MinNodes and MaxNodes",
          [](const PartitionSpec& partition, const Workload& workload, const Shape&,
             Duration) -> std::string_view {
            for (const RoleAsk& ask : workload.roles) {
              if (std::max(ask.nodes_min, 1u) > partition.max_nodes)
                return reason::kPartitionNodeLimit;
              if (ask.nodes_max < partition.min_nodes) return reason::kPartitionNodeLimit;
            }
            return {};
          }};
}

}  // namespace tutti::scheduler
