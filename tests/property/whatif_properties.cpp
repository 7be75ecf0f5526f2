// What is suggested to somebody who waits is true: made for real, it starts
// when it was said to.
#include <gtest/gtest.h>

#include "scheduler/whatif.h"
#include "tests/property/random_cluster.h"

namespace tutti::property {
namespace {

TEST(WhatIfProperty, SuggestedChangesAreTrue) {
  std::uint32_t checked = 0, at_once = 0;
  for (std::uint32_t seed = 1; seed <= 250; ++seed) {
    RandomCluster cluster(seed);
    cluster.make_nodes(5);
    if (cluster.chance(20))
      cluster.reserve();
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 4; ++i) {
        Workload workload = cluster.make_workload();
        if (scheduler::check_can_ever_run(*cluster.state.spec, workload))
          cluster.submit(workload);
      }
      cluster.pass();
      cluster.now = cluster.now + Duration::seconds(10);
    }
    scheduler::Supposition supposed{cluster.state, cluster.agenda, cluster.now};
    auto all = scheduler::expected_starts(supposed);
    std::uint32_t looked = 0;
    for (const auto &[key, expected] : all) {
      if (!expected.wait || ++looked > 3)
        continue;
      for (const auto &each : scheduler::improvements(supposed, key)) {
        ASSERT_TRUE(each.expected.start.is_set());
        if (expected.start.is_set()) {
          ASSERT_LT(each.expected.start, expected.start)
              << "seed " << seed << " " << each.change;
        }
        // As a plan of the changed state has it, by itself.
        RandomCluster changed = cluster;
        WorkloadEntry entry = *changed.state.workloads.find(key.first.value());
        each.edit(entry.workload);
        WorkloadChanged event;
        event.workload = key.first;
        event.roles = *entry.workload.roles;
        event.partitions = *entry.workload.partitions;
        if (entry.workload.time_limit)
          event.time_limit = *entry.workload.time_limit;
        if (entry.workload.extras->reservation !=
            cluster.state.workloads.find(key.first.value())
                ->workload.extras->reservation)
          continue; // no event says that
        changed.apply(event);
        scheduler::PassInput input = changed.input();
        input.reserve_depth = supposed.depth;
        scheduler::Plan plan = scheduler::plan(input);
        Instant start;
        for (const auto &promise : plan.promises)
          if (promise.element.workload == key.first &&
              promise.element.gang == key.second)
            start = promise.at;
        for (const auto &started : plan.starts)
          if (started.element.workload == key.first &&
              started.element.gang == key.second)
            start = changed.now;
        ASSERT_EQ(start, each.expected.start)
            << "seed " << seed << ": job " << key.first.value() << " "
            << each.change << "\n"
            << render(plan);
        ++checked;
        at_once += start == changed.now;
      }
    }
  }
  EXPECT_GT(checked, 50u);
  EXPECT_GT(at_once, 20u);
}

} // namespace
} // namespace tutti::property
