// The throttle of an array counts elements that start once more before those that never ran.
#include <gtest/gtest.h>

#include "scheduler/plan.h"
#include "state/apply.h"

namespace tutti::scheduler {
namespace {

TEST(Throttle, AnElementThatWasRequeuedTakesTheArraysPlace) {
  ClusterState state;
  Agenda agenda;
  Instant now = Instant::from_ms(1000);
  auto apply = [&](EventBody body) {
    auto status = state::apply(state, agenda, {now, std::move(body)});
    ASSERT_TRUE(status) << status.error().message;
  };
  ClusterSpec spec;
  NodeSpec node;
  node.name = "n1";
  node.kind = NodeKind::kPlanned;
  node.cpus = 8;
  node.memory_mib = 1000;
  spec.nodes.push_back(node);
  spec.partitions.push_back({.name = "batch", .nodes = {"n1"}, .is_default = true});
  apply(ClusterConfigured{spec});
  Workload workload;
  workload.id = WorkloadId(1);
  workload.array = "0-4";
  workload.array_throttle = 1;
  workload.submitted = now;
  workload.partitions = {"batch"};
  apply(WorkloadSubmitted{workload});

  Plan first = plan({state, agenda, now});
  ASSERT_EQ(first.starts.size(), 1u);
  GangAllocated allocated{.gang = GangId(2), .workload = WorkloadId(1), .array_index = 0u,
                          .epoch = Epoch(1), .partition = "batch", .slots = first.starts[0].slots,
                          .limit_end = {}};
  apply(allocated);
  apply(GangStarted{.gang = GangId(2), .limit_end = {}});
  GangEnding ending{.gang = GangId(2), .outcome = Outcome::kRequeued};
  ending.requeue = true;
  ending.eligible = now;
  apply(ending);
  apply(SlotReleased{.gang = GangId(2), .slot = 0});

  Plan again = plan({state, agenda, now});
  ASSERT_EQ(again.starts.size(), 1u);
  EXPECT_EQ(again.starts[0].element.gang, GangId(2));
}

}  // namespace
}  // namespace tutti::scheduler
