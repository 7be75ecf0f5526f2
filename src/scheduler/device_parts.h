// DeviceParts: what is in use of devices that several slots share, device by device: instances of
// MIG profiles as memory slices, shares as memory and compute. A value; none costs a pointer.
//
// A device is named by its index on the node, or, for one that is still whole and will be chosen
// when the gang starts, by a number from kUnchosen on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace tutti::scheduler {

constexpr std::uint16_t kUnchosen = 0x8000;

struct PartUse {
  std::uint16_t device = 0;
  std::uint16_t type = 0;     // position in NodeClass::types
  std::int32_t holders = 0;   // parts on it; 0 = the device is whole again
  std::uint32_t slices = 0;   // bit i: memory slice i; bit kMediaBit: the media engines
  std::int32_t permille = 0;  // of compute
  std::int64_t memory_mib = 0;
  friend bool operator==(const PartUse&, const PartUse&) = default;
};

class DeviceParts {
 public:
  DeviceParts() = default;
  DeviceParts(const DeviceParts& other)
      : list_(other.list_ ? std::make_unique<std::vector<PartUse>>(*other.list_) : nullptr) {}
  DeviceParts(DeviceParts&&) noexcept = default;
  DeviceParts& operator=(const DeviceParts& other) {
    if (this != &other) *this = DeviceParts(other);
    return *this;
  }
  DeviceParts& operator=(DeviceParts&&) noexcept = default;
  ~DeviceParts() = default;

  bool empty() const { return !list_ || list_->empty(); }
  std::span<const PartUse> uses() const {
    return list_ ? std::span<const PartUse>(*list_) : std::span<const PartUse>();
  }
  std::span<PartUse> edit() { return list_ ? std::span<PartUse>(*list_) : std::span<PartUse>(); }
  const PartUse* find(std::uint16_t device) const {
    for (const PartUse& use : uses())
      if (use.device == device) return &use;
    return nullptr;
  }
  void add(const PartUse& more) {
    PartUse& use = of(more.device, more.type);
    use.holders += more.holders;
    use.slices |= more.slices;
    use.permille += more.permille;
    use.memory_mib += more.memory_mib;
  }
  void add(const DeviceParts& more) {
    for (const PartUse& use : more.uses()) add(use);
  }
  void remove(const DeviceParts& less) {
    for (const PartUse& gone : less.uses()) {
      PartUse& use = of(gone.device, gone.type);
      use.holders -= gone.holders;
      use.slices &= ~gone.slices;
      use.permille -= gone.permille;
      use.memory_mib -= gone.memory_mib;
    }
    if (list_) std::erase_if(*list_, [](const PartUse& use) { return use.holders == 0; });
  }
  // The most of both: what is in use at one of two moments.
  void raise_to(const DeviceParts& other) {
    for (const PartUse& more : other.uses()) {
      PartUse& use = of(more.device, more.type);
      use.holders = std::max(use.holders, more.holders);
      use.slices |= more.slices;
      use.permille = std::max(use.permille, more.permille);
      use.memory_mib = std::max(use.memory_mib, more.memory_mib);
    }
  }
  friend bool operator==(const DeviceParts& a, const DeviceParts& b) {
    return std::ranges::equal(a.uses(), b.uses());
  }

 private:
  PartUse& of(std::uint16_t device, std::uint16_t type) {
    if (!list_) list_ = std::make_unique<std::vector<PartUse>>();
    auto at = std::lower_bound(list_->begin(), list_->end(), device,
                               [](const PartUse& a, std::uint16_t b) { return a.device < b; });
    if (at == list_->end() || at->device != device)
      at = list_->insert(at, {device, type, 0, 0, 0, 0});
    return *at;
  }

  std::unique_ptr<std::vector<PartUse>> list_;  // by device
};

}  // namespace tutti::scheduler
