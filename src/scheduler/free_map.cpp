#include "scheduler/free_map.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "scheduler/mig.h"

namespace tutti::scheduler {

namespace {

constexpr std::uint32_t words_for(std::uint32_t bits) { return (bits + 63) / 64; }

void set_bit(std::uint64_t* words, std::uint32_t bit) {
  words[bit / 64] |= std::uint64_t{1} << (bit % 64);
}
bool test_bit(const std::uint64_t* words, std::uint32_t bit) {
  return (words[bit / 64] >> (bit % 64)) & 1;
}

}  // namespace

FreeMap::FreeMap(const ClusterIndex& cluster, NodeSet usable)
    : cluster_(cluster), usable_(std::move(usable)) {
  std::size_t count = cluster.size();
  free_.reserve(count);
  cores_at_.reserve(count);
  devices_at_.reserve(count);
  std::uint32_t words = 0;
  for (NodeIndex node = 0; node < count; ++node) {
    const NodeClass& kind = cluster.of(node);
    free_.push_back(kind.full);
    cores_at_.push_back(words);
    words += words_for(static_cast<std::uint32_t>(kind.full.cores));
    devices_at_.push_back(words);
    words += words_for(kind.devices);
  }
  busy_.resize(words);
}

bool FreeMap::core_is_free(NodeIndex node, std::uint32_t core) const {
  return !test_bit(&busy_[cores_at_[node]], core);
}
bool FreeMap::gpu_is_free(NodeIndex node, std::uint32_t device) const {
  return !test_bit(&busy_[devices_at_[node]], device);
}

namespace {

void hold_part(const NodeClass& kind, const DevicePart& part, Capacity& held) {
  for (std::size_t type = 0; type < kind.types.size(); ++type) {
    const auto& devices = kind.device_of[type];
    if (std::find(devices.begin(), devices.end(), part.device) == devices.end()) continue;
    PartUse use{part.device, static_cast<std::uint16_t>(type), 1, 0,
                static_cast<std::int32_t>(part.share_permille),
                static_cast<std::int64_t>(part.memory_mib)};
    if (!part.profile.empty()) {
      auto profile =
          mig_profile(kind.shared[type].type_name, kind.shared[type].memory_mib, part.profile);
      // A device that is another one now counts as used up.
      use.slices = profile ? profile->mask_at(part.start) : 0xFFFF;
      use.memory_mib = use.permille = 0;
    }
    held.parts.add(use);
  }
}

}  // namespace

Capacity FreeMap::hold(const Slot& slot) {
  Capacity held;
  if (slot.node >= cluster_.size()) return held;
  const NodeClass& kind = cluster_.of(slot.node);
  held.vacancy = 1;
  held.memory_mib = static_cast<std::int64_t>(slot.memory_mib);
  auto cores = static_cast<std::uint32_t>(kind.full.cores);
  auto hold_core = [&](std::uint32_t core) {
    if (core >= cores || !core_is_free(slot.node, core)) return;
    set_bit(&busy_[cores_at_[slot.node]], core);
    ++held.cores;
  };
  if (slot.exclusive) {
    for (std::uint32_t core = 0; core < cores; ++core) hold_core(core);
  } else {
    // Logical CPU c and c + (number of cores) are threads of one core.
    for (std::uint16_t cpu : slot.cpu_ids) hold_core(cores == 0 ? 0 : cpu % cores);
  }
  for (std::size_t type = 0; type < kind.types.size(); ++type) {
    for (std::uint16_t device : kind.device_of[type]) {
      bool mine = slot.exclusive ||
                  std::find(slot.gpus.begin(), slot.gpus.end(), device) != slot.gpus.end();
      if (!mine || !gpu_is_free(slot.node, device)) continue;
      set_bit(&busy_[devices_at_[slot.node]], device);
      ++held.gpus[type];
    }
  }
  if (!slot.exclusive)
    for (const DevicePart& part : slot.parts) hold_part(kind, part, held);
  change(slot.node, held, true);
  return held;
}

std::uint64_t FreeMap::key_of(NodeIndex node) const {
  const Capacity& free = free_[node];
  return Key{cluster_.of(node).weight, std::clamp(free.gpu_count(), 0, 0x7FF), free.vacancy == 0,
             std::clamp(free.cores, 0, 0xFFFFF)}
      .pack();
}

void FreeMap::index(NodeIndex node) {
  std::vector<NodeIndex>& bucket = buckets_[key_of(node)];
  bucket.insert(std::lower_bound(bucket.begin(), bucket.end(), node), node);
}

void FreeMap::unindex(NodeIndex node) {
  auto it = buckets_.find(key_of(node));
  TUTTI_CHECK(it != buckets_.end());
  auto at = std::lower_bound(it->second.begin(), it->second.end(), node);
  TUTTI_CHECK(at != it->second.end() && *at == node);
  it->second.erase(at);
  if (it->second.empty()) buckets_.erase(it);
}

void FreeMap::build_index() {
  std::vector<std::pair<std::uint64_t, NodeIndex>> keys;
  keys.reserve(free_.size());
  usable_.for_each([&](NodeIndex node) { keys.emplace_back(key_of(node), node); });
  std::sort(keys.begin(), keys.end());
  auto hint = buckets_.end();
  for (const auto& [key, node] : keys) {
    if (hint == buckets_.end() || hint->first != key)
      hint = buckets_.emplace_hint(buckets_.end(), key, std::vector<NodeIndex>());
    hint->second.push_back(node);
  }
  indexed_ = true;
}

void FreeMap::change(NodeIndex node, const Capacity& amount, bool taken) {
  bool listed = indexed_ && usable_.contains(node);
  if (listed) unindex(node);
  if (taken)
    free_[node] -= amount;
  else
    free_[node] += amount;
  if (listed) index(node);
}

void FreeMap::take(NodeIndex node, const Capacity& amount) { change(node, amount, true); }
void FreeMap::give(NodeIndex node, const Capacity& amount) { change(node, amount, false); }

void FreeMap::pick_cores(NodeIndex node, std::int32_t count, Slot& slot) {
  const NodeClass& kind = cluster_.of(node);
  auto cores = static_cast<std::uint32_t>(kind.full.cores);
  std::uint64_t* busy = &busy_[cores_at_[node]];
  slot.cpu_ids.reserve(static_cast<std::size_t>(count) * kind.threads);
  for (std::uint32_t word = 0; word < words_for(cores) && count > 0; ++word) {
    std::uint64_t free = ~busy[word];
    for (; free != 0 && count > 0; free &= free - 1) {
      std::uint32_t core = word * 64 + static_cast<std::uint32_t>(std::countr_zero(free));
      if (core >= cores) break;
      set_bit(busy, core);
      slot.cpu_ids.push_back(static_cast<std::uint16_t>(core));
      --count;
    }
  }
  TUTTI_CHECK(count == 0);
  std::size_t first_threads = slot.cpu_ids.size();
  for (std::uint32_t thread = 1; thread < kind.threads; ++thread)
    for (std::size_t i = 0; i < first_threads; ++i)
      slot.cpu_ids.push_back(static_cast<std::uint16_t>(slot.cpu_ids[i] + thread * cores));
}

namespace {

// Leaves only the devices of one group (an NVLink island, a NUMA node) where one holds them all: the
// group with the least to spare, the lowest of equals.
template <class GroupOf>
void keep_near(std::vector<std::uint16_t>& free, std::size_t wanted, GroupOf group_of) {
  if (wanted == free.size() || std::all_of(free.begin(), free.end(), [&](std::uint16_t device) {
        return group_of(device) == -1;
      }))
    return;
  std::map<std::int32_t, std::size_t> sizes;
  for (std::uint16_t device : free) ++sizes[group_of(device)];
  sizes.erase(-1);  // not known
  auto best = sizes.end();
  for (auto it = sizes.begin(); it != sizes.end(); ++it)
    if (it->second >= wanted && (best == sizes.end() || it->second < best->second)) best = it;
  if (best == sizes.end()) return;
  std::erase_if(free, [&](std::uint16_t device) { return group_of(device) != best->first; });
}

}  // namespace

void FreeMap::pick_gpus(NodeIndex node, std::size_t type, std::int32_t count, Slot& slot) {
  const std::vector<std::uint16_t>& devices = cluster_.of(node).device_of[type];
  auto wanted = static_cast<std::size_t>(count);
  std::vector<std::uint16_t> free;
  for (std::uint16_t device : devices)
    if (gpu_is_free(node, device) && !free_[node].parts.find(device)) free.push_back(device);
  TUTTI_CHECK(free.size() >= wanted);
  const std::vector<DeviceSpec>& specs = cluster_.spec().nodes[node].devices;
  keep_near(free, wanted, [&](std::uint16_t device) { return specs[device].numa; });
  keep_near(free, wanted, [&](std::uint16_t device) { return specs[device].nvlink; });
  // The window of free devices that lies closest together; the lowest of equals.
  std::size_t best = 0;
  for (std::size_t i = 0; i + wanted <= free.size(); ++i)
    if (free[i + wanted - 1] - free[i] < free[best + wanted - 1] - free[best]) best = i;
  for (std::size_t i = best; i < best + wanted; ++i) {
    set_bit(&busy_[devices_at_[node]], free[i]);
    slot.gpus.push_back(free[i]);
  }
}

void FreeMap::choose_devices(NodeIndex node, Capacity& amount) const {
  const DeviceParts asked = std::move(amount.parts);
  amount.parts = DeviceParts();
  for (const PartUse& use : asked.uses()) {
    PartUse chosen = use;
    if (use.device >= kUnchosen) {
      const auto& devices = cluster_.of(node).device_of[use.type];
      auto whole = std::find_if(devices.begin(), devices.end(), [&](std::uint16_t device) {
        return gpu_is_free(node, device) && !free_[node].parts.find(device) &&
               !amount.parts.find(device) && !asked.find(device);
      });
      TUTTI_CHECK(whole != devices.end());
      chosen.device = *whole;
    }
    amount.parts.add(chosen);
  }
}

Slot FreeMap::start(NodeIndex node, Capacity& amount) {
  if (!amount.parts.empty()) choose_devices(node, amount);
  Slot slot;
  slot.node = node;
  slot.memory_mib = static_cast<std::uint64_t>(amount.memory_mib);
  pick_cores(node, amount.cores, slot);
  for (std::size_t type = 0; type < kGpuTypesPerNode; ++type)
    if (amount.gpus[type] > 0) pick_gpus(node, type, amount.gpus[type], slot);
  std::sort(slot.gpus.begin(), slot.gpus.end());
  change(node, amount, true);
  return slot;
}

}  // namespace tutti::scheduler
