#include "scheduler/plan.h"

#include <gtest/gtest.h>

#include "model/reasons.h"
#include "state/apply.h"

namespace tutti::scheduler {
namespace {

// A cluster of nodes with 2-threaded cores, as in the examples' slurm.conf.
struct Cluster {
  explicit Cluster(std::uint32_t nodes) {
    ClusterSpec spec;
    spec.kill_wait = Duration();
    PartitionSpec partition{.name = "batch", .is_default = true};
    for (std::uint32_t i = 1; i <= nodes; ++i) {
      NodeSpec node;
      node.name = "n" + std::to_string(i);
      node.kind = NodeKind::kPlanned;
      node.cpus = 128;
      node.threads_per_core = 2;
      node.memory_mib = 1'000'000;
      node.devices.assign(8, DeviceSpec{"gpu", "rtxpro6000", ""});
      partition.nodes.push_back(node.name);
      spec.nodes.push_back(node);
    }
    spec.partitions.push_back(partition);
    apply(ClusterConfigured{spec});
  }
  void apply(EventBody body) {
    auto status = state::apply(state, agenda, {now, std::move(body)});
    ASSERT_TRUE(status) << status.error().message;
  }
  WorkloadId submit(RoleAsk ask, std::optional<Duration> limit = std::nullopt) {
    Workload workload;
    workload.id = WorkloadId(state.next_id);
    workload.roles = {std::move(ask)};
    workload.time_limit = limit;
    workload.submitted = now;
    apply(WorkloadSubmitted{workload});
    return workload.id;
  }
  PassInput input() const { return {state, agenda, now}; }

  ClusterState state;
  Agenda agenda;
  Instant now = Instant::from_ms(1000);
};

TEST(Plan, TakesWholeCoresAndNeighbouringGpus) {
  Cluster cluster(2);
  cluster.submit({.nodes_min = 2,
                  .nodes_max = 2,
                  .tasks = 8,
                  .tasks_per_node = 4,
                  .cpus_per_task = 2,
                  .gpu_type = "rtxpro6000",
                  .gpus_per_node = 4,
                  .memory_mib_per_node = 65536});
  cluster.submit({});
  Plan result = plan(cluster.input());
  EXPECT_EQ(lint(cluster.input(), result), std::vector<std::string>());
  ASSERT_EQ(result.starts.size(), 2u);
  const Start& train = result.starts[0];
  ASSERT_EQ(train.slots.size(), 2u);
  // As `scontrol show job -d` of Slurm has it: CPU_IDs=0-3,64-67 and GPUs 0-3.
  EXPECT_EQ(train.slots[0].cpu_ids, (std::vector<std::uint16_t>{0, 1, 2, 3, 64, 65, 66, 67}));
  EXPECT_EQ(train.slots[0].gpus, (std::vector<std::uint16_t>{0, 1, 2, 3}));
  EXPECT_EQ(train.slots[1].tasks, 4u);
  EXPECT_EQ(train.slots[1].memory_mib, 65536u);
  // One task of one CPU gets both threads of a core.
  EXPECT_EQ(result.starts[1].slots[0].cpu_ids, (std::vector<std::uint16_t>{4, 68}));
}

TEST(Plan, FillsNodesWhenOnlyTasksAreGiven) {
  Cluster cluster(4);
  cluster.submit({.tasks = 200});
  Plan result = plan(cluster.input());
  ASSERT_EQ(result.starts.size(), 1u);
  ASSERT_EQ(result.starts[0].slots.size(), 2u);
  EXPECT_EQ(result.starts[0].slots[0].tasks, 128u);
  EXPECT_EQ(result.starts[0].slots[1].tasks, 72u);
}

TEST(Plan, SpreadsEvenlyOverAskedNodesAndTakesAsManyAsARangeAllows) {
  Cluster cluster(4);
  cluster.submit({.nodes_min = 2, .nodes_max = 2, .tasks = 5});
  cluster.submit({.nodes_min = 2, .nodes_max = 3, .tasks_per_node = 8, .gpus_per_node = 8});
  Plan result = plan(cluster.input());
  EXPECT_EQ(lint(cluster.input(), result), std::vector<std::string>());
  ASSERT_EQ(result.starts.size(), 2u);
  // The larger job comes first.
  ASSERT_EQ(result.starts[0].slots.size(), 3u);
  for (const Slot& slot : result.starts[0].slots) EXPECT_EQ(slot.tasks, 8u);
  ASSERT_EQ(result.starts[1].slots.size(), 2u);
  EXPECT_EQ(result.starts[1].slots[0].tasks, 3u);
  EXPECT_EQ(result.starts[1].slots[1].tasks, 2u);
}

TEST(Plan, GpuTotalIsSpreadOverAsFewNodesAsHoldIt) {
  Cluster cluster(4);
  cluster.submit({.gpus_total = 16});
  Plan result = plan(cluster.input());
  ASSERT_EQ(result.starts.size(), 1u);
  ASSERT_EQ(result.starts[0].slots.size(), 2u);
  EXPECT_EQ(result.starts[0].slots[0].gpus.size(), 8u);
  EXPECT_EQ(result.starts[0].slots[1].gpus.size(), 8u);
}

TEST(Priority, IsTheSumThatSprioShows) {
  // Jobs 32 and 31 of the golden run: 10603 and 10365.
  Cluster cluster(4);
  ClusterSpec spec = *cluster.state.spec;
  spec.partitions[0].priority_job_factor = 1;
  spec.partitions.push_back({.name = "short", .nodes = spec.partitions[0].nodes});
  spec.partitions[1].priority_job_factor = 10;
  cluster.apply(ClusterConfigured{spec});
  WorkloadId wide = cluster.submit({.nodes_min = 4, .nodes_max = 4, .gpus_per_node = 8});
  WorkloadId train = cluster.submit(
      {.nodes_min = 2, .nodes_max = 2, .tasks = 8, .tasks_per_node = 4, .cpus_per_task = 2});
  auto parts = priority_of(cluster.state, *cluster.state.workloads.find(wide.value()), cluster.now);
  EXPECT_EQ(parts.total, 10603u);
  EXPECT_EQ(parts.job_size, 504u);
  EXPECT_EQ(parts.partition, 100u);
  EXPECT_EQ(
      priority_of(cluster.state, *cluster.state.workloads.find(train.value()), cluster.now).total,
      10365u);
}

TEST(CanEverRun, FollowsSlurmAndSaysWhatIsMissing) {
  Cluster cluster(4);
  auto reason_of = [&](RoleAsk ask) {
    Workload workload;
    workload.roles = {std::move(ask)};
    Status status = check_can_ever_run(*cluster.state.spec, workload);
    return status ? std::string() : status.error().reason;
  };
  EXPECT_EQ(reason_of({.nodes_min = 4, .nodes_max = 4, .gpus_per_node = 8}), "");
  EXPECT_EQ(reason_of({.nodes_min = 99, .nodes_max = 99}), reason::kNeverFits);
  EXPECT_EQ(reason_of({.cpus_per_task = 999}), reason::kNeverFits);
  EXPECT_EQ(reason_of({.gpus_per_node = 9}), reason::kNeverFits);
  EXPECT_EQ(reason_of({.gpu_type = "h100", .gpus_per_node = 1}), reason::kNeverFits);
  EXPECT_EQ(reason_of({.memory_mib_per_node = 99'999'000}), reason::kMemoryNeverFits);
  EXPECT_EQ(reason_of({.features = "nofeature"}), reason::kInvalidFeature);
  EXPECT_EQ(reason_of({.nodes_in = {"node99"}}), reason::kInvalidNode);
  EXPECT_EQ(reason_of({.tasks = 513}), reason::kNeverFits);
  EXPECT_EQ(reason_of({.tasks = 512}), "");
  Workload elsewhere;
  elsewhere.partitions = {"nosuch"};
  EXPECT_EQ(check_can_ever_run(*cluster.state.spec, elsewhere).error().reason,
            reason::kInvalidPartition);
}

TEST(CanEverRun, LimitsOfAPartitionOnlyMakeTheJobWait) {
  Cluster cluster(4);
  ClusterSpec spec = *cluster.state.spec;
  spec.partitions[0].max_nodes = 1;
  spec.partitions[0].max_time = Duration::minutes(60);
  cluster.apply(ClusterConfigured{spec});
  RoleAsk two{.nodes_min = 2, .nodes_max = 2};
  Workload workload;
  workload.roles = {two};
  EXPECT_TRUE(check_can_ever_run(spec, workload));
  cluster.submit(two);
  cluster.submit({}, Duration::minutes(61));
  Plan result = plan(cluster.input());
  ASSERT_EQ(result.waiting.size(), 2u);
  EXPECT_EQ(result.waiting[0].wait->reason, reason::kPartitionNodeLimit);
  EXPECT_EQ(result.waiting[1].wait->reason, reason::kPartitionTimeLimit);
}

}  // namespace
}  // namespace tutti::scheduler
