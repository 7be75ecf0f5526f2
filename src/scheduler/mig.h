// MIG profiles: the memory slices that an instance takes and where the driver lets it begin.
// Source: NVIDIA Multi-Instance GPU User Guide, "Supported MIG Profiles" and the placements that
// `nvidia-smi mig -lgipp` lists.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tutti::scheduler {

constexpr std::uint32_t kMediaBit = 15;  // a "+me" instance: one per device

struct MigProfile {
  std::string_view name;              // "1g.10gb", "1g.10gb+me"
  std::uint32_t size = 1;             // memory slices
  std::span<const std::uint16_t> starts;  // ascending
  bool media = false;
  std::uint32_t mask_at(std::uint16_t start) const {
    return (((1U << size) - 1) << start) | (media ? 1U << kMediaBit : 0);
  }
};

// The profile on a GPU of that type ("h100", "NVIDIA H200") and memory; nullopt where it has none
// of that name. Memory 0: the larger model of the type.
std::optional<MigProfile> mig_profile(std::string_view gpu_type, std::uint64_t memory_mib,
                                      std::string_view profile);

}  // namespace tutti::scheduler
