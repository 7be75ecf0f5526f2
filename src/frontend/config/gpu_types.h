// GPU types and what other systems call them: the one table. docs/gpu-types.md shows it.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tutti::config {

struct GpuTypeName {
  std::string_view type;     // as in a slurm.conf's Gres and in a quota
  std::string_view product;  // the label nvidia.com/gpu.product of gpu-feature-discovery
};
std::span<const GpuTypeName> gpu_type_names();

inline constexpr std::string_view kProductLabel = "nvidia.com/gpu.product";
// "NVIDIA-H100-80GB-HBM3" -> "h100". Labels end in what distinguishes boards of one type; the
// longest entry that the label begins with counts, with or without "NVIDIA-". What the table does
// not have is its own type in small letters.
std::string gpu_type_of_product(std::string_view product);

}  // namespace tutti::config
