// The version of this program, and the Slurm release whose command line it follows.
#pragma once

#include <string_view>

namespace tutti::cli {

inline constexpr std::string_view kVersion = "0.1.0";
inline constexpr std::string_view kSlurmVersion = "22.05.8";

}  // namespace tutti::cli
