// Slurm's memory sizes and node counts as text. Source of the rules: sbatch(1) --mem and --nodes,
// and the output of Slurm 22.05. Memory is counted in MiB, which Slurm writes "M".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace tutti {

// "500", "64G", "1GB", "1GiB", "2t": a whole number and K, M (the default), G, T or P, times 1024;
// K rounds up to a whole MiB. Fractions are refused, as sbatch does. What 0 means (all memory of
// the node) is the caller's. Errors: kInvalid, reason "invalid_memory".
Result<std::uint64_t> parse_memory_mib(std::string_view text);

enum class MemoryStyle : std::uint8_t {
  kExact,      // the greatest unit without loss: 1000M, 64G, 1000000M (squeue, scontrol)
  kRounded,    // the greatest unit below 1024, two digits: 1.95G, 64G (sacct)
  kNoConvert,  // always M
};
// 0 is "0", without a unit, as Slurm has it.
std::string format_memory_mib(std::uint64_t mib, MemoryStyle style = MemoryStyle::kExact);
// In one given unit, 'K', 'M', 'G', 'T' or 'P', two digits unless whole (sacct --units=G).
std::string format_memory_in(std::uint64_t mib, char unit);

struct NodeCount {
  std::uint32_t min = 1;
  std::uint32_t max = 1;
  friend bool operator==(const NodeCount&, const NodeCount&) = default;
};
// "4", "2-8", "2k" (1024 each; also m). Errors: kInvalid; reason "invalid_node_count", or
// "node_count_order" when the greatest is less than the least.
Result<NodeCount> parse_node_count(std::string_view text);

}  // namespace tutti
