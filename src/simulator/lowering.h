// From a job of a trace to a workload, and from a short text to a cluster.
#pragma once

#include <string_view>

#include "base/error.h"
#include "model/cluster.h"
#include "model/workload.h"
#include "simulator/trace.h"

namespace tutti::simulator {

// The workload that asks for what the job asked for. Where a log gives GPUs and no nodes, they lie
// as dense as nodes of `gpus_per_node` allow: 4 on one node, 16 on two of 8. Where it gives tasks
// and no nodes, they may lie anywhere. Fractions of CPUs are rounded up.
Workload lower_job(const Trace& trace, const TraceJob& job, std::uint32_t gpus_per_node);

// "1000x8:h100", "8x8", "1x100c", "4x8:a100+2x8:h100": groups of nodes with GPUs (of a type) or,
// with "c", with CPUs alone; ",cpus=96,mem=1T" behind a group says more. Nodes are n1, n2, ...; a
// node with GPUs has 128 CPUs and 1000000 MiB unless said. All are in one partition without
// limits. Errors: kInvalid, naming the group and what was expected.
Result<ClusterSpec> parse_cluster_text(std::string_view text);

// A node list as CSV with a header: name (or sn), gpus (or gpu, num_gpu), and where given cpus (or
// cpu_milli), memory_mib, type (or model), count. Errors: all lines that are wrong, by line.
Result<ClusterSpec> read_node_csv(std::string_view text);

// The most GPUs of one node.
std::uint32_t most_gpus_per_node(const ClusterSpec& spec);

}  // namespace tutti::simulator
