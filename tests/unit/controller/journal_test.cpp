// What is durable: nothing is acknowledged that is not, a turn that cannot be written has not been,
// and a restart finds everything again.
#include <algorithm>
#include <random>

#include "tests/unit/controller/support.h"

namespace tutti::controller {
namespace {

struct Journalled : ::testing::Test {
  Cluster cluster{2};
  void SetUp() override { cluster.connect_all(); }
  // Runs inputs in a turn that cannot be made durable: everything is as before. Then the journal
  // works again, and what agents and clients said is heard again, as the service does it.
  void fail_then_repeat(const std::function<void()>& inputs) {
    std::string before = state::encode_snapshot(cluster.core->state());
    cluster.disk.fault_at(1, journal::FaultVfs::Fault::kFailOnce);
    Status failed = cluster.turn(inputs);
    cluster.disk.clear_fault();
    ASSERT_FALSE(failed);
    EXPECT_EQ(state::encode_snapshot(cluster.core->state()), before);
    for (std::uint32_t i = 0; i < 2; ++i) EXPECT_TRUE(cluster.agent(i).link->got.empty());
    EXPECT_TRUE(cluster.turn(inputs));
  }
  void forget_orders() {
    for (std::uint32_t i = 0; i < 2; ++i) cluster.agent(i).link->got.clear();
  }
};

TEST_F(Journalled, AFullDiskRefusesSubmissionsAndLosesNothing) {
  std::uint32_t first = cluster.must_submit(Cluster::job(2));
  std::string before = state::encode_snapshot(cluster.core->state());
  cluster.disk.set_free_space(0);
  SubmitResult refused;
  for (int i = 0; i < 3; ++i) {
    Submission big = Cluster::job(1);
    big.script += std::string(1 << 20, 'x') + std::to_string(i);
    refused = cluster.submit(std::move(big));
    ASSERT_TRUE(refused.error);
    EXPECT_EQ(refused.error->reason, "journal");
    EXPECT_EQ(state::encode_snapshot(cluster.core->state()), before);
  }
  cluster.disk.set_free_space(std::nullopt);
  std::uint32_t second = cluster.must_submit(Cluster::job(1));
  EXPECT_EQ(second, first + 1);
  cluster.restart();
  EXPECT_NE(cluster.core->state().workloads.find(first), nullptr);
  EXPECT_NE(cluster.core->state().workloads.find(second), nullptr);
}

TEST_F(Journalled, RollCallsAreUndoneWithTheirTurn) {
  std::uint32_t job = cluster.must_submit(Cluster::job(2));
  cluster.ready(0, job);
  forget_orders();
  from_agent::Message ready = from_agent::Ready{cluster.key(job)};
  fail_then_repeat([&] { cluster.core->on_agent_message(cluster.agent(1).link, encode_frame(ready)); });
  EXPECT_EQ(cluster.gang(job).state, GangState::kRunning);
  EXPECT_EQ(cluster.orders<to_agent::Go>(0).size(), 1u);
  EXPECT_EQ(cluster.orders<to_agent::Go>(1).size(), 1u);
}

TEST_F(Journalled, ALostConnectionIsNoticedAgain) {
  std::uint32_t job = cluster.must_submit(Cluster::job(2));
  forget_orders();
  cluster.agent(1).link->closed = "";
  fail_then_repeat([&] { cluster.core->on_agent_closed(cluster.agent(1).link.get()); });
  EXPECT_EQ(cluster.core->state().node(1)->status, NodeStatus::kUnknown);
  EXPECT_TRUE(cluster.holds_nothing(job));
  cluster.pass_time(Duration::seconds(60));
  EXPECT_EQ(cluster.core->state().node(1)->status, NodeStatus::kLost);
}

TEST_F(Journalled, ABatchStepsEndIsBookedOnce) {
  std::uint32_t job = cluster.must_submit(Cluster::job(1));
  cluster.run(job);
  forget_orders();
  from_agent::StepEnded ended;
  ended.key = cluster.key(job, kBatchStep);
  ended.exit = {5, 0};
  fail_then_repeat([&] {
    cluster.core->on_agent_message(cluster.agent(cluster.nodes_of(job)[0]).link,
                                   encode_frame(from_agent::Message(ended)));
  });
  EXPECT_EQ(cluster.gang(job).state, GangState::kEnding);
  EXPECT_EQ(cluster.gang(job).exit, (ExitStatus{5, 0}));
}

TEST_F(Journalled, LimitsAndDeadlinesComeAgain) {
  Submission submission = Cluster::job(1);
  submission.workload.time_limit = Duration::minutes(10);
  std::uint32_t job = cluster.must_submit(std::move(submission));
  cluster.run(job);
  forget_orders();
  cluster.now = cluster.now + Duration::minutes(10);
  fail_then_repeat([] {});
  EXPECT_EQ(cluster.gang(job).outcome, Outcome::kTimeout);
  cluster.clean(cluster.nodes_of(job)[0], job);
  cluster.now = cluster.now + Duration::minutes(5);
  forget_orders();
  fail_then_repeat([] {});
  EXPECT_EQ(cluster.core->state().workloads.find(job), nullptr);  // forgotten
}

TEST_F(Journalled, AClientThatLeavesIsHeardAgain) {
  std::uint32_t job = cluster.must_submit(Cluster::session(1));
  auto client = cluster.attach(job);
  cluster.client_says(client, from_client::Own{});
  cluster.run(job);
  forget_orders();
  fail_then_repeat([&] {
    cluster.core->on_client_message(client.get(), encode_frame(from_client::Message(from_client::Leave{false})));
    cluster.core->on_client_closed(client.get());
  });
  EXPECT_EQ(cluster.gang(job).state, GangState::kEnding);
}

TEST_F(Journalled, AGoneClientsSessionIsEndedAlsoWhenTheDiskWasFullThen) {
  std::uint32_t job = cluster.must_submit(Cluster::session(1));
  auto client = cluster.attach(job);
  cluster.client_says(client, from_client::Own{});
  cluster.run(job);
  cluster.client_gone(client);
  forget_orders();
  cluster.now = cluster.now + Duration::seconds(30);
  fail_then_repeat([] {});
  EXPECT_EQ(cluster.gang(job).state, GangState::kEnding);
}

TEST(JournalledPlan, AnswersOfPlannedNodesAreNotLost) {
  Cluster cluster(2, [](ClusterSpec& spec) {
    for (NodeSpec& node : spec.nodes) node.kind = NodeKind::kPlanned;
  });
  SubmitRequest request;
  request.submissions.push_back(Cluster::job(2));
  ApiCall call;
  call.caller = kAnn;
  call.method = "POST";
  call.path = "/v1/workloads";
  call.body = to_json(request);
  call.reply = [](HttpAnswer) {};
  cluster.core->begin(cluster.now);
  cluster.core->on_call(std::move(call));
  cluster.core->run_pass();
  ASSERT_TRUE(cluster.core->commit());
  ASSERT_TRUE(cluster.core->has_planned_answers());
  cluster.disk.fault_at(1, journal::FaultVfs::Fault::kFailOnce);
  EXPECT_FALSE(cluster.turn());
  cluster.disk.clear_fault();
  EXPECT_TRUE(cluster.core->has_planned_answers());
  EXPECT_TRUE(cluster.turn());
  EXPECT_EQ(cluster.gang(1).state, GangState::kRunning);
}

TEST_F(Journalled, ASubmissionAskedAgainIsTheSameJob) {
  Submission submission = Cluster::job(1);
  submission.key = "00000000deadbeef";
  std::uint32_t job = cluster.must_submit(submission);
  EXPECT_EQ(cluster.must_submit(submission), job);
  EXPECT_NE(cluster.must_submit(submission, kBob), job);  // keys are everybody's own
  cluster.restart();
  EXPECT_EQ(cluster.must_submit(submission), job);
  submission.key = "00000000deadbee0";
  EXPECT_NE(cluster.must_submit(submission), job);
  submission.key = "nonsense";
  EXPECT_TRUE(cluster.submit(submission).error);
  // A submission that was not made durable is not known by its key.
  submission.key = "0000000000000001";
  cluster.disk.fault_at(1, journal::FaultVfs::Fault::kFailOnce);
  EXPECT_TRUE(cluster.submit(submission).error);
  cluster.disk.clear_fault();
  std::uint32_t fresh = cluster.must_submit(submission);
  EXPECT_NE(cluster.core->state().workloads.find(fresh), nullptr);
}

TEST_F(Journalled, OldJobsAreForgottenWithTheirScripts) {
  Submission submission = Cluster::job(1);
  submission.key = "00000000deadbeef";
  std::uint32_t job = cluster.must_submit(submission);
  auto script = journal::parse_blob_id(to_hex(cluster.entry(job).workload.launch.script));
  std::uint32_t same = cluster.must_submit(Cluster::job(1));
  cluster.run(job);
  cluster.complete(job);
  cluster.pass_time(Duration::seconds(299));
  EXPECT_NE(cluster.core->state().workloads.find(job), nullptr);
  cluster.pass_time(Duration::seconds(1));
  EXPECT_EQ(cluster.core->state().workloads.find(job), nullptr);
  EXPECT_TRUE(cluster.journal->read_blob(*script));  // the other job has the same script
  EXPECT_NE(cluster.must_submit(submission), job);   // its number is never used again
  cluster.run(same);
  cluster.complete(same);
  EXPECT_EQ(cluster.history(job).size(), 1u);
}

// Random days with failing writes, lost connections and restarts: the state after a restart is the
// one that was last acknowledged, and the agents' world and the controller's come together again.
TEST(RandomDays, RestartsFindTheAcknowledgedState) {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    Cluster cluster(3);
    cluster.connect_all();
    std::vector<std::uint32_t> acknowledged;
    for (int i = 0; i < 120; ++i) {
      cluster.now = cluster.now + Duration::seconds(static_cast<std::int64_t>(random() % 4));
      bool faulty = random() % 8 == 0;
      if (faulty) cluster.disk.fault_at(1 + random() % 3, journal::FaultVfs::Fault::kFailOnce);
      switch (random() % 6) {
        case 0: {
          SubmitResult result = cluster.submit(Cluster::job(1 + random() % 3));
          if (!result.error) acknowledged.push_back(result.id.value());
          break;
        }
        case 1:
          if (!acknowledged.empty() && random() % 3 == 0)
            (void)cluster.call("/v1/actions", to_json(ActionRequest{.jobs = {{acknowledged[random() % acknowledged.size()], ""}}}), kAnn);
          break;
        case 2: {
          if (random() % 4) break;
          std::string before = state::encode_snapshot(cluster.core->published()->state);
          std::vector<std::vector<from_agent::GangReport>> running(3);
          cluster.core->state().gangs.for_each([&](std::uint32_t id, const Gang& g) {
            if (g.state != GangState::kRunning) return;
            from_agent::StepReport batch;
            batch.key = {g.id, g.epoch, kBatchStep};
            batch.state = StepState::kRunning;
            for (std::size_t s = 0; s < g.slots.size(); ++s) {
              auto report = cluster.report(id, true);
              if (s == 0) report.steps.push_back(batch);
              running[g.slots[s].node].push_back(report);
            }
          });
          cluster.disk.clear_fault();
          cluster.restart();
          for (std::uint32_t id : acknowledged) {
            bool known = cluster.core->state().workloads.find(id) || !cluster.history(id).empty();
            EXPECT_TRUE(known) << "job " << id;
          }
          for (std::uint32_t n = 0; n < 3; ++n) cluster.hello(n, running[n]);
          break;
        }
        default: {
          // Agents do what they were told; the answers of failed turns are given again.
          for (std::uint32_t n = 0; n < 3; ++n) {
            std::vector<from_agent::Message> answers;
            for (auto& m : cluster.orders<to_agent::PrepareGang>(n))
              answers.push_back(from_agent::Ready{{m.job.gang, m.job.epoch, kExternStep}});
            for (auto& m : cluster.orders<to_agent::Abort>(n)) answers.push_back(from_agent::Clean{m.key.gang, m.key.epoch});
            for (auto& m : cluster.orders<to_agent::EndGang>(n)) answers.push_back(from_agent::Clean{m.gang, m.epoch});
            for (auto& m : cluster.orders<to_agent::Go>(n)) {
              const Gang* g = cluster.core->state().gangs.find(m.key.gang.value());
              if (!g || g->epoch != m.key.epoch || g->slots.empty() || g->slots[0].node != n || random() % 2) continue;
              from_agent::StepEnded ended;
              ended.key = {m.key.gang, m.key.epoch, kBatchStep};
              answers.push_back(ended);
            }
            for (const auto& answer : answers) {
              auto inputs = [&] { cluster.core->on_agent_message(cluster.agent(n).link, encode_frame(answer)); };
              if (!cluster.turn(inputs)) {
                cluster.disk.clear_fault();
                EXPECT_TRUE(cluster.turn(inputs));
              }
            }
          }
        }
      }
      cluster.disk.clear_fault();
    }
    // In the end everything that was acknowledged ends when it is told to.
    for (std::uint32_t id : acknowledged) (void)cluster.call("/v1/actions", to_json(ActionRequest{.jobs = {{id, ""}}}), kAnn);
    for (int i = 0; i < 4; ++i)
      for (std::uint32_t n = 0; n < 3; ++n)
        for (auto& m : cluster.orders<to_agent::EndGang>(n)) cluster.say(n, from_agent::Clean{m.gang, m.epoch});
    cluster.core->state().gangs.for_each([&](std::uint32_t id, const Gang& g) {
      EXPECT_EQ(enum_name(g.state), "done") << "job " << id;
    });
  }
}

}  // namespace
}  // namespace tutti::controller
