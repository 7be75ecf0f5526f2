// What an agent needs to carry out a step on its node: facts and typed orders, no decisions left.
// The environment of the ranks is derived from the facts by agent/rank_environment.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/archive.h"
#include "model/gang.h"
#include "model/ids.h"
#include "model/workload.h"

namespace tutti {

// Facts of the allocation that every step of it shares. Vectors run over the slots in node order.
struct JobFacts {
  GangId gang;
  WorkloadId workload;
  Epoch epoch;
  std::string cluster, name, user, group, account, qos, partition;
  std::uint32_t uid = 0, gid = 0;
  std::vector<std::string> nodes;
  std::vector<std::uint32_t> cpus, tasks, gpus;  // per node
  std::uint32_t total_tasks = 1, tasks_per_node = 0, cpus_per_task = 1, gpus_per_node = 0,
                gpus_per_task = 0;
  bool cpus_per_task_given = false;
  std::uint64_t memory_mib_per_node = 0, memory_mib_per_cpu = 0;
  std::optional<std::uint32_t> array_index, array_count, array_min, array_max, array_step;
  std::uint32_t restarts = 0;
  std::string submit_dir, submit_host, reservation;
  Instant started, limit_end;
  std::string evicted_for;      // why its last life ended before its time
  std::uint32_t evictions = 0;  // lives that ended so
  std::vector<std::string>
      host_addresses;  // per node, for /etc/hosts of the ranks; "" = resolvable
  // Per node, its domains from the widest on and its name, by dots; empty = the names alone.
  std::vector<std::string> topology;
  std::string topology_pattern;       // what the pieces are: "switch.switch.node"
  std::uint16_t rendezvous_port = 0;  // for the ranks to meet at; no other gang there has it
};
void describe(auto& a, JobFacts& x) {
  a("gang", x.gang);
  a("workload", x.workload);
  a("epoch", x.epoch);
  a("cluster", x.cluster);
  a("name", x.name);
  a("user", x.user);
  a("group", x.group);
  a("account", x.account);
  a("qos", x.qos);
  a("partition", x.partition);
  a("uid", x.uid);
  a("gid", x.gid);
  a("nodes", x.nodes);
  a("cpus", x.cpus);
  a("tasks", x.tasks);
  a("gpus", x.gpus);
  a("total_tasks", x.total_tasks);
  a("tasks_per_node", x.tasks_per_node);
  a("cpus_per_task", x.cpus_per_task);
  a("gpus_per_node", x.gpus_per_node);
  a("gpus_per_task", x.gpus_per_task);
  a("cpus_per_task_given", x.cpus_per_task_given);
  a("memory_mib_per_node", x.memory_mib_per_node);
  a("memory_mib_per_cpu", x.memory_mib_per_cpu);
  a("array_index", x.array_index);
  a("array_count", x.array_count);
  a("array_min", x.array_min);
  a("array_max", x.array_max);
  a("array_step", x.array_step);
  a("restarts", x.restarts);
  a("submit_dir", x.submit_dir);
  a("submit_host", x.submit_host);
  a("reservation", x.reservation);
  a("started_ms", x.started);
  a("limit_end_ms", x.limit_end);
  a("evicted_for", x.evicted_for);
  a("evictions", x.evictions);
  a("rendezvous_port", x.rendezvous_port);
  a("host_addresses", x.host_addresses);
  a("topology", x.topology);
  a("topology_pattern", x.topology_pattern);
}

// What this node holds for the gang; prepared once, before any step.
struct SlotOrder {
  std::uint32_t slot = 0;
  std::vector<std::uint16_t> cpu_ids;
  std::uint64_t memory_mib = 0;
  std::vector<std::uint16_t> gpus;
  std::vector<DevicePart> parts;  // of devices that others share
};
void describe(auto& a, SlotOrder& x) {
  a("slot", x.slot);
  a("cpu_ids", x.cpu_ids);
  a("memory_mib", x.memory_mib);
  a("gpus", x.gpus);
  a("parts", x.parts);
}

enum class StreamKind : std::uint8_t { kNull, kFile, kAttached };
template <>
struct EnumNames<StreamKind> {
  static constexpr std::array kTable{std::pair{StreamKind::kNull, "null"sv},
                                     std::pair{StreamKind::kFile, "file"sv},
                                     std::pair{StreamKind::kAttached, "attached"sv}};
};
// Where a stream of the ranks goes. A file path may hold patterns (%j %J %A %a %x %u %N %n %t %s
// %%), expanded by the supervisor after it has become the user. Attached: through the controller to
// the client (srun), framed, acknowledged, resent after a reconnect.
struct StreamTarget {
  StreamKind kind = StreamKind::kNull;
  std::string path;
  std::optional<std::uint32_t> only_rank;  // srun --input/--output=RANK
};
void describe(auto& a, StreamTarget& x) {
  a("kind", x.kind);
  a("path", x.path);
  a("only_rank", x.only_rank);
}

struct StepOrder {
  StepId step = 0;
  std::string name;
  // Facts of the step; vectors run over its nodes.
  std::vector<std::string> nodes;
  std::vector<std::uint32_t> tasks;  // ranks on each node
  std::uint32_t node_id = 0;         // which of them this node is
  std::vector<std::uint32_t> ranks;  // global ranks on this node, ascending
  std::uint32_t total_tasks = 1, tasks_per_node = 0, cpus_per_task = 1;
  bool cpus_per_task_given = false;
  std::string distribution;         // "Block" or "Cyclic"
  std::vector<std::uint16_t> gpus;  // what the step uses of the node's devices
  std::uint32_t gpus_per_task = 0;  // > 0: each rank sees its own
  // What to run.
  std::vector<std::string> argv;         // for a batch step: the script's arguments
  std::string script;                    // text of a batch script; empty otherwise
  std::vector<std::string> environment;  // K=V as the submitter had it, after --export
  std::string work_dir;
  StreamTarget in, out, err;  // err.kind == kNull with an empty path: same as out
  bool append = false, unbuffered = false;
  bool pty = false;
  std::uint16_t rows = 24, columns = 80;
  std::uint32_t umask = 0022;
  std::vector<Rlimit> limits;
  std::string mpi;            // "none", "pmi2", "pmix"
  std::string launcher_host;  // of the client
  std::uint32_t launcher_pid = 0;
};
void describe(auto& a, StepOrder& x) {
  a("step", x.step);
  a("name", x.name);
  a("nodes", x.nodes);
  a("tasks", x.tasks);
  a("node_id", x.node_id);
  a("ranks", x.ranks);
  a("total_tasks", x.total_tasks);
  a("tasks_per_node", x.tasks_per_node);
  a("cpus_per_task", x.cpus_per_task);
  a("cpus_per_task_given", x.cpus_per_task_given);
  a("distribution", x.distribution);
  a("gpus", x.gpus);
  a("gpus_per_task", x.gpus_per_task);
  a("argv", x.argv);
  a("script", x.script);
  a("environment", x.environment);
  a("work_dir", x.work_dir);
  a("in", x.in);
  a("out", x.out);
  a("err", x.err);
  a("append", x.append);
  a("unbuffered", x.unbuffered);
  a("pty", x.pty);
  a("rows", x.rows);
  a("columns", x.columns);
  a("umask", x.umask);
  a("limits", x.limits);
  a("mpi", x.mpi);
  a("launcher_host", x.launcher_host);
  a("launcher_pid", x.launcher_pid);
}

}  // namespace tutti
