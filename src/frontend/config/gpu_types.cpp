#include "frontend/config/gpu_types.h"

#include <array>

#include "base/text.h"

namespace tutti::config {

namespace {
// The product names are those that the driver reports, blanks as dashes, as gpu-feature-discovery
// makes its label.
constexpr std::array kTable{
    GpuTypeName{"b300", "NVIDIA-B300"},
    GpuTypeName{"b200", "NVIDIA-B200"},
    GpuTypeName{"gb200", "NVIDIA-GB200"},
    GpuTypeName{"gh200", "NVIDIA-GH200"},
    GpuTypeName{"h200", "NVIDIA-H200"},
    GpuTypeName{"h100", "NVIDIA-H100"},
    GpuTypeName{"h800", "NVIDIA-H800"},
    GpuTypeName{"h20", "NVIDIA-H20"},
    GpuTypeName{"a100", "NVIDIA-A100"},
    GpuTypeName{"a800", "NVIDIA-A800"},
    GpuTypeName{"a40", "NVIDIA-A40"},
    GpuTypeName{"a30", "NVIDIA-A30"},
    GpuTypeName{"a16", "NVIDIA-A16"},
    GpuTypeName{"a10g", "NVIDIA-A10G"},
    GpuTypeName{"a10", "NVIDIA-A10"},
    GpuTypeName{"a2", "NVIDIA-A2"},
    GpuTypeName{"l40s", "NVIDIA-L40S"},
    GpuTypeName{"l40", "NVIDIA-L40"},
    GpuTypeName{"l20", "NVIDIA-L20"},
    GpuTypeName{"l4", "NVIDIA-L4"},
    GpuTypeName{"v100", "Tesla-V100"},
    GpuTypeName{"t4", "Tesla-T4"},
    GpuTypeName{"p100", "Tesla-P100"},
    GpuTypeName{"rtxpro6000", "NVIDIA-RTX-PRO-6000-Blackwell"},
    GpuTypeName{"rtx6000ada", "NVIDIA-RTX-6000-Ada-Generation"},
    GpuTypeName{"rtxa6000", "NVIDIA-RTX-A6000"},
    GpuTypeName{"rtx5090", "NVIDIA-GeForce-RTX-5090"},
    GpuTypeName{"rtx4090", "NVIDIA-GeForce-RTX-4090"},
    GpuTypeName{"rtx3090", "NVIDIA-GeForce-RTX-3090"},
};

std::string_view without_maker(std::string_view product) {
  constexpr std::string_view kMaker = "NVIDIA-";
  return starts_with_ci(product, kMaker) ? product.substr(kMaker.size()) : product;
}
}  // namespace

std::span<const GpuTypeName> gpu_type_names() { return kTable; }

std::string gpu_type_of_product(std::string_view product) {
  const std::string_view name = without_maker(product);
  const GpuTypeName* best = nullptr;
  std::size_t length = 0;
  for (const GpuTypeName& entry : kTable) {
    const std::string_view prefix = without_maker(entry.product);
    if (!starts_with_ci(name, prefix) || prefix.size() < length) continue;
    // "NVIDIA-H200" is no beginning of "NVIDIA-H2000".
    if (name.size() > prefix.size() && name[prefix.size()] != '-') continue;
    best = &entry;
    length = prefix.size();
  }
  return best ? std::string(best->type) : lower(name);
}

}  // namespace tutti::config
