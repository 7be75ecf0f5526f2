#include "scheduler/parts.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <tuple>

#include "base/check.h"
#include "scheduler/mig.h"

namespace tutti::scheduler {

namespace {

// What one part takes of a device of a type.
struct PartOnType {
  std::optional<MigProfile> profile;
  std::int64_t memory_mib = 0;
  std::int32_t permille = 0;
};

// Source of the arithmetic: share f promises floor(f x usable) bytes; nothing is over-committed by
// rounding, so a share that follows from memory is rounded down too.
std::optional<PartOnType> part_on(const RoleNeed& need, const NodeClass& node, std::size_t type) {
  if (!need.any_gpu && node.types[type] != need.gpu_type) return std::nullopt;
  const SharedDevice& device = node.shared[type];
  if (!need.part_profile.empty()) {
    if (!device.mig) return std::nullopt;
    auto profile = mig_profile(device.type_name, device.memory_mib, need.part_profile);
    if (!profile) return std::nullopt;
    return PartOnType{*profile, 0, 0};
  }
  const auto usable = static_cast<std::int64_t>(device.memory_mib);
  PartOnType out;
  out.memory_mib = static_cast<std::int64_t>(need.part_memory_mib);
  out.permille = static_cast<std::int32_t>(need.part_permille);
  if (out.memory_mib > 0 && (usable == 0 || out.memory_mib > usable)) return std::nullopt;
  if (out.permille == 0) out.permille = static_cast<std::int32_t>(out.memory_mib * 1000 / usable);
  if (out.memory_mib == 0) out.memory_mib = usable * out.permille / 1000;
  return out;
}

std::int32_t count_on(const PartOnType& part, const NodeClass& node, const PartUse& use) {
  if (part.profile) {
    if (use.memory_mib > 0 || use.permille > 0) return 0;
    std::int32_t count = 0;
    for (std::uint16_t start : part.profile->starts)
      count += (part.profile->mask_at(start) & use.slices) == 0;
    return part.profile->media ? std::min(count, 1) : count;
  }
  if (use.slices != 0) return 0;
  return use.permille + part.permille <= 1000 &&
         use.memory_mib + part.memory_mib <=
             static_cast<std::int64_t>(node.shared[use.type].memory_mib);
}

// Legal starts of all profiles of one to four slices that stay open: how much of the device is left
// to others.
std::int32_t open_starts(std::uint32_t used) {
  std::int32_t open = 0;
  for (std::uint32_t size : {1U, 2U, 4U})
    for (std::uint32_t start = 0; start + size <= 8; start += size)
      open += ((((1U << size) - 1) << start) & used) == 0;
  return open;
}

std::uint16_t best_start(const MigProfile& profile, std::uint32_t used) {
  std::optional<std::uint16_t> best;
  for (std::uint16_t start : profile.starts) {
    if ((profile.mask_at(start) & used) != 0) continue;
    // Slice 7 belongs to no instance of one slice, so the upper end is filled first of equals.
    if (!best || open_starts(used | profile.mask_at(start)) >=
                     open_starts(used | profile.mask_at(*best)))
      best = start;
  }
  TUTTI_CHECK(best.has_value());
  return *best;
}

bool is_fuller(const PartUse& a, const PartUse& b) {
  auto key = [](const PartUse& use) {
    return std::tuple(std::popcount(use.slices), use.memory_mib, use.permille);
  };
  return key(a) > key(b);
}

}  // namespace

std::array<std::int16_t, kGpuTypesPerNode> whole_gpus(const Capacity& free) {
  auto out = free.gpus;
  for (const PartUse& use : free.parts.uses())
    out[use.type] = static_cast<std::int16_t>(out[use.type] - 1);
  return out;
}

std::int32_t free_parts(const RoleNeed& need, const NodeClass& node, const Capacity& free) {
  std::int32_t count = 0;
  const auto whole = whole_gpus(free);
  for (std::size_t type = 0; type < node.types.size(); ++type) {
    auto part = part_on(need, node, type);
    if (!part) continue;
    PartUse fresh;
    fresh.type = static_cast<std::uint16_t>(type);
    count += std::max<std::int32_t>(whole[type], 0) * count_on(*part, node, fresh);
    for (const PartUse& use : free.parts.uses())
      if (use.type == type) count += count_on(*part, node, use);
  }
  return count;
}

DeviceParts take_parts(const RoleNeed& need, const NodeClass& node, const Capacity& free,
                       std::int32_t count) {
  DeviceParts taken, used = free.parts;
  auto whole = whole_gpus(free);
  for (std::int32_t i = 0; i < count; ++i) {
    PartUse best;
    std::optional<PartOnType> best_part;
    for (std::size_t type = 0; type < node.types.size(); ++type) {
      auto part = part_on(need, node, type);
      if (!part) continue;
      for (const PartUse& use : used.uses()) {
        if (use.type != type || count_on(*part, node, use) == 0) continue;
        // Shares of one slot are of different devices.
        if (!part->profile && taken.find(use.device)) continue;
        if (best_part && !is_fuller(use, best)) continue;
        best = use;
        best_part = part;
      }
    }
    for (std::size_t type = 0; type < node.types.size() && !best_part; ++type) {
      auto part = part_on(need, node, type);
      PartUse fresh;
      fresh.type = static_cast<std::uint16_t>(type);
      if (!part || whole[type] <= 0 || count_on(*part, node, fresh) == 0) continue;
      fresh.device = kUnchosen;
      while (used.find(fresh.device)) ++fresh.device;
      --whole[type];
      best = fresh;
      best_part = part;
    }
    TUTTI_CHECK(best_part.has_value());
    PartUse one{best.device, best.type, 1, 0, best_part->permille, best_part->memory_mib};
    if (best_part->profile) {
      one.slices = best_part->profile->mask_at(best_start(*best_part->profile, best.slices));
    }
    taken.add(one);
    used.add(one);
  }
  return taken;
}

std::vector<DevicePart> device_parts(const RoleNeed& need, const NodeClass& node,
                                     const DeviceParts& taken) {
  std::vector<DevicePart> out;
  for (const PartUse& use : taken.uses()) {
    DevicePart part;
    part.device = use.device;
    part.memory_mib = static_cast<std::uint64_t>(use.memory_mib);
    part.share_permille = static_cast<std::uint32_t>(use.permille);
    auto on = part_on(need, node, use.type);
    if (!on || !on->profile) {
      out.push_back(part);
      continue;
    }
    part.profile = need.part_profile;
    for (std::uint16_t start : on->profile->starts) {
      if ((on->profile->mask_at(start) & ~use.slices) != 0) continue;
      part.start = start;
      out.push_back(part);
    }
  }
  return out;
}

}  // namespace tutti::scheduler
