// Nodes that are lost, agents that come back, controllers that restart under running work.
#include <algorithm>

#include "tests/unit/controller/support.h"

namespace tutti::controller {
namespace {

struct Running : ::testing::Test {
  Cluster cluster{3};
  std::uint32_t job = 0;
  std::vector<std::uint32_t> nodes;
  void SetUp() override {
    cluster.connect_all();
    job = start(Cluster::job(2));
    nodes = cluster.nodes_of(job);
  }
  std::uint32_t start(Submission submission) {
    std::uint32_t id = cluster.must_submit(std::move(submission));
    cluster.run(id);
    for (std::uint32_t i = 0; i < 3; ++i) cluster.agent(i).link->got.clear();
    return id;
  }
  from_agent::StepReport batch(StepState state, ExitStatus exit = {}) const {
    from_agent::StepReport step;
    step.key = cluster.key(job, kBatchStep);
    step.state = state;
    step.exit = exit;
    return step;
  }
};

TEST_F(Running, ALostNodeEndsEveryStartedRankAndTheJobStartsAgain) {
  StepKey life = cluster.key(job);
  cluster.hang_up(nodes[0]);
  EXPECT_EQ(cluster.core->state().node(nodes[0])->status, NodeStatus::kUnknown);
  cluster.pass_time(Duration::seconds(59));
  EXPECT_EQ(cluster.gang(job).state, GangState::kRunning);  // never guessed to be dead
  cluster.pass_time(Duration::seconds(1));
  EXPECT_EQ(cluster.core->state().node(nodes[0])->status, NodeStatus::kLost);
  EXPECT_EQ(cluster.gang(job).state, GangState::kEnding);
  auto end = cluster.orders<to_agent::EndGang>(nodes[1]);
  ASSERT_EQ(end.size(), 1u);
  EXPECT_EQ(end[0].epoch, life.epoch);
  auto rows = cluster.history(job);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].gang.outcome, Outcome::kNodeFail);
  cluster.clean(nodes[1], job);
  // Again, elsewhere; the user's count of restarts is untouched.
  ASSERT_EQ(cluster.gang(job).state, GangState::kPreparing);
  EXPECT_EQ(cluster.gang(job).restarts, 0u);
  for (std::uint32_t node : cluster.nodes_of(job)) EXPECT_NE(node, nodes[0]);
  cluster.run(job);
  cluster.complete(job);
  rows = cluster.history(job);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].gang.outcome, Outcome::kCompleted);
}

TEST_F(Running, ASessionEndsWithItsNode) {
  cluster.complete(job);
  std::uint32_t session = start(Cluster::session(2));
  auto client = cluster.attach(session);
  client->got.clear();
  std::vector<std::uint32_t> held = cluster.nodes_of(session);
  cluster.hang_up(held[1]);
  cluster.pass_time(Duration::seconds(60));
  cluster.clean(held[0], session);
  EXPECT_EQ(cluster.gang(session).state, GangState::kDone);
  EXPECT_EQ(cluster.gang(session).outcome, Outcome::kNodeFail);
  auto told = client->take<to_client::GangChanged>();
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.back().state, GangState::kDone);
}

TEST_F(Running, AGangThatIsEndingOnALostNodeIsReleased) {
  EXPECT_FALSE(cluster.act(Verb::kCancel, job).error);
  cluster.clean(nodes[0], job);
  cluster.hang_up(nodes[1]);
  EXPECT_EQ(cluster.gang(job).state, GangState::kEnding);
  cluster.pass_time(Duration::seconds(60));
  EXPECT_EQ(cluster.gang(job).state, GangState::kDone);
  EXPECT_EQ(cluster.gang(job).outcome, Outcome::kCancelled);
}

TEST_F(Running, AnAgentThatComesBackIsAdopted) {
  cluster.hang_up(nodes[0]);
  cluster.hello(nodes[0], {cluster.report(job, true, {batch(StepState::kRunning)})});
  EXPECT_EQ(cluster.core->state().node(nodes[0])->status, NodeStatus::kUp);
  cluster.pass_time(Duration::minutes(5));
  EXPECT_EQ(cluster.gang(job).state, GangState::kRunning);
  EXPECT_TRUE(cluster.orders<to_agent::EndGang>(nodes[0]).empty());
  cluster.complete(job);
  EXPECT_EQ(cluster.gang(job).outcome, Outcome::kCompleted);
}

TEST_F(Running, AnUnheardGoIsSaidAgain) {
  cluster.restart();
  cluster.hello(nodes[0], {cluster.report(job, false, {batch(StepState::kPreparing)})});
  auto go = cluster.orders<to_agent::Go>(nodes[0]);
  ASSERT_FALSE(go.empty());
  EXPECT_EQ(go[0].key, cluster.key(job));
  cluster.hello(nodes[1], {cluster.report(job, true)});
  EXPECT_TRUE(cluster.orders<to_agent::Go>(nodes[1]).empty());
  EXPECT_EQ(cluster.gang(job).state, GangState::kRunning);
}

TEST_F(Running, WhatEndedWhileNobodyListenedIsBooked) {
  cluster.restart();
  cluster.hello(nodes[1], {cluster.report(job, true)});
  cluster.hello(nodes[0], {cluster.report(job, true, {batch(StepState::kDone, {42, 0})})});
  EXPECT_EQ(cluster.gang(job).state, GangState::kEnding);
  EXPECT_EQ(cluster.gang(job).outcome, Outcome::kFailed);
  EXPECT_EQ(cluster.gang(job).exit, (ExitStatus{42, 0}));
}

TEST_F(Running, UnknownGangsAreEnded) {
  from_agent::GangReport stranger{GangId(99), Epoch(5), true, {}};
  from_agent::GangReport old = cluster.report(job, true);
  old.epoch = Epoch(old.epoch.value() - 1);
  std::uint32_t third = 3 - nodes[0] - nodes[1];
  cluster.hello(third, {stranger, cluster.report(job, true)});
  auto ends = cluster.orders<to_agent::EndGang>(third);
  ASSERT_EQ(ends.size(), 2u);  // also ours, which has nothing to do there
  EXPECT_EQ(ends[0].gang, GangId(99));
  EXPECT_EQ(cluster.gang(job).state, GangState::kRunning);
}

TEST_F(Running, AGangThatIsGoneHasFailed) {
  cluster.hang_up(nodes[1]);
  cluster.hello(nodes[1]);  // the machine was reset
  EXPECT_EQ(cluster.gang(job).state, GangState::kEnding);
  EXPECT_EQ(cluster.gang(job).outcome, Outcome::kNodeFail);
  EXPECT_EQ(cluster.orders<to_agent::EndGang>(nodes[0]).size(), 1u);
  cluster.clean(nodes[0], job);
  EXPECT_EQ(cluster.gang(job).state, GangState::kPreparing);
}

TEST_F(Running, ABatchStepThatNeverRanIsABrokenStart) {
  from_agent::StepEnded never;
  never.key = cluster.key(job, kBatchStep);
  never.never_ran = true;
  cluster.say(nodes[0], never);
  EXPECT_EQ(cluster.gang(job).state, GangState::kEnding);
  EXPECT_EQ(cluster.gang(job).outcome, Outcome::kNodeFail);
  EXPECT_TRUE(cluster.gang(job).requeue_when_clean);
}

TEST_F(Running, GoRefusedIsABrokenStart) {
  cluster.refuse(nodes[1], cluster.key(job), "job is not prepared");
  EXPECT_EQ(cluster.gang(job).outcome, Outcome::kNodeFail);
  EXPECT_EQ(cluster.orders<to_agent::EndGang>(nodes[0]).size(), 1u);
}

TEST_F(Running, AnotherAgentOfTheNodeTakesOver) {
  auto first = cluster.agent(0).link;
  cluster.hello(0, {cluster.report(job, true, {batch(StepState::kRunning)})});
  EXPECT_TRUE(first->closed);
  // The end of the first connection, noticed late, changes nothing.
  EXPECT_TRUE(cluster.turn([&] { cluster.core->on_agent_closed(first.get()); }));
  EXPECT_EQ(cluster.core->state().node(0)->status, NodeStatus::kUp);
}

TEST_F(Running, AfterARestartNobodyIsThoughtUpBeforeHeReports) {
  cluster.complete(job);
  cluster.restart();
  std::uint32_t next = cluster.must_submit(Cluster::job(1));
  EXPECT_EQ(cluster.core->state().gangs.find(next), nullptr);
  cluster.hello(1);
  EXPECT_EQ(cluster.nodes_of(next), std::vector<std::uint32_t>{1});
}

TEST_F(Running, NodesMayChangePlacesUnderRunningWork) {
  std::uint32_t other = cluster.must_submit(Cluster::job(1));  // in its roll call
  std::uint32_t third = cluster.nodes_of(other)[0];
  ConfigureRequest request{*cluster.core->state().spec};
  std::reverse(request.spec.nodes.begin(), request.spec.nodes.end());
  ASSERT_EQ(cluster.call("/v1/configure", to_json(request), kRoot).status, 200);
  EXPECT_EQ(cluster.nodes_of(other)[0], 2 - third);
  for (std::uint32_t i = 0; i < 3; ++i) cluster.agent(i).link->got.clear();
  cluster.ready(third, other);  // its agent still speaks for the node of that name
  EXPECT_EQ(cluster.gang(other).state, GangState::kRunning);
  EXPECT_EQ(cluster.orders<to_agent::Go>(third).size(), 1u);
  request.spec.nodes.pop_back();
  EXPECT_EQ(cluster.call("/v1/configure", to_json(request), kRoot).status, 409);
}

TEST(Heterogeneous, TwoComponentsOnOneNodeArePreparedAsOne) {
  Cluster cluster(1);
  cluster.connect_all();
  Submission submission = Cluster::job(1);
  std::vector<RoleAsk>& roles = submission.workload.roles.edit();
  roles[0].tasks = roles[0].tasks_per_node = 2;
  roles.push_back(RoleAsk(roles[0]));
  roles[0].gpus_per_node = 1;
  std::uint32_t job = cluster.must_submit(std::move(submission));
  ASSERT_EQ(cluster.gang(job).slots.size(), 2u);
  auto orders = cluster.orders<to_agent::PrepareGang>(0);
  ASSERT_EQ(orders.size(), 1u);
  EXPECT_EQ(orders[0].slot.cpu_ids.size(), 4u);
  EXPECT_EQ(orders[0].slot.gpus.size(), 1u);
  cluster.ready(0, job);
  EXPECT_EQ(cluster.orders<to_agent::Go>(0).size(), 1u);
  cluster.ended(0, cluster.key(job, kBatchStep));
  EXPECT_EQ(cluster.orders<to_agent::EndGang>(0).size(), 1u);
  cluster.clean(0, job);
  EXPECT_EQ(cluster.gang(job).state, GangState::kDone);
}

}  // namespace
}  // namespace tutti::controller
