// What requests and gangs count for in the quota tree.
#include <algorithm>

#include "scheduler/quota.h"

namespace tutti::scheduler {

namespace {

constexpr std::uint64_t kWhole = 1000;

void add_gpus(Charge& charge, GpuType type, std::uint64_t amount) {
  auto at =
      std::lower_bound(charge.gpus.begin(), charge.gpus.end(), type,
                       [](const auto& entry, GpuType wanted) { return entry.first < wanted; });
  if (at == charge.gpus.end() || at->first != type) at = charge.gpus.insert(at, {type, 0});
  at->second += amount;
}

// A part of a device counts as the larger of its shares of memory and compute.
std::uint64_t thousandths(const DevicePart& part, const DeviceSpec& device) {
  std::uint64_t share = part.share_permille;
  if (part.memory_mib > 0 && device.memory_mib > 0)
    share = std::max(share, (part.memory_mib * kWhole + device.memory_mib - 1) / device.memory_mib);
  return std::min(share == 0 ? kWhole : share, kWhole);
}

}  // namespace

std::uint64_t Charge::all_gpus() const {
  std::uint64_t sum = untyped_gpus;
  for (const auto& [type, amount] : gpus) sum += amount;
  return sum;
}

Charge& Charge::operator+=(const Charge& other) {
  for (const auto& [type, amount] : other.gpus) add_gpus(*this, type, amount);
  untyped_gpus += other.untyped_gpus;
  cpus += other.cpus;
  memory_mib += other.memory_mib;
  return *this;
}

Charge charge_of(const Shape& shape) {
  Charge charge;
  charge.cpus = shape.cpus;
  for (const RoleNeed& need : shape.roles) {
    const std::uint64_t gpus =
        std::max({std::uint64_t{need.gpus_per_node} * need.nodes_min,
                  std::uint64_t{need.gpus_per_task} * need.tasks, std::uint64_t{need.gpus_total}});
    const std::uint64_t cpus =
        std::max({std::uint64_t{need.tasks} * need.cpus_per_task, gpus * need.cpus_per_gpu,
                  std::uint64_t{need.cpus_per_node} * need.nodes_min});
    charge.memory_mib += std::max({need.memory_per_node * need.nodes_min,
                                   need.memory_per_cpu * cpus, need.memory_per_gpu * gpus});
    if (gpus == 0) continue;
    if (need.any_gpu)
      charge.untyped_gpus += gpus * kWhole;
    else
      add_gpus(charge, need.gpu_type, gpus * kWhole);
  }
  return charge;
}

Charge charge_of(const ClusterIndex& cluster, const std::vector<Slot>& slots) {
  Charge charge;
  for (const Slot& slot : slots) {
    if (slot.released || slot.node >= cluster.size()) continue;
    charge.cpus += slot.cpu_ids.size();
    charge.memory_mib += slot.memory_mib;
    const auto& devices = cluster.spec().nodes[slot.node].devices;
    auto add = [&](std::uint16_t device, std::uint64_t amount) {
      if (device >= devices.size()) return;
      if (auto type = cluster.gpu_type(devices[device].type)) add_gpus(charge, *type, amount);
    };
    for (std::uint16_t gpu : slot.gpus) add(gpu, kWhole);
    for (const DevicePart& part : slot.parts)
      if (part.device < devices.size()) add(part.device, thousandths(part, devices[part.device]));
  }
  return charge;
}

}  // namespace tutti::scheduler
