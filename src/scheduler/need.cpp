#include "scheduler/need.h"

#include <algorithm>

#include "base/check.h"
#include "scheduler/parts.h"

namespace tutti::scheduler {

namespace {

std::int64_t ceil_div(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

// The GPUs of a slot: what is asked per node, per task or as a share of the total.
std::int64_t gpus_of(const RoleNeed& need, std::int64_t tasks, std::int64_t of_total) {
  return std::max({std::int64_t{need.gpus_per_node}, tasks * need.gpus_per_task, of_total});
}

}  // namespace

std::int32_t RoleNeed::least_gpus() const {
  if (asks_parts()) return 0;  // a device that others use is no whole one
  return static_cast<std::int32_t>(
      std::max({gpus_per_node, gpus_per_task, gpus_total > 0 ? 1u : 0u}));
}

std::int32_t RoleNeed::least_cpus() const {
  auto gpus = std::max({gpus_per_node, gpus_per_task, gpus_total > 0 ? 1u : 0u});
  return static_cast<std::int32_t>(std::max({cpus_per_task, cpus_per_node, gpus * cpus_per_gpu}));
}

SlotNeed slot_need(const RoleNeed& need, const NodeClass& node, std::uint32_t tasks,
                   std::uint32_t gpus_of_total) {
  std::int64_t gpus = gpus_of(need, tasks, gpus_of_total);
  std::int64_t cpus = std::max({std::int64_t{tasks} * need.cpus_per_task, gpus * need.cpus_per_gpu,
                                std::int64_t{need.cpus_per_node}, std::int64_t{1}});
  std::int64_t cores = ceil_div(cpus, node.threads);
  std::int64_t memory =
      std::max({static_cast<std::int64_t>(need.memory_per_node),
                static_cast<std::int64_t>(need.memory_per_cpu) * cores * node.threads,
                static_cast<std::int64_t>(need.memory_per_gpu) * gpus});
  if (need.memory_whole_node) memory = node.full.memory_mib;
  if (need.exclusive && cores <= node.full.cores && gpus <= free_gpus(need, node, node.full)) {
    cores = node.full.cores;
    gpus = node.full.gpu_count();
  }
  constexpr std::int64_t kMany = 1'000'000'000;
  return {static_cast<std::int32_t>(std::min(cores, kMany)),
          static_cast<std::int32_t>(std::min(gpus, kMany)), memory};
}

std::int32_t free_gpus(const RoleNeed& need, const NodeClass& node, const Capacity& free) {
  if (need.asks_parts()) return free_parts(need, node, free);
  if (need.any_gpu)
    return free.gpu_count() - static_cast<std::int32_t>(free.parts.uses().size());
  auto slot = node.slot_of(need.gpu_type);
  if (!slot) return 0;
  return free.parts.empty() ? free.gpus[*slot] : whole_gpus(free)[*slot];
}

bool fits(const RoleNeed& need, const NodeClass& node, const Capacity& free, std::uint32_t tasks,
          std::uint32_t gpus_of_total) {
  if (need.exclusive) {
    // A node of its own: the whole of it must be free, and hold what was asked.
    if (free.vacancy != 0 || free.cores != node.full.cores) return false;
    std::int64_t gpus = gpus_of(need, tasks, gpus_of_total);
    if (!free.parts.empty()) return false;
    if (gpus > free_gpus(need, node, node.full) || free.gpu_count() != node.full.gpu_count())
      return false;
  }
  SlotNeed slot = slot_need(need, node, tasks, gpus_of_total);
  if (slot.cores > free.cores || slot.memory_mib > free.memory_mib) return false;
  return need.exclusive || slot.gpus <= free_gpus(need, node, free);
}

std::uint32_t most_tasks(const RoleNeed& need, const NodeClass& node, const Capacity& free,
                         std::uint32_t limit) {
  std::uint32_t of_total = need.gpus_total > 0 ? 1 : 0;
  if (need.tasks_per_node > 0) limit = std::min(limit, need.tasks_per_node);
  if (limit == 0 || !fits(need, node, free, 1, of_total)) return 0;
  if (fits(need, node, free, limit, of_total)) return limit;
  // More tasks never need less, so the border can be searched.
  std::uint32_t fit = 1, too_many = limit;
  if (need.cpus_per_task > 0) {
    auto by_cpus = static_cast<std::uint64_t>(free.cores) * node.threads / need.cpus_per_task;
    too_many = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(too_many, std::max<std::uint64_t>(by_cpus + 1, 2)));
  }
  while (too_many - fit > 1) {
    std::uint32_t middle = fit + (too_many - fit) / 2;
    (fits(need, node, free, middle, of_total) ? fit : too_many) = middle;
  }
  return fit;
}

std::uint32_t most_gpus(const RoleNeed& need, const NodeClass& node, const Capacity& free) {
  if (need.gpus_total == 0 || !fits(need, node, free, 1, 1)) return 0;
  auto limit = std::min<std::uint32_t>(
      need.gpus_total,
      static_cast<std::uint32_t>(std::max(free_gpus(need, node, free), std::int32_t{1})));
  std::uint32_t fit = 1, too_many = limit + 1;
  while (too_many - fit > 1) {
    std::uint32_t middle = fit + (too_many - fit) / 2;
    (fits(need, node, free, 1, middle) ? fit : too_many) = middle;
  }
  return fit;
}

Capacity take_of(const RoleNeed& need, const NodeClass& node, const Capacity& free,
                 std::uint32_t tasks, std::uint32_t gpus_of_total) {
  SlotNeed slot = slot_need(need, node, tasks, gpus_of_total);
  Capacity take;
  take.cores = slot.cores;
  take.memory_mib = slot.memory_mib;
  take.vacancy = 1;
  if (need.exclusive) {
    take.gpus = node.full.gpus;
    return take;
  }
  if (slot.gpus == 0) return take;
  if (need.asks_parts()) {
    take.parts = take_parts(need, node, free, slot.gpus);
    return take;
  }
  if (!need.any_gpu) {
    take.gpus[*node.slot_of(need.gpu_type)] = static_cast<std::int16_t>(slot.gpus);
    return take;
  }
  std::optional<std::size_t> best;
  const auto whole = whole_gpus(free);
  for (std::size_t i = 0; i < node.types.size(); ++i)
    if (whole[i] >= slot.gpus && (!best || whole[i] < whole[*best])) best = i;
  if (best) {
    take.gpus[*best] = static_cast<std::int16_t>(slot.gpus);
    return take;
  }
  std::int32_t missing = slot.gpus;
  while (missing > 0) {
    std::size_t fullest = 0;
    for (std::size_t i = 1; i < node.types.size(); ++i)
      if (whole[i] - take.gpus[i] > whole[fullest] - take.gpus[fullest]) fullest = i;
    auto some = std::min<std::int32_t>(missing, whole[fullest] - take.gpus[fullest]);
    TUTTI_CHECK(some > 0);
    take.gpus[fullest] = static_cast<std::int16_t>(take.gpus[fullest] + some);
    missing -= some;
  }
  return take;
}

}  // namespace tutti::scheduler
