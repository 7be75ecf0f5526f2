// Sentences about requests and rooms, with numbers. Pure text; deciding is done elsewhere.
#pragma once

#include <string>

#include "scheduler/shape.h"

namespace tutti::scheduler {

// "16 GPUs of h100 and 64 CPUs on 2 nodes", "2 whole nodes".
std::string need_text(const ClusterIndex& cluster, const Shape& shape);

// "no rack holds all of it": of a gang that only its demands on the topology keep from starting.
std::string topology_text(const ClusterIndex& cluster, const Shape& shape);

// What is free on the nodes a shape may use.
struct FreeTotals {
  std::int64_t gpus = 0, cpus = 0, idle_nodes = 0;
};
// "8 GPUs and 96 CPUs are free", "1 of 4 nodes is empty": in the terms of the request.
std::string free_text(const Shape& shape, const FreeTotals& totals);

// "1 node", "2 nodes".
std::string count_text(std::uint64_t count, std::string_view noun);

}  // namespace tutti::scheduler
