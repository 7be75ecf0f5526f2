// What one gang asks for, in terms every front end lowers to. Plain data.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/archive.h"

namespace tutti {

constexpr std::uint32_t kNoLimit = 0xFFFFFFFF;

// One kind of member of a gang: T equal tasks spread over nodes_min..nodes_max nodes. The placer
// forms one slot per node. All "0" mean "not asked".
struct RoleAsk {
  std::string name;                    // "" when the gang has a single role
  std::uint32_t nodes_min = 1;         // >= 1
  std::uint32_t nodes_max = kNoLimit;  // >= nodes_min
  std::uint32_t tasks = 1;             // in total, >= 1
  std::uint32_t tasks_per_node = 0;    // at most so many on one node (exactly, if tasks allow it)
  std::uint32_t cpus_per_task = 1;     // logical CPUs
  std::uint32_t cpus_per_gpu = 0;      // raises the CPUs of a slot
  std::uint32_t cpus_per_node = 0;     // at least so many on every node
  std::string gpu_type;                // "" = any one type per node
  std::uint32_t gpus_per_node = 0;
  std::uint32_t gpus_per_task = 0;
  std::uint32_t gpus_total = 0;
  // Parts of devices: each "GPU" counted above is one such part. At most one of profile and share.
  std::string gpu_profile;               // a MIG profile, "1g.10gb"
  std::uint64_t gpu_memory_mib = 0;      // of each device; 0 = as its share gives
  std::uint32_t gpu_share_permille = 0;  // of each device's compute; 0 = as its memory gives
  std::uint64_t memory_mib_per_node = 0;
  std::uint64_t memory_mib_per_cpu = 0;
  std::uint64_t memory_mib_per_gpu = 0;
  bool memory_whole_node = false;  // --mem=0: all the memory of each node
  bool exclusive = false;          // no other gang on its nodes
  bool contiguous = false;
  std::string features;               // "a&b", "a|b", "[a|b]", "a*2": base/node_constraint.h
  std::vector<std::string> nodes_in;  // every one of these nodes must be part of it
  std::vector<std::string> nodes_out;
  friend bool operator==(const RoleAsk&, const RoleAsk&) = default;
};

template <class A>
void describe(A& a, RoleAsk& x) {
  a("name", x.name);
  a("nodes_min", x.nodes_min);
  a("nodes_max", x.nodes_max);
  a("tasks", x.tasks);
  a("tasks_per_node", x.tasks_per_node);
  a("cpus_per_task", x.cpus_per_task);
  a("cpus_per_gpu", x.cpus_per_gpu);
  a("cpus_per_node", x.cpus_per_node);
  a("gpu_type", x.gpu_type);
  a("gpus_per_node", x.gpus_per_node);
  a("gpus_per_task", x.gpus_per_task);
  a("gpus_total", x.gpus_total);
  a("gpu_profile", x.gpu_profile);
  a("gpu_memory_mib", x.gpu_memory_mib);
  a("gpu_share_permille", x.gpu_share_permille);
  a("memory_mib_per_node", x.memory_mib_per_node);
  a("memory_mib_per_cpu", x.memory_mib_per_cpu);
  a("memory_mib_per_gpu", x.memory_mib_per_gpu);
  a("memory_whole_node", x.memory_whole_node);
  a("exclusive", x.exclusive);
  a("contiguous", x.contiguous);
  a("features", x.features);
  a("nodes_in", x.nodes_in);
  a("nodes_out", x.nodes_out);
}

enum class DependencyKind : std::uint8_t {
  kAfter,
  kAfterAny,
  kAfterOk,
  kAfterNotOk,
  kAfterCorr,
  kSingleton
};
template <>
struct EnumNames<DependencyKind> {
  static constexpr std::array kTable{
      std::pair{DependencyKind::kAfter, std::string_view("after")},
      std::pair{DependencyKind::kAfterAny, std::string_view("afterany")},
      std::pair{DependencyKind::kAfterOk, std::string_view("afterok")},
      std::pair{DependencyKind::kAfterNotOk, std::string_view("afternotok")},
      std::pair{DependencyKind::kAfterCorr, std::string_view("aftercorr")},
      std::pair{DependencyKind::kSingleton, std::string_view("singleton")}};
};

struct Dependency {
  DependencyKind kind = DependencyKind::kAfterAny;
  std::uint32_t job = 0;                     // as the user wrote it: a workload or gang number
  std::optional<std::uint32_t> array_index;  // 12_3
  std::uint32_t delay_minutes = 0;           // after:12+5
  bool of_array = false;                     // the job was an array; set by the controller
  friend bool operator==(const Dependency&, const Dependency&) = default;
};
template <class A>
void describe(A& a, Dependency& x) {
  a("kind", x.kind);
  a("job", x.job);
  a("array_index", x.array_index);
  a("delay_minutes", x.delay_minutes);
  a("of_array", x.of_array);
}

}  // namespace tutti
