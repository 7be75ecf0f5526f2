// Terms: what a workload accepts from and demands of the scheduler beyond its size: its queue, whom
// it yields to and how, where its members lie to each other, whether its size may change. Plain
// data; every front end lowers to it (an sbatch option, a QOS, a manifest's label).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/archive.h"
#include "base/time.h"

namespace tutti {

// What becomes of a gang whose room is taken back.
enum class ReclaimMode : std::uint8_t {
  kDefault,     // what its QOS, partition or queue says; requeue where nobody says anything
  kOff,         // it is never a victim
  kCancel,      // ended for good
  kRequeue,     // ended and pending again
  kSuspend,     // stopped in place; only where device memory is released
  kCheckpoint,  // told to save within its notice, then ended and pending again
};
template <>
struct EnumNames<ReclaimMode> {
  static constexpr std::array kTable{
      std::pair{ReclaimMode::kDefault, std::string_view("default")},
      std::pair{ReclaimMode::kOff, std::string_view("off")},
      std::pair{ReclaimMode::kCancel, std::string_view("cancel")},
      std::pair{ReclaimMode::kRequeue, std::string_view("requeue")},
      std::pair{ReclaimMode::kSuspend, std::string_view("suspend")},
      std::pair{ReclaimMode::kCheckpoint, std::string_view("checkpoint")}};
};

// How near to each other the slots of a gang lie. Levels are names of ClusterSpec's topology
// ("block", "rack"); "" = not asked.
struct TopologyAsk {
  std::string required;        // all slots in one domain of this level, or no start
  std::string preferred;       // in one domain of this level if that delays nothing
  std::uint32_t segment = 0;   // nodes per block that belong together (--segment); 0 = none
  std::uint32_t switches = 0;  // --switches=N: at most so many leaf switches; 0 = any
  std::optional<Duration> switches_wait;  // so long it waits for that; none = as configured
  friend bool operator==(const TopologyAsk&, const TopologyAsk&) = default;
};
template <class A>
void describe(A& a, TopologyAsk& x) {
  a("required", x.required);
  a("preferred", x.preferred);
  a("segment", x.segment);
  a("switches", x.switches);
  a("switches_wait_ms", x.switches_wait);
}

struct Terms {
  std::string queue;             // of the quota tree; "" = the account's, else the default queue
  std::string priority_class;    // its name, for people
  std::int32_t class_value = 0;  // its value; higher comes first
  ReclaimMode reclaim = ReclaimMode::kDefault;
  std::optional<Duration> notice;  // from the notice to the end; none = the queue's
  std::int32_t notice_signal = 0;  // 0 = SIGTERM
  Duration min_runtime;            // not a victim before it has run so long
  bool elastic = false;            // may be resized between nodes_min and nodes_max of its roles
  std::string group;               // gangs of one group are placed as one gang
  std::uint32_t group_size = 0;    // gangs it is complete with
  TopologyAsk topology;
  std::optional<Duration> ready_deadline;  // ranks that have not met by then are stopped
  std::vector<std::string> gpu_types;      // feasible types in order; empty = as the queue says
  bool same_gpu_type = false;              // all GPUs of the gang of one type
  friend bool operator==(const Terms&, const Terms&) = default;
};
template <class A>
void describe(A& a, Terms& x) {
  a("queue", x.queue);
  a("priority_class", x.priority_class);
  a("class_value", x.class_value);
  a("reclaim", x.reclaim);
  a("notice_ms", x.notice);
  a("notice_signal", x.notice_signal);
  a("min_runtime_ms", x.min_runtime);
  a("elastic", x.elastic);
  a("group", x.group);
  a("group_size", x.group_size);
  a("topology", x.topology);
  a("ready_deadline_ms", x.ready_deadline);
  a("gpu_types", x.gpu_types);
  a("same_gpu_type", x.same_gpu_type);
}

}  // namespace tutti
