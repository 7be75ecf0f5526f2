// What each event means, and that an event which does not fit changes nothing.
#include "tests/unit/state/support.h"

namespace tutti::state {
namespace {

TEST(Fold, ASubmittedJobWaits) {
  World world;
  WorkloadId id = world.submit();
  EXPECT_TRUE(world.entry(id).simple_unstarted);
  EXPECT_TRUE(world.agenda.pending.contains(id.value()));
  EXPECT_EQ(world.state.next_id, id.value() + 1);
  Workload again;
  again.id = id;
  world.refused(WorkloadSubmitted{again});
  again.id = WorkloadId(0);
  world.refused(WorkloadSubmitted{again});
}

TEST(Fold, AllocationHoldsSlotsUntilTheLastIsReleased) {
  World world;
  WorkloadId id = world.submit();
  GangId gang(id.value());
  world.refused(GangStarted{gang, {}});
  world.refused(world.allocation(id, gang, {}));
  world.refused(world.allocation(id, gang, {7}));
  world.refused(world.allocation(WorkloadId(99), gang, {0}));
  world.must(world.allocation(id, gang, {0, 1}));
  EXPECT_EQ(world.gang(gang).state, GangState::kPreparing);
  EXPECT_FALSE(world.entry(id).simple_unstarted);
  EXPECT_TRUE(world.agenda.active.contains(gang.value()));
  EXPECT_FALSE(world.agenda.pending.contains(id.value()));
  world.refused(world.allocation(id, gang, {0}));
  world.refused(SlotReleased{gang, 0});
  world.refused(StepCreated{gang, world.step(0)});
  world.must(GangStarted{gang, world.now + Duration::minutes(3)});
  world.refused(GangStarted{gang, {}});
  world.refused(RollCallFailed{gang, "a", "late", {}, true, false});
  EXPECT_EQ(world.gang(gang).state, GangState::kRunning);
  ASSERT_EQ(world.gang(gang).steps.size(), 1u);
  EXPECT_EQ(world.gang(gang).steps[0].id, kBatchStep);
  world.refused(SlotReleased{gang, 0});
  world.must(ending(gang, Outcome::kCompleted));
  world.refused(ending(gang, Outcome::kFailed));
  world.refused(StepCreated{gang, world.step(0)});
  world.must(SlotReleased{gang, 1});
  EXPECT_EQ(world.gang(gang).state, GangState::kEnding);
  world.refused(SlotReleased{gang, 1});
  world.refused(SlotReleased{gang, 2});
  world.must(SlotReleased{gang, 0});
  EXPECT_EQ(world.gang(gang).state, GangState::kDone);
  EXPECT_EQ(world.gang(gang).outcome, Outcome::kCompleted);
  EXPECT_FALSE(world.agenda.active.contains(gang.value()));
  EXPECT_TRUE(world.agenda.finished.contains(id.value()));
  EXPECT_EQ(world.entry(id).ended, world.now);
  world.refused(ending(gang, Outcome::kCancelled));
}

TEST(Fold, AFailedRollCallGivesEverythingBackAndRemembersTheNode) {
  World world;
  WorkloadId id = world.submit();
  GangId gang(id.value());
  world.must(world.allocation(id, gang, {0, 1}));
  Epoch first = world.gang(gang).epoch;
  world.must(RollCallFailed{gang, "b", "no space", world.now + Duration::seconds(5), true, false});
  EXPECT_EQ(world.gang(gang).state, GangState::kPending);
  EXPECT_TRUE(world.gang(gang).slots.empty());
  EXPECT_EQ(world.gang(gang).launch_failures, 1u);
  EXPECT_EQ(world.gang(gang).avoid_nodes, std::vector<std::string>{"b"});
  EXPECT_EQ(world.gang(gang).last_failure, "b: no space");
  EXPECT_EQ(world.gang(gang).restarts, 0u);
  EXPECT_TRUE(world.agenda.pending.contains(id.value()));
  EXPECT_FALSE(world.agenda.active.contains(gang.value()));
  world.must(world.allocation(id, gang, {0, 2}));
  EXPECT_GT(world.gang(gang).epoch, first);
  world.must(RollCallFailed{gang, "b", "again", {}, true, true});
  EXPECT_EQ(world.gang(gang).avoid_nodes, std::vector<std::string>{"b"});
  EXPECT_EQ(world.gang(gang).hold, Hold::kAdmin);
  world.must(AvoidanceExpired{gang});
  EXPECT_TRUE(world.gang(gang).avoid_nodes.empty());
  WorkloadChanged release;
  release.workload = id;
  release.gang = gang;
  release.hold = Hold::kNone;
  world.must(release);
  EXPECT_EQ(world.gang(gang).launch_failures, 0u);
  release.workload = world.submit();
  world.refused(release);  // not a gang of that workload
}

TEST(Fold, RequeueStartsANewLifeOnceClean) {
  World world;
  GangId gang = world.start({0, 1});
  GangEnding event = ending(gang, Outcome::kNodeFail);
  event.requeue = true;
  event.avoid_node = "a";
  event.reason = "a: lost";
  world.must(event);
  world.must(SlotReleased{gang, 0});
  EXPECT_EQ(world.gang(gang).state, GangState::kEnding);
  world.must(SlotReleased{gang, 1});
  EXPECT_EQ(world.gang(gang).state, GangState::kPending);
  EXPECT_EQ(world.gang(gang).outcome, Outcome::kNone);
  EXPECT_EQ(world.gang(gang).restarts, 0u);
  EXPECT_TRUE(world.gang(gang).steps.empty());
  EXPECT_EQ(world.gang(gang).last_failure, "a: lost");
  EXPECT_TRUE(world.agenda.pending.contains(gang.value()));
  event = ending(gang, Outcome::kCancelled);
  world.must(event);  // cancelled while it waits: over at once
  EXPECT_EQ(world.gang(gang).state, GangState::kDone);
  EXPECT_TRUE(world.agenda.finished.contains(gang.value()));
}

TEST(Fold, StepsBeginAndEndOnce) {
  World world;
  GangId gang = world.start({0, 1});
  world.must(StepCreated{gang, world.step(0, {0, 1})});
  world.refused(StepCreated{gang, world.step(0)});
  world.refused(StepCreated{gang, world.step(1, {2})});
  world.must(StepStarted{gang, 0});
  world.refused(StepStarted{gang, 0});
  world.refused(StepStarted{gang, 3});
  world.must(StepEnded{gang, 0, {3, 0}, Outcome::kFailed, {10, 20}, "why"});
  world.refused(StepEnded{gang, 0, {0, 0}, Outcome::kCompleted, {}, {}});
  EXPECT_EQ(world.gang(gang).derived_exit, (ExitStatus{3, 0}));
  EXPECT_EQ(world.gang(gang).exit, ExitStatus{});
  world.must(StepCreated{gang, world.step(1)});
  world.must(StepEnded{gang, 1, {1, 0}, Outcome::kLaunchFailed, {}, {}});
  EXPECT_EQ(world.gang(gang).derived_exit, (ExitStatus{3, 0}));
  world.must(StepEnded{gang, kBatchStep, {7, 0}, Outcome::kFailed, {}, {}});
  EXPECT_EQ(world.gang(gang).exit, (ExitStatus{7, 0}));
}

TEST(Fold, TheWarningIsGivenOnce) {
  World world;
  GangId gang = world.start();
  world.must(GangWarned{gang});
  world.refused(GangWarned{gang});
  world.refused(GangWarned{GangId(99)});
}

TEST(Fold, ElementsOfAnArrayStartAndAreCancelledOneByOne) {
  World world;
  WorkloadId id = world.submit("0-3");
  world.refused(world.allocation(id, GangId(50), {0}, 9));
  WorkloadId other = world.submit();
  world.refused(world.allocation(id, GangId(other.value()), {0}, 0));
  world.must(world.allocation(id, GangId(world.state.next_id), {0}, 0));
  EXPECT_EQ(world.entry(id).unstarted.to_string(), "1-3");
  world.must(ElementsCancelled{id, "1-2", Outcome::kCancelled, 5});
  EXPECT_EQ(world.entry(id).unstarted.to_string(), "3");
  EXPECT_TRUE(world.agenda.pending.contains(id.value()));
  world.must(ElementsCancelled{id, "", Outcome::kCancelled, 5});
  EXPECT_FALSE(world.agenda.pending.contains(id.value()));
  EXPECT_FALSE(world.agenda.finished.contains(id.value()));  // element 0 is still there
  world.refused(ElementsCancelled{id, "", Outcome::kCancelled, 5});
  world.refused(WorkloadForgotten{id});
  GangId gang = world.entry(id).gangs[0];
  world.must(ending(gang, Outcome::kCompleted));
  world.must(SlotReleased{gang, 0});
  world.must(WorkloadForgotten{id});
  EXPECT_EQ(world.state.gangs.find(gang.value()), nullptr);
  world.refused(WorkloadForgotten{id});
}

TEST(Fold, ChangesTouchOnlyWhatTheyName) {
  World world;
  GangId gang = world.start();
  WorkloadId id(gang.value());
  WorkloadChanged change;
  change.workload = id;
  change.nice = 5;
  change.comment = "c";
  world.must(change);
  EXPECT_EQ(world.entry(id).workload.nice, 5);
  EXPECT_EQ(world.entry(id).workload.name, "job");
  change = {};
  change.workload = id;
  change.gang = gang;
  change.time_limit = Duration::minutes(30);
  world.must(change);
  EXPECT_EQ(world.gang(gang).limit_end, world.gang(gang).started + Duration::minutes(30));
  change.time_limit = Duration::infinite();
  world.must(change);
  EXPECT_FALSE(world.gang(gang).limit_end.is_set());
  change.workload = WorkloadId(99);
  change.gang.reset();
  world.refused(change);
}

TEST(Fold, NodesAndPartitionsChangeByName) {
  World world;
  NodeState up;
  up.status = NodeStatus::kUp;
  world.must(NodeChanged{"b", up});
  EXPECT_EQ(world.state.node(1)->status, NodeStatus::kUp);
  world.refused(NodeChanged{"x", up});
  world.must(PartitionChanged{"batch", PartitionState::kDrain});
  EXPECT_EQ(world.state.spec->partitions[0].state, PartitionState::kDrain);
  world.refused(PartitionChanged{"x", PartitionState::kUp});
}

TEST(Fold, SlotsAndStatesFollowTheirNodesNames) {
  World world;
  NodeState up;
  up.status = NodeStatus::kUp;
  world.must(NodeChanged{"b", up});
  GangId old = world.start({2, 0});
  world.must(StepCreated{old, world.step(0, {0, 1})});
  world.must(ending(old, Outcome::kCompleted));
  world.must(SlotReleased{old, 0});
  world.must(SlotReleased{old, 1});
  GangId gang = world.start({1});
  world.refused(ClusterConfigured{World::spec_of({"a", "c"})});  // b is in use
  world.must(ClusterConfigured{World::spec_of({"d", "b", "a"})});
  EXPECT_EQ(world.gang(gang).slots[0].node, 1u);
  world.must(ClusterConfigured{World::spec_of({"b", "d", "a"})});
  EXPECT_EQ(world.gang(gang).slots[0].node, 0u);
  EXPECT_EQ(world.state.node(0)->status, NodeStatus::kUp);
  EXPECT_EQ(world.state.node(1)->status, NodeStatus::kNeverSeen);
  // Of the finished gang the slot on "c" is forgotten, with what its steps did there.
  ASSERT_EQ(world.gang(old).slots.size(), 1u);
  EXPECT_EQ(world.gang(old).slots[0].node, 2u);
  ASSERT_EQ(world.gang(old).steps[1].slots.size(), 1u);
  EXPECT_EQ(world.gang(old).steps[1].slots[0].slot, 0u);
}

}  // namespace
}  // namespace tutti::state
