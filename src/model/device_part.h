// DevicePart: what a slot holds of a device that it shares with others.
#pragma once

#include <cstdint>
#include <string>

#include "base/archive.h"

namespace tutti {

// A part of one device: an instance of a MIG profile, or a share of its memory and compute.
struct DevicePart {
  std::uint16_t device = 0;  // index of the node
  std::string profile;       // MIG; "" = a share
  std::uint16_t start = 0;   // MIG: its first memory slice
  std::uint64_t memory_mib = 0;
  std::uint32_t share_permille = 0;
  friend bool operator==(const DevicePart&, const DevicePart&) = default;
};
template <class A>
void describe(A& a, DevicePart& x) {
  a("device", x.device);
  a("profile", x.profile);
  a("start", x.start);
  a("memory_mib", x.memory_mib);
  a("share_permille", x.share_permille);
}

}  // namespace tutti
