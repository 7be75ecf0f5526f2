// The machines and the rules: what an administrator configures (ClusterSpec) and what is known of
// each node now (NodeState). Partition = where; limits of a partition apply to every gang in it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/archive.h"
#include "base/time.h"
#include "model/ask.h"
#include "model/ids.h"
#include "model/priority_rules.h"
#include "model/preemption.h"
#include "model/workload.h"

namespace tutti {

struct DeviceSpec {
  std::string kind = "gpu";
  std::string type;              // "rtxpro6000"; "" = untyped
  std::string file;              // "/dev/nvidia0"; "" = counted only
  std::uint64_t memory_mib = 0;  // usable; 0 = unknown: it is not shared by memory
  std::int32_t numa = -1;        // NUMA node it hangs on; -1 = unknown
  std::int32_t nvlink = -1;      // devices of one number reach each other over NVLink; -1 = unknown
  bool mig = false;              // may be divided into MIG instances
};
template <class A>
void describe(A& a, DeviceSpec& x) {
  a("kind", x.kind);
  a("type", x.type);
  a("file", x.file);
  a("memory_mib", x.memory_mib);
  a("numa", x.numa);
  a("nvlink", x.nvlink);
  a("mig", x.mig);
}

// How the node's work is carried out.
enum class NodeKind : std::uint8_t {
  kReal,     // an agent on a machine, or this machine
  kVirtual,  // an agent in namespaces of this machine; devices may be declared only
  kPlanned,  // no agent: planned, booked and journalled like the others, answers are generated
};
template <>
struct EnumNames<NodeKind> {
  static constexpr std::array kTable{std::pair{NodeKind::kReal, "real"sv},
                                     std::pair{NodeKind::kVirtual, "virtual"sv},
                                     std::pair{NodeKind::kPlanned, "planned"sv}};
};

struct NodeSpec {
  std::string name;
  NodeKind kind = NodeKind::kReal;
  std::string address;  // "" = the name
  std::uint32_t cpus = 1, sockets = 1, cores_per_socket = 1, threads_per_core = 1;
  std::uint64_t memory_mib = 1;
  std::vector<DeviceSpec> devices;  // index = device index
  std::vector<std::string> features;
  std::map<std::string, std::string> labels;  // topology levels and what else is known of it
  std::uint32_t weight = 1;                   // lower is filled first
  std::string initial_drain_reason;           // State=DRAIN/DOWN in the configuration
};
template <class A>
void describe(A& a, NodeSpec& x) {
  a("name", x.name);
  a("kind", x.kind);
  a("address", x.address);
  a("cpus", x.cpus);
  a("sockets", x.sockets);
  a("cores_per_socket", x.cores_per_socket);
  a("threads_per_core", x.threads_per_core);
  a("memory_mib", x.memory_mib);
  a("devices", x.devices);
  a("features", x.features);
  a("labels", x.labels);
  a("weight", x.weight);
  a("initial_drain_reason", x.initial_drain_reason);
}

enum class PartitionState : std::uint8_t { kUp, kDown, kDrain, kInactive };
template <>
struct EnumNames<PartitionState> {
  static constexpr std::array kTable{std::pair{PartitionState::kUp, "up"sv},
                                     std::pair{PartitionState::kDown, "down"sv},
                                     std::pair{PartitionState::kDrain, "drain"sv},
                                     std::pair{PartitionState::kInactive, "inactive"sv}};
};

struct PartitionSpec {
  std::string name;
  std::vector<std::string> nodes;
  bool is_default = false;
  PartitionState state = PartitionState::kUp;
  std::optional<Duration> max_time, default_time;
  std::uint32_t max_nodes = kNoLimit, min_nodes = 0;
  std::uint32_t priority_tier = 1, priority_job_factor = 1;
  bool exclusive = false;  // OverSubscribe=EXCLUSIVE
  bool hidden = false, root_only = false, no_root_jobs = false;
  std::vector<std::string> allow_groups, allow_accounts, deny_accounts;
  std::uint64_t default_memory_mib_per_cpu = 0, default_memory_mib_per_node = 0;
  std::uint64_t max_memory_mib_per_node = 0;
  ReclaimMode preempt_mode = ReclaimMode::kDefault;  // of its jobs, where PreemptType is on
  Duration grace_time;                               // from the notice to their end
  // TRESBillingWeights in millionths per unit ("mem": per MiB); empty = as model/usage.h says.
  std::map<std::string, std::uint64_t> billing_weights;
  std::string qos;  // QOS=: its limits hold in the partition
  std::vector<std::string> allow_qos, deny_qos;
};
template <class A>
void describe(A& a, PartitionSpec& x) {
  a("name", x.name);
  a("nodes", x.nodes);
  a("default", x.is_default);
  a("state", x.state);
  a("max_time_ms", x.max_time);
  a("default_time_ms", x.default_time);
  a("max_nodes", x.max_nodes);
  a("min_nodes", x.min_nodes);
  a("priority_tier", x.priority_tier);
  a("priority_job_factor", x.priority_job_factor);
  a("exclusive", x.exclusive);
  a("hidden", x.hidden);
  a("root_only", x.root_only);
  a("no_root_jobs", x.no_root_jobs);
  a("allow_groups", x.allow_groups);
  a("allow_accounts", x.allow_accounts);
  a("deny_accounts", x.deny_accounts);
  a("default_memory_mib_per_cpu", x.default_memory_mib_per_cpu);
  a("default_memory_mib_per_node", x.default_memory_mib_per_node);
  a("max_memory_mib_per_node", x.max_memory_mib_per_node);
  a("preempt_mode", x.preempt_mode);
  a("grace_time_ms", x.grace_time);
  a("billing_weights", x.billing_weights);
  a("qos", x.qos);
  a("allow_qos", x.allow_qos);
  a("deny_qos", x.deny_qos);
}

struct ClusterSpec {
  std::string name = "tutti";
  std::vector<NodeSpec> nodes;
  std::vector<PartitionSpec> partitions;
  // Labels that name domains, from the widest to the narrowest ("block", "rack"). Nodes with equal
  // values of one and of all before it are in one domain.
  std::vector<std::string> topology_levels;
  std::map<std::string, std::uint32_t> licenses;
  PriorityWeights priority;
  PreemptionSpec preemption;
  AccountingRules accounting;
  Duration kill_wait = Duration::seconds(30);     // between TERM and KILL
  Duration min_job_age = Duration::seconds(300);  // a finished job stays visible so long
  Duration roll_call_timeout = Duration::seconds(30);
  Duration node_grace = Duration::seconds(60);  // unknown before it counts as lost
  std::uint32_t max_array_index = 1'000'000;
  std::uint32_t max_jobs = 1'000'000;
  std::uint32_t first_job_id = 1;  // numbers below it are never given out
  std::uint64_t default_memory_mib_per_cpu = 0, default_memory_mib_per_node = 0;
  bool gpus_in_accounting = true;
  std::map<std::string, std::string> as_given;  // settings kept only to show them again
};
template <class A>
void describe(A& a, ClusterSpec& x) {
  a("name", x.name);
  a("nodes", x.nodes);
  a("partitions", x.partitions);
  a("topology_levels", x.topology_levels);
  a("licenses", x.licenses);
  a("priority", x.priority);
  a("preemption", x.preemption);
  a("accounting", x.accounting);
  a("kill_wait_ms", x.kill_wait);
  a("min_job_age_ms", x.min_job_age);
  a("roll_call_timeout_ms", x.roll_call_timeout);
  a("node_grace_ms", x.node_grace);
  a("max_array_index", x.max_array_index);
  a("max_jobs", x.max_jobs);
  a("first_job_id", x.first_job_id);
  a("default_memory_mib_per_cpu", x.default_memory_mib_per_cpu);
  a("default_memory_mib_per_node", x.default_memory_mib_per_node);
  a("gpus_in_accounting", x.gpus_in_accounting);
  a("as_given", x.as_given);
}

// Unknown: the agent does not answer but may still run its work; never guessed to be down.
enum class NodeStatus : std::uint8_t { kNeverSeen, kUp, kUnknown, kLost };
template <>
struct EnumNames<NodeStatus> {
  static constexpr std::array kTable{
      std::pair{NodeStatus::kNeverSeen, "never_seen"sv}, std::pair{NodeStatus::kUp, "up"sv},
      std::pair{NodeStatus::kUnknown, "unknown"sv}, std::pair{NodeStatus::kLost, "lost"sv}};
};

struct NodeState {
  NodeStatus status = NodeStatus::kNeverSeen;
  bool drained = false;  // takes no new work; stays until an administrator resumes it
  bool down = false;     // said to be down by an administrator
  std::string reason;    // of the drain or failure
  std::uint32_t reason_uid = 0;
  Instant reason_at;
  Instant changed, booted, agent_started;
  std::string agent_version, kernel;
};
template <class A>
void describe(A& a, NodeState& x) {
  a("status", x.status);
  a("drained", x.drained);
  a("down", x.down);
  a("reason", x.reason);
  a("reason_uid", x.reason_uid);
  a("reason_at_ms", x.reason_at);
  a("changed_ms", x.changed);
  a("booted_ms", x.booted);
  a("agent_started_ms", x.agent_started);
  a("agent_version", x.agent_version);
  a("kernel", x.kernel);
}

}  // namespace tutti
