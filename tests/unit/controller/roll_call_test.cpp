// The roll call: all or nothing, whoever refuses, hangs, dies, repeats himself or comes late.
#include <algorithm>

#include "tests/unit/controller/support.h"

namespace tutti::controller {
namespace {

bool contains(const std::vector<std::string>& list, const std::string& what) {
  return std::find(list.begin(), list.end(), what) != list.end();
}

// A job over two of three nodes in the middle of its roll call.
struct RollCall : ::testing::Test {
  Cluster cluster{3};
  std::uint32_t job = 0;
  std::vector<std::uint32_t> nodes;
  StepKey first_life;
  void SetUp() override {
    cluster.connect_all();
    job = cluster.must_submit(Cluster::job(2));
    nodes = cluster.nodes_of(job);
    ASSERT_EQ(nodes.size(), 2u);
    first_life = cluster.key(job);
    for (std::uint32_t node : nodes) ASSERT_EQ(cluster.orders<to_agent::PrepareGang>(node).size(), 1u);
    (void)cluster.new_events();
  }
  // The attempt was given up on account of `bad`: journalled, the others told, nothing held, no "go"
  // anywhere, and the next attempt is under way without that node.
  void expect_given_up(std::uint32_t bad, const std::string& reason) {
    EXPECT_TRUE(contains(cluster.new_events(), "roll_call_failed"));
    for (std::uint32_t node : nodes) {
      if (!cluster.agent(node).link->closed) {
        auto aborts = cluster.orders<to_agent::Abort>(node);
        ASSERT_EQ(aborts.size(), 1u);
        EXPECT_EQ(aborts[0].key, first_life);
      }
      EXPECT_TRUE(cluster.orders<to_agent::Go>(node).empty());
    }
    const Gang& gang = cluster.gang(job);
    EXPECT_EQ(gang.launch_failures, 1u);
    EXPECT_EQ(gang.avoid_nodes, std::vector<std::string>{"n" + std::to_string(bad)});
    EXPECT_NE(gang.last_failure.find(reason), std::string::npos) << gang.last_failure;
    EXPECT_EQ(gang.restarts, 0u);
    // Retried in the same turn, elsewhere.
    ASSERT_EQ(gang.state, GangState::kPreparing);
    EXPECT_GT(gang.epoch, first_life.epoch);
    for (const Slot& slot : gang.slots) EXPECT_NE(slot.node, bad);
    cluster.run(job);
    cluster.complete(job);
    EXPECT_EQ(cluster.gang(job).outcome, Outcome::kCompleted);
  }
};

TEST_F(RollCall, NobodyGoesBeforeAllAreReady) {
  cluster.ready(nodes[0], job);
  EXPECT_TRUE(cluster.orders<to_agent::Go>(nodes[0]).empty());
  EXPECT_EQ(cluster.gang(job).state, GangState::kPreparing);
  cluster.ready(nodes[1], job);
  for (std::uint32_t node : nodes) {
    auto go = cluster.orders<to_agent::Go>(node);
    ASSERT_EQ(go.size(), 1u);
    EXPECT_EQ(go[0].key, first_life);
  }
  EXPECT_TRUE(contains(cluster.new_events(), "gang_started"));
}

TEST_F(RollCall, ARefusalReleasesAll) {
  cluster.ready(nodes[0], job);
  cluster.refuse(nodes[1], first_life, "no space on the disk");
  expect_given_up(nodes[1], "no space on the disk");
}

TEST_F(RollCall, ADeadlineReleasesAll) {
  cluster.ready(nodes[1], job);
  cluster.pass_time(Duration::seconds(29));
  EXPECT_EQ(cluster.gang(job).epoch, first_life.epoch);
  cluster.pass_time(Duration::seconds(1));
  expect_given_up(nodes[0], "did not answer the roll call within 30 s");
}

TEST_F(RollCall, AnAgentThatDiesBeforeItIsReady) {
  cluster.ready(nodes[0], job);
  cluster.hang_up(nodes[1]);
  expect_given_up(nodes[1], "connection broke");
}

TEST_F(RollCall, AnAgentThatDiesAfterItWasReady) {
  cluster.ready(nodes[0], job);
  cluster.hang_up(nodes[0]);
  expect_given_up(nodes[0], "connection broke");
}

TEST_F(RollCall, ReadyTwiceCountsOnce) {
  cluster.ready(nodes[0], job);
  cluster.ready(nodes[0], job);
  EXPECT_EQ(cluster.gang(job).state, GangState::kPreparing);
  cluster.ready(nodes[1], job);
  (void)cluster.orders<to_agent::Go>(nodes[0]);
  cluster.ready(nodes[1], job);
  cluster.ready(nodes[0], job);
  EXPECT_TRUE(cluster.orders<to_agent::Go>(nodes[0]).empty());
  EXPECT_EQ(cluster.gang(job).state, GangState::kRunning);
}

TEST_F(RollCall, LateAnswersOfAnOlderLifeCountForNothing) {
  cluster.refuse(nodes[1], first_life, "busy");
  ASSERT_EQ(cluster.gang(job).state, GangState::kPreparing);
  Epoch second = cluster.gang(job).epoch;
  for (std::uint32_t node : nodes) cluster.say(node, from_agent::Ready{first_life});
  cluster.refuse(nodes[0], first_life, "too late");
  cluster.say(nodes[0], from_agent::Clean{GangId(job), first_life.epoch});
  EXPECT_EQ(cluster.gang(job).state, GangState::kPreparing);
  EXPECT_EQ(cluster.gang(job).epoch, second);
  EXPECT_EQ(cluster.gang(job).launch_failures, 1u);
}

TEST_F(RollCall, AnswersForUnknownGangsAreHarmless) {
  StepKey nobody{GangId(4711), Epoch(9), kExternStep};
  cluster.say(0, from_agent::Ready{nobody});
  cluster.refuse(0, nobody, "what?");
  cluster.say(0, from_agent::Clean{nobody.gang, nobody.epoch});
  cluster.ended(0, {nobody.gang, nobody.epoch, 0});
  EXPECT_EQ(cluster.gang(job).state, GangState::kPreparing);
  EXPECT_TRUE(cluster.new_events().empty());
}

TEST_F(RollCall, OthersStartInTheSamePass) {
  Submission waiting = Cluster::job(1);
  waiting.workload.roles.edit()[0].nodes_in = {"n" + std::to_string(nodes[1])};
  std::uint32_t other = cluster.must_submit(std::move(waiting));
  ASSERT_EQ(cluster.core->state().gangs.find(other), nullptr);
  cluster.refuse(nodes[1], first_life, "busy");
  ASSERT_EQ(cluster.gang(job).state, GangState::kPreparing);
  ASSERT_NE(cluster.core->state().gangs.find(other), nullptr);
  EXPECT_EQ(cluster.gang(other).state, GangState::kPreparing);
}

TEST_F(RollCall, AFaultOfTheJobEndsIt) {
  cluster.refuse(nodes[0], {first_life.gang, first_life.epoch, kBatchStep}, "/no/such: No such directory", true);
  EXPECT_EQ(cluster.gang(job).state, GangState::kEnding);
  EXPECT_EQ(cluster.gang(job).outcome, Outcome::kFailed);
  EXPECT_EQ(cluster.gang(job).last_failure, "/no/such: No such directory");
  for (std::uint32_t node : nodes) {
    EXPECT_EQ(cluster.orders<to_agent::EndGang>(node).size(), 1u);
    cluster.clean(node, job);
  }
  EXPECT_EQ(cluster.gang(job).state, GangState::kDone);
  auto rows = cluster.history(job);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].gang.exit, (ExitStatus{1, 0}));
}

TEST_F(RollCall, AfterSixFailuresTheJobIsHeld) {
  for (int i = 0; i < 6; ++i) {
    if (cluster.gang(job).state != GangState::kPreparing) cluster.pass_time(Duration::minutes(5));
    ASSERT_EQ(cluster.gang(job).state, GangState::kPreparing) << i;
    cluster.refuse(cluster.nodes_of(job)[0], cluster.key(job), "never");
  }
  EXPECT_TRUE(cluster.holds_nothing(job));
  EXPECT_EQ(cluster.gang(job).hold, Hold::kAdmin);
  cluster.pass_time(Duration::minutes(60));
  EXPECT_TRUE(cluster.holds_nothing(job));
  EXPECT_TRUE(cluster.act(Verb::kRelease, job, kRoot).error == std::nullopt);
  EXPECT_EQ(cluster.gang(job).state, GangState::kPreparing);
  EXPECT_EQ(cluster.gang(job).launch_failures, 0u);
}

TEST_F(RollCall, WithoutAnotherNodeItWaitsAndSaysWhy) {
  std::uint32_t wide = cluster.must_submit(Cluster::job(3));
  cluster.run(job);
  cluster.complete(job);
  ASSERT_EQ(cluster.gang(wide).state, GangState::kPreparing);
  cluster.refuse(2, cluster.key(wide), "no device");
  EXPECT_TRUE(cluster.holds_nothing(wide));
  auto pass = cluster.core->published()->pass;
  ASSERT_EQ(pass->waiting.size(), 1u);
  EXPECT_FALSE(pass->waiting[0].wait->text.empty());
  EXPECT_EQ(cluster.gang(wide).last_failure, "n2: no device");
  cluster.pass_time(Duration::seconds(31));  // tried again there after a while
  EXPECT_EQ(cluster.gang(wide).state, GangState::kPreparing);
}

TEST_F(RollCall, GoesOnAfterTheControllerDied) {
  cluster.ready(nodes[0], job);
  cluster.restart();
  ASSERT_EQ(cluster.gang(job).state, GangState::kPreparing);
  // The agents report; what they have said before does not count, they are asked again.
  cluster.hello(nodes[0], {cluster.report(job, false)});
  EXPECT_EQ(cluster.orders<to_agent::PrepareGang>(nodes[0]).size(), 1u);
  cluster.hello(nodes[1]);
  auto again = cluster.orders<to_agent::PrepareGang>(nodes[1]);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].job.epoch, first_life.epoch);
  cluster.ready(nodes[0], job);
  EXPECT_EQ(cluster.gang(job).state, GangState::kPreparing);
  cluster.ready(nodes[1], job);
  EXPECT_EQ(cluster.gang(job).state, GangState::kRunning);
  EXPECT_EQ(cluster.gang(job).launch_failures, 0u);
}

TEST_F(RollCall, OfAStepTooIsAllOrNothing) {
  cluster.run(job);
  StepRequest request;
  request.gang = GangId(job);
  request.nodes_min = request.nodes_max = 2;
  request.tasks = 4;
  request.order.name = "srun";
  auto answer = cluster.call("/v1/steps", to_json(request), kAnn);
  ASSERT_EQ(answer.status, 200) << answer.body;
  for (std::uint32_t node : nodes) {
    auto orders = cluster.orders<to_agent::PrepareStep>(node);
    ASSERT_EQ(orders.size(), 1u);
    EXPECT_EQ(orders[0].order.ranks.size(), 2u);
    (void)cluster.orders<to_agent::Go>(node);
  }
  cluster.ready(nodes[0], job, 0);
  EXPECT_TRUE(cluster.orders<to_agent::Go>(nodes[0]).empty());
  cluster.refuse(nodes[1], cluster.key(job, 0), "no such command", false);
  ASSERT_EQ(cluster.orders<to_agent::Abort>(nodes[0]).size(), 1u);
  from_agent::StepEnded never;
  never.key = cluster.key(job, 0);
  never.never_ran = true;
  cluster.say(nodes[0], never);
  const Step& step = cluster.gang(job).steps.back();
  EXPECT_EQ(step.state, StepState::kDone);
  EXPECT_EQ(step.outcome, Outcome::kLaunchFailed);
  EXPECT_NE(step.reason.find("no such command"), std::string::npos);
  EXPECT_EQ(cluster.gang(job).state, GangState::kRunning);
}

}  // namespace
}  // namespace tutti::controller
