// Capacity: what is free on one node, or what a slot takes from it, as counts. Cheap to copy, add
// and compare; which devices and cores exactly is decided only when a gang starts (free_map.h).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "scheduler/device_parts.h"

namespace tutti::scheduler {

// GPU types one node may mix. Devices of further types of such a node are not scheduled.
constexpr std::size_t kGpuTypesPerNode = 6;

struct Capacity {
  std::int32_t cores = 0;  // whole cores: the threads of a core are never split between gangs
  // 0 = nobody is on the node, -n = n slots are; so that the least of two moments is the minimum.
  std::int32_t vacancy = 0;
  std::int64_t memory_mib = 0;
  std::array<std::int16_t, kGpuTypesPerNode> gpus{};  // by the node's own list of types
  // Of what is free: what is in use of devices that are shared; they count in `gpus` all the same.
  // Of what a slot takes: its parts.
  DeviceParts parts;

  std::int32_t gpu_count() const {
    std::int32_t sum = 0;
    for (std::int16_t count : gpus) sum += count;
    return sum;
  }
  // Of what is free: a slot gives back what it took, or takes it.
  Capacity& operator+=(const Capacity& other) {
    cores += other.cores;
    vacancy += other.vacancy;
    memory_mib += other.memory_mib;
    for (std::size_t i = 0; i < kGpuTypesPerNode; ++i)
      gpus[i] = static_cast<std::int16_t>(gpus[i] + other.gpus[i]);
    if (!other.parts.empty()) parts.remove(other.parts);
    return *this;
  }
  Capacity& operator-=(const Capacity& other) {
    cores -= other.cores;
    vacancy -= other.vacancy;
    memory_mib -= other.memory_mib;
    for (std::size_t i = 0; i < kGpuTypesPerNode; ++i)
      gpus[i] = static_cast<std::int16_t>(gpus[i] - other.gpus[i]);
    if (!other.parts.empty()) parts.add(other.parts);
    return *this;
  }
  bool covers(const Capacity& other) const {
    for (std::size_t i = 0; i < kGpuTypesPerNode; ++i)
      if (gpus[i] < other.gpus[i]) return false;
    return cores >= other.cores && memory_mib >= other.memory_mib && vacancy >= other.vacancy;
  }
  friend bool operator==(const Capacity&, const Capacity&) = default;
};

// The least of both in each respect: what is free at two moments.
inline Capacity least(const Capacity& a, const Capacity& b) {
  Capacity out;
  out.cores = std::min(a.cores, b.cores);
  out.vacancy = std::min(a.vacancy, b.vacancy);
  out.memory_mib = std::min(a.memory_mib, b.memory_mib);
  for (std::size_t i = 0; i < kGpuTypesPerNode; ++i) out.gpus[i] = std::min(a.gpus[i], b.gpus[i]);
  if (!a.parts.empty() || !b.parts.empty()) {
    out.parts = a.parts;
    out.parts.raise_to(b.parts);
  }
  return out;
}

}  // namespace tutti::scheduler
