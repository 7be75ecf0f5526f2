// Placement of one role against brute force: the planner starts a gang exactly when some
// assignment exists. The check below is written from man sbatch, not from the placer.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/property/random_cluster.h"

namespace tutti::property {
namespace {

struct FreeNode {
  std::string name;
  std::uint32_t index = 0, threads = 1, free_cores = 0, cores = 0, free_a = 0, free_b = 0, gpus = 0;
  std::uint64_t free_memory = 0, memory = 0;
  bool usable = true, idle = true, x = false, y = false;
};

std::vector<FreeNode> free_nodes(const RandomCluster& cluster, const std::string& partition) {
  std::vector<FreeNode> out;
  const ClusterSpec& spec = *cluster.state.spec;
  const auto& members =
      std::find_if(spec.partitions.begin(), spec.partitions.end(), [&](const PartitionSpec& p) {
        return p.name == partition;
      })->nodes;
  for (std::uint32_t i = 0; i < spec.nodes.size(); ++i) {
    const NodeSpec& node = spec.nodes[i];
    FreeNode free;
    free.name = node.name;
    free.index = i;
    free.threads = node.threads_per_core;
    free.cores = free.free_cores = node.cpus / node.threads_per_core;
    free.memory = free.free_memory = node.memory_mib;
    for (const DeviceSpec& device : node.devices)
      ++(device.type == "a" ? free.free_a : free.free_b);
    free.gpus = free.free_a + free.free_b;
    free.usable = !cluster.state.node(i)->drained &&
                  std::find(members.begin(), members.end(), node.name) != members.end();
    auto has = [&](const char* f) {
      return std::find(node.features.begin(), node.features.end(), f) != node.features.end();
    };
    free.x = has("x");
    free.y = has("y");
    for (std::uint32_t id : cluster.agenda.active) {
      for (const Slot& slot : cluster.state.gangs.find(id)->slots) {
        if (slot.node != i) continue;
        free.idle = false;
        if (slot.exclusive) free.usable = false;
        free.free_cores -= static_cast<std::uint32_t>(slot.cpu_ids.size()) / free.threads;
        free.free_memory -= slot.memory_mib;
        for (std::uint16_t gpu : slot.gpus)
          --(node.devices[gpu].type == "a" ? free.free_a : free.free_b);
      }
    }
    out.push_back(free);
  }
  return out;
}

bool holds(const RoleAsk& ask, const FreeNode& node, std::uint32_t tasks, std::uint32_t of_total) {
  if (!node.usable) return false;
  if (std::find(ask.nodes_out.begin(), ask.nodes_out.end(), node.name) != ask.nodes_out.end())
    return false;
  if (ask.tasks_per_node > 0 && tasks > ask.tasks_per_node) return false;
  if (ask.exclusive && !node.idle) return false;
  std::uint32_t gpus = std::max({ask.gpus_per_node, tasks * ask.gpus_per_task, of_total});
  std::uint32_t there = ask.gpu_type.empty()  ? node.free_a + node.free_b
                        : ask.gpu_type == "a" ? node.free_a
                                              : node.free_b;
  if (gpus > there) return false;
  std::uint32_t cpus =
      std::max({tasks * ask.cpus_per_task, gpus * ask.cpus_per_gpu, ask.cpus_per_node});
  std::uint32_t cores = (cpus + node.threads - 1) / node.threads;
  if (cores > node.free_cores) return false;
  std::uint64_t memory =
      std::max({ask.memory_mib_per_node, ask.memory_mib_per_cpu * cores * node.threads,
                ask.memory_mib_per_gpu * gpus});
  if (ask.memory_whole_node) memory = node.memory;
  return memory <= node.free_memory;
}

// Every way to give each node some tasks and GPUs of the total.
struct BruteForce {
  const RoleAsk& ask;
  const std::vector<FreeNode>& nodes;
  std::uint32_t tasks, follow;  // follow: tasks on each node, 0 = tasks are a total
  std::vector<std::uint32_t> used = {};

  bool acceptable() const {
    if (used.size() < ask.nodes_min || used.size() > ask.nodes_max) return false;
    for (const std::string& name : ask.nodes_in)
      if (std::none_of(used.begin(), used.end(), [&](auto i) { return nodes[i].name == name; }))
        return false;
    if (ask.contiguous && nodes[used.back()].index - nodes[used.front()].index + 1 != used.size())
      return false;
    auto all = [&](auto test) {
      return std::all_of(used.begin(), used.end(), [&](auto i) { return test(nodes[i]); });
    };
    auto x = [](const FreeNode& n) { return n.x; };
    auto y = [](const FreeNode& n) { return n.y; };
    if (ask.features == "x") return all(x);
    if (ask.features == "x&y") return all([](const FreeNode& n) { return n.x && n.y; });
    if (ask.features == "x|y") return all([](const FreeNode& n) { return n.x || n.y; });
    if (ask.features == "[x|y]") return all(x) || all(y);
    return true;
  }

  bool search(std::uint32_t at, std::uint32_t tasks_left, std::uint32_t gpus_left) {
    if (at == nodes.size())
      return (follow > 0 || tasks_left == 0) && gpus_left == 0 && !used.empty() && acceptable();
    if (search(at + 1, tasks_left, gpus_left)) return true;
    std::uint32_t most = follow > 0 ? follow : tasks_left;
    for (std::uint32_t t = follow > 0 ? follow : 1; t <= most; ++t) {
      for (std::uint32_t g = ask.gpus_total > 0 ? 1 : 0; g <= gpus_left; ++g) {
        if (!holds(ask, nodes[at], t, g)) continue;
        used.push_back(at);
        bool found = search(at + 1, follow > 0 ? 0 : tasks_left - t, gpus_left - g);
        used.pop_back();
        if (found) return true;
        if (ask.gpus_total == 0) break;
      }
    }
    return false;
  }
};

bool exists(const RandomCluster& cluster, const Workload& workload) {
  RoleAsk ask = workload.roles[0];
  for (const char* feature : {"x", "y"}) {
    if (ask.features.find(feature) == std::string::npos) continue;
    const auto& all = cluster.state.spec->nodes;
    if (std::none_of(all.begin(), all.end(), [&](const NodeSpec& node) {
          return std::find(node.features.begin(), node.features.end(), feature) !=
                 node.features.end();
        }))
      return false;  // a name nobody has is refused
  }
  bool follows =
      ask.tasks == 1 && (ask.nodes_min > 1 || ask.tasks_per_node > 0 || ask.gpus_total > 0);
  std::uint32_t each = std::max(ask.tasks_per_node, 1u);
  if (follows && ask.nodes_max == kNoLimit && ask.gpus_total == 0) ask.nodes_max = ask.nodes_min;
  std::vector<FreeNode> nodes =
      free_nodes(cluster, workload.partitions.empty() ? "all" : workload.partitions[0]);
  BruteForce brute{ask, nodes, std::max(ask.tasks, ask.nodes_min), follows ? each : 0};
  return brute.search(0, brute.tasks, ask.gpus_total);
}

TEST(PlacementProperty, FindsAnAssignmentExactlyWhenThereIsOne) {
  std::uint32_t placed = 0, impossible = 0;
  for (std::uint32_t seed : seeds(6000)) {
    RandomCluster cluster(seed);
    cluster.make_nodes(5);
    for (std::uint32_t i = cluster.below(4); i > 0; --i) {
      Workload workload;
      workload.roles = {cluster.make_ask()};
      WorkloadId id = cluster.submit(workload);
      cluster.pass();
      if (cluster.agenda.pending.contains(id.value()))
        cluster.apply(ElementsCancelled{id, "", Outcome::kCancelled, std::nullopt});
    }
    Workload workload;
    workload.roles = {cluster.make_ask()};
    if (cluster.chance(30)) workload.partitions = {"some"};
    bool possible = exists(cluster, workload);
    cluster.submit(workload);
    scheduler::Plan plan = scheduler::plan(cluster.input());
    ASSERT_EQ(!plan.starts.empty(), possible) << "seed " << seed << "\n"
                                              << to_json(workload.roles[0]) << "\n"
                                              << render(plan);
    (possible ? placed : impossible) += 1;
  }
  EXPECT_GE(placed, share(500));
  EXPECT_GE(impossible, share(1000));
}

// What is refused at submit never starts on the empty cluster, and the other way round.
TEST(PlacementProperty, CanEverRunIsWhatStartsOnTheEmptyCluster) {
  for (std::uint32_t seed : seeds(3000)) {
    RandomCluster cluster(seed);
    cluster.make_nodes(5);
    for (NodeIndex i = 0; i < cluster.state.spec->nodes.size(); ++i) {
      NodeChanged event{cluster.state.spec->nodes[i].name, *cluster.state.node(i)};
      event.state.drained = false;
      cluster.apply(event);
    }
    Workload workload;
    workload.roles = {cluster.make_ask()};
    if (cluster.chance(20)) workload.roles.edit().push_back(cluster.make_ask());
    Status ever = scheduler::check_can_ever_run(*cluster.state.spec, workload);
    cluster.submit(workload);
    scheduler::Plan plan = scheduler::plan(cluster.input());
    ASSERT_EQ(!plan.starts.empty(), ever.has_value()) << "seed " << seed << "\n" << render(plan);
  }
}

}  // namespace
}  // namespace tutti::property
