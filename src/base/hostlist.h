// Slurm's host lists: "node[01-03,07],gpu[1-2]x[08-10],n5" names 3+1+6+1 nodes. Zero padding is
// part of a name and survives both ways. Source of the rules: slurm's hostlist notation, checked
// against `scontrol show hostnames|hostlist|hostlistsorted` of Slurm 22.05.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tutti {

// More names than this in one list is an error, not an attempt.
inline constexpr std::size_t kMaxHostlistNames = 100'000;

// The names in the order written, duplicates kept; several brackets of one name multiply, the last
// one fastest. An empty text is no names. Errors: kInvalid naming the piece (unclosed or nested
// bracket, range that is not two numbers in order, blank inside, more than kMaxHostlistNames).
// Cost: proportional to the names made.
Result<std::vector<std::string>> expand_hostlist(std::string_view text);

enum class FoldOrder : std::uint8_t {
  kAsGiven,  // `scontrol show hostlist`: only neighbours fold
  kSorted,   // `scontrol show hostlistsorted`: by prefix, then by number
};
// The inverse: runs of consecutive numbers become ranges and neighbours of one prefix share a
// bracket. Names must not contain ',', '[' or ']' for expand_hostlist() to give them back.
// Cost: linear (sorted: n log n); 10,000 names take a few milliseconds.
std::string fold_hostlist(const std::vector<std::string>& names,
                          FoldOrder order = FoldOrder::kAsGiven);

// Counts per node as SLURM_TASKS_PER_NODE and SLURM_JOB_CPUS_PER_NODE have them: 2,2,2,1 is
// "2(x3),1".
std::string fold_counts(const std::vector<std::uint32_t>& counts);
// Errors: kInvalid naming the piece, also for more than kMaxHostlistNames counts.
Result<std::vector<std::uint32_t>> expand_counts(std::string_view text);

}  // namespace tutti
