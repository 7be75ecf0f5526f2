#include "simulator/world.h"

#include <gtest/gtest.h>

namespace tutti::simulator {
namespace {

ClusterSpec cluster(std::uint32_t nodes, std::uint32_t gpus) {
  ClusterSpec spec;
  PartitionSpec all;
  all.name = "batch";
  all.is_default = true;
  for (std::uint32_t i = 1; i <= nodes; ++i) {
    NodeSpec node;
    node.name = "n" + std::to_string(i);
    node.cpus = node.cores_per_socket = 64;
    node.memory_mib = 1'000'000;
    node.devices.resize(gpus);
    all.nodes.push_back(node.name);
    spec.nodes.push_back(std::move(node));
  }
  spec.partitions.push_back(std::move(all));
  return spec;
}

Workload job(std::uint32_t nodes, std::uint32_t gpus_per_node, std::int64_t limit = 0) {
  RoleAsk ask;
  ask.nodes_min = ask.nodes_max = ask.tasks = nodes;
  ask.gpus_per_node = gpus_per_node;
  Workload workload;
  workload.roles = std::vector<RoleAsk>{ask};
  if (limit > 0) workload.time_limit = Duration::seconds(limit);
  return workload;
}

Instant at(std::int64_t seconds) { return Instant::from_ms(1 + seconds * 1000); }
std::int64_t seconds(Instant time) { return (time.ms() - 1) / 1000; }

// "2 allocated 0, 2 over 100": the times at which what happened.
struct Diary {
  explicit Diary(World& world) {
    world.watch([this, &world](const WorldChange& change) {
      const char* word = change.kind == WorldChange::Kind::kStarted    ? "started"
                         : change.kind == WorldChange::Kind::kReleased ? "released"
                                                                       : nullptr;
      if (!word) return;
      text += std::to_string(change.workload.value()) + " " + word + " " +
              std::to_string(seconds(world.now())) + "; ";
    });
  }
  std::string text;
};

void run_dry(World& world) {
  for (int i = 0; i < 10'000 && world.next_due() < Instant::never(); ++i) {
    auto status = world.advance(world.next_due());
    ASSERT_TRUE(status) << status.error().message;
  }
}

TEST(World, GangsStartWholeAndInOrder) {
  WorldOptions options;
  options.lint = true;
  auto world = World::create(cluster(2, 8), at(0), options);
  ASSERT_TRUE(world) << world.error().message;
  Diary diary(*world);
  ASSERT_TRUE(world->submit(job(1, 8, 200), Duration::seconds(100)));
  ASSERT_TRUE(world->advance(world->now()));
  ASSERT_TRUE(world->submit(job(2, 8, 200), Duration::seconds(50)));
  ASSERT_TRUE(world->submit(job(1, 8, 300), Duration::seconds(10)));  // would delay job 2
  ASSERT_TRUE(world->submit(job(1, 8, 60), Duration::seconds(60)));   // would not
  run_dry(*world);
  EXPECT_EQ(diary.text,
            "1 started 0; 4 started 0; 4 released 60; 1 released 100; 2 started 100; "
            "2 released 150; 3 started 150; 3 released 160; ");
  EXPECT_EQ(world->state().workloads.size(), 0u);
}

TEST(World, StartingAndCleaningTakeTheirTime) {
  WorldOptions options;
  options.start_delay = Duration::seconds(5);
  options.release_delay = Duration::seconds(3);
  auto world = World::create(cluster(1, 8), at(0), options);
  ASSERT_TRUE(world);
  Diary diary(*world);
  ASSERT_TRUE(world->submit(job(1, 8, 20), Duration::seconds(100)));
  ASSERT_TRUE(world->submit(job(1, 8), Duration::seconds(1)));
  run_dry(*world);
  // The limit counts from the start of the ranks.
  EXPECT_EQ(diary.text, "1 started 5; 1 released 28; 2 started 33; 2 released 37; ");
}

TEST(World, AFailedNodesGangGoesOnElsewhere) {
  WorldOptions options;
  options.lint = true;
  auto world = World::create(cluster(2, 8), at(0), options);
  ASSERT_TRUE(world);
  Diary diary(*world);
  ASSERT_TRUE(world->submit(job(1, 8), Duration::seconds(100)));
  ASSERT_TRUE(world->advance(world->next_due()));
  const NodeIndex node = world->state().gangs.find(1)->slots[0].node;
  ASSERT_TRUE(world->advance(world->now()));
  ASSERT_TRUE(world->fail_node(node, "test"));
  run_dry(*world);
  EXPECT_EQ(diary.text, "1 started 0; 1 released 0; 1 started 0; 1 released 100; ");
}

TEST(World, ANodeThatFailedAGangIsTriedAgainAfterAWhile) {
  WorldOptions options;
  options.lint = true;
  auto world = World::create(cluster(1, 8), at(0), options);
  ASSERT_TRUE(world);
  Diary diary(*world);
  ASSERT_TRUE(world->submit(job(1, 8), Duration::seconds(100)));
  ASSERT_TRUE(world->advance(world->next_due()));
  ASSERT_TRUE(world->fail_node(0, "test"));
  ASSERT_TRUE(world->repair_node(0));
  run_dry(*world);
  EXPECT_EQ(diary.text, "1 started 0; 1 released 0; 1 started 30; 1 released 130; ");
}

TEST(World, FirmPromisesAreState) {
  auto world = World::create(cluster(1, 8), at(0), {});
  ASSERT_TRUE(world);
  ASSERT_TRUE(world->submit(job(1, 8, 3600), Duration::seconds(3600)));
  ASSERT_TRUE(world->advance(world->next_due()));
  ASSERT_TRUE(world->submit(job(1, 8, 3600), Duration::seconds(10)));
  ASSERT_TRUE(world->advance(world->now()));
  ASSERT_EQ(world->state().promises->records.size(), 1u);
  EXPECT_EQ(seconds(world->state().promises->records[0].at), 3630);  // with the grace of its ending
}

TEST(World, RefusesWhatCanNeverRunAndTimeThatGoesBack) {
  auto world = World::create(cluster(1, 8), at(0), {});
  ASSERT_TRUE(world);
  auto id = world->submit(job(2, 8), Duration::seconds(1));
  ASSERT_FALSE(id);
  EXPECT_FALSE(id.error().reason.empty());
  ASSERT_TRUE(world->advance(world->next_due()));
  EXPECT_FALSE(world->advance(Instant::from_ms(0)));
  EXPECT_FALSE(World::create(ClusterSpec{}, at(0), {}));
}

}  // namespace
}  // namespace tutti::simulator
