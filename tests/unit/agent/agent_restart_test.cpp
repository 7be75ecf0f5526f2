// What survives: agents that are killed and replaced, broken connections, killed supervisors.
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/agent/agent_fixture.h"

namespace tutti::agent {
namespace {

const from_agent::GangReport* report_of(const from_agent::Hello* hello, const JobFacts& job) {
  for (const auto& gang : hello->gangs) {
    if (gang.gang == job.gang && gang.epoch == job.epoch) return &gang;
  }
  return nullptr;
}

TEST_F(AgentTest, OutputIsWholeAcrossManyAgentsAndConnections) {
  start_agent();
  auto facts = job(31);
  run_gang(facts);
  constexpr int kLines = 100'000;
  run_step(facts, step(0, {"bash", "-c",
                           fmt::format("for ((i=0; i<{}; i++)); do echo line $i; done", kLines)}));
  int restarts = 0;
  std::size_t last = 0;
  const auto running = [&] { return ended(0) == nullptr; };
  while (running() && restarts < 50) {
    until("more output", [&] { return output(0).size() > last || !running(); });
    last = output(0).size();
    if (restarts % 3 == 2) {
      uplink_->cut();
    } else {
      kill_agent();
      start_agent();
    }
    ++restarts;
  }
  EXPECT_EQ(wait_ended(0).exit, ExitStatus{});
  EXPECT_GT(restarts, 3);
  EXPECT_EQ(uplink_->gaps, 0);
  std::string expected;
  for (int i = 0; i < kLines; ++i) expected += fmt::format("line {}\n", i);
  EXPECT_TRUE(output(0) == expected) << output(0).size() << " bytes of " << expected.size();
}

TEST_F(AgentTest, ClientThatTakesNothingHoldsTheRankUpNotTheAgent) {
  start_agent();
  uplink_->acknowledge = false;
  auto facts = job(32);
  run_gang(facts);
  run_step(facts,
           step(0, {"bash", "-c", "head -c 200000000 /dev/zero | tr '\\0' x; echo end >end"}));
  until("the window is full", [&] { return uplink_->next[0] > (8U << 20); });
  run_for(500);
  EXPECT_LT(uplink_->next[0], 16U << 20);
  EXPECT_EQ(read("end"), "");
  EXPECT_LT(std::filesystem::file_size(options_.directory + "/jobs/32/step_0/output"), 80U << 20);
  uplink_->acknowledge = true;
  uplink_->order(to_agent::OutputTaken{{facts.gang, facts.epoch, 0}, uplink_->next[0]});
  EXPECT_EQ(wait_ended(0).exit, ExitStatus{});
  EXPECT_EQ(output(0).size(), 200'000'000U);
}

TEST_F(AgentTest, HelloTellsWhatReallyRuns) {
  start_agent();
  auto prepared = job(33, 1);
  auto running = job(34, 2);
  auto done = job(35, 3);
  prepare(prepared, batch("echo never\n"));
  until("ready", [&] { return count<from_agent::Ready>() == 1; });
  run_gang(running, batch("while [ ! -e stop ]; do sleep 0.02; done; exit 6\n"));
  run_gang(done, batch("while [ ! -e stop1 ]; do sleep 0.02; done; exit 7\n"));
  kill_agent();
  // It ends while there is no agent.
  std::ofstream(work_dir() + "/stop1") << "x";
  for (int i = 0; i < 2000; ++i) {
    if (std::filesystem::exists(options_.directory + "/jobs/35/step_batch/status.json")) break;
    ::usleep(5000);
  }
  start_agent();
  const auto* hello = find<from_agent::Hello>();
  ASSERT_EQ(hello->gangs.size(), 3U);
  const auto* first = report_of(hello, prepared);
  ASSERT_TRUE(first != nullptr && first->steps.size() == 1);
  EXPECT_FALSE(first->started);
  EXPECT_EQ(first->steps[0].state, StepState::kPreparing);
  const auto* second = report_of(hello, running);
  ASSERT_TRUE(second != nullptr && second->steps.size() == 1);
  EXPECT_TRUE(second->started);
  EXPECT_EQ(second->steps[0].state, StepState::kRunning);
  const auto* third = report_of(hello, done);
  ASSERT_TRUE(third != nullptr && third->steps.size() == 1);
  EXPECT_EQ(third->steps[0].state, StepState::kDone);
  EXPECT_EQ(third->steps[0].exit.code, 7);
  // The roll call of the first goes on where it was, the second's end is seen.
  EXPECT_NE(find<from_agent::Ready>([&](const auto& m) { return m.key.gang == prepared.gang; }),
            nullptr);
  std::ofstream(work_dir() + "/stop") << "x";
  until("its exit", [&] {
    const auto* end =
        find<from_agent::StepEnded>([&](const auto& m) { return m.key.gang == running.gang; });
    return end != nullptr && end->exit.code == 6;
  });
  go(prepared);
  until("it ran", [&] { return read("slurm-33.out") == "never\n"; });
}

TEST_F(AgentTest, GoThatWasHeardIsPassedOnByTheNextAgent) {
  start_agent();
  auto facts = job(36);
  prepare(facts, batch("echo ran\n"));
  until("ready", [&] { return count<from_agent::Ready>() == 1; });
  kill_agent();
  std::ofstream(options_.directory + "/jobs/36/go");
  start_agent();
  wait_ended(kBatchStep);
  EXPECT_EQ(read("slurm-36.out"), "ran\n");
}

TEST_F(AgentTest, HalfPreparedGangIsRemoved) {
  start_agent();
  kill_agent();
  std::filesystem::create_directory(options_.directory + "/jobs/37");
  std::ofstream(options_.directory + "/jobs/37/gang.json") << "{\"job\":{\"gang\":37";
  auto groups = open_cgroups(layout_, cluster_, "node01");
  ASSERT_TRUE(groups->create_job(37, {}));
  start_agent();
  EXPECT_TRUE(find<from_agent::Hello>()->gangs.empty());
  EXPECT_TRUE(std::filesystem::is_empty(options_.directory + "/jobs"));
  EXPECT_TRUE(groups->jobs().empty());
}

TEST_F(AgentTest, KilledSupervisorFailsItsStepAndTakesTheRanksAlong) {
  start_agent();
  auto facts = job(38);
  const std::string mark = fmt::format("980{}", ::getpid());
  run_gang(facts);
  run_step(facts, step(0, {"bash", "-c", fmt::format("setsid sleep {0} & sleep {0}", mark)}, 2));
  until("all run", [&] { return processes_with(mark).size() >= 4; });
  const auto rank = static_cast<int>(
      find<from_agent::Started>([](const auto& m) { return m.key.step == 0; })->pids[0]);
  auto stat = read_small_file(fmt::format("/proc/{}/stat", rank));
  ASSERT_TRUE(stat);
  const int supervisor = std::stoi(stat->substr(stat->rfind(')') + 4));
  ASSERT_EQ(::kill(supervisor, SIGKILL), 0);
  const auto end = wait_ended(0);
  EXPECT_FALSE(end.never_ran);
  EXPECT_EQ(end.exit.signal, SIGKILL);
  EXPECT_TRUE(processes_with(mark).empty());
  end_and_check(facts);
}

TEST_F(AgentTest, SupervisorKilledWithoutAnAgentIsFoundOut) {
  start_agent();
  auto facts = job(39);
  const std::string mark = fmt::format("981{}", ::getpid());
  run_gang(facts, batch(fmt::format("setsid sleep {0} & sleep {0}\n", mark)));
  until("all run", [&] { return processes_with(mark).size() >= 2; });
  const auto rank = static_cast<int>(find<from_agent::Started>()->pids[0]);
  auto stat = read_small_file(fmt::format("/proc/{}/stat", rank));
  ASSERT_TRUE(stat);
  const int supervisor = std::stoi(stat->substr(stat->rfind(')') + 4));
  kill_agent();
  ASSERT_EQ(::kill(supervisor, SIGKILL), 0);
  ::waitpid(supervisor, nullptr, 0);
  start_agent();
  EXPECT_EQ(find<from_agent::Hello>()->gangs.at(0).steps.at(0).exit.signal, SIGKILL);
  EXPECT_TRUE(processes_with(mark).empty());
}

TEST_F(AgentTest, EndingIsCarriedOnByTheSupervisorAlone) {
  start_agent();
  auto facts = job(40);
  const std::string mark = fmt::format("982{}", ::getpid());
  run_gang(facts,
           batch(fmt::format("trap '' TERM; echo up >up; while :; do sleep {}; done\n", mark)));
  until("it runs", [&] { return read("up") == "up\n" && !processes_with(mark).empty(); });
  end(facts, Duration::milliseconds(300));
  run_for(100);
  kill_agent();
  for (int i = 0; i < 2000; ++i) {
    if (std::filesystem::exists(options_.directory + "/jobs/40/step_batch/status.json")) break;
    ::usleep(5000);
  }
  EXPECT_TRUE(processes_with(mark).empty());
  start_agent();
  EXPECT_EQ(find<from_agent::Hello>()->gangs.at(0).steps.at(0).state, StepState::kDone);
  end_and_check(facts);
}

TEST_F(AgentTest, WithoutCgroupsTreesAreStillEnded) {
  layout_ = CgroupLayout{};
  start_agent();
  auto facts = job(41);
  const std::string mark = fmt::format("983{}", ::getpid());
  run_gang(facts, batch(fmt::format("trap '' TERM; (setsid sleep {0} &); echo up >up; sleep {0}; "
                                    "sleep {0}\n",
                                    mark)));
  until("all run", [&] { return processes_with(mark).size() >= 2; });
  kill_agent();
  start_agent();
  end_and_check(facts, Duration::milliseconds(100));
  EXPECT_TRUE(processes_with(mark).empty());
}

}  // namespace
}  // namespace tutti::agent
