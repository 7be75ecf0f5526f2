// The roll call, refusals, output and signals, with real supervisors.
#include <fmt/format.h>
#include <grp.h>
#include <signal.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/agent/agent_fixture.h"

namespace tutti::agent {
namespace {

TEST_F(AgentTest, BatchScriptRunsAndEverythingIsGoneAfterwards) {
  start_agent();
  auto facts = job(58);
  run_gang(facts, batch("echo \"$SLURM_JOB_ID $1 $(ps -o args= $$)\"; pwd; exit 3\n"));
  const auto end = wait_ended(kBatchStep);
  EXPECT_EQ(end.exit, (ExitStatus{3, 0}));
  EXPECT_FALSE(end.never_ran);
  EXPECT_NE(read("slurm-58.out").find("slurm_script"), std::string::npos);
  EXPECT_NE(read("slurm-58.out").find(work_dir() + "\n"), std::string::npos);
  end_and_check(facts);
}

TEST_F(AgentTest, ScriptArgumentsAndUtf8SurviveByteForByte) {
  start_agent();
  auto facts = job(1);
  auto order = batch("printf '%s|' \"$@\" \"$WORD\" 'Grüße 日本'\n");
  order.argv = {"a b", "ö\xff"};
  order.environment.push_back("WORD=schön\xfe");
  order.out.path = "ä %j.out";
  run_gang(facts, order);
  wait_ended(kBatchStep);
  EXPECT_EQ(read("ä 1.out"), "a b|ö\xff|schön\xfe|Grüße 日本|");
}

TEST_F(AgentTest, NothingRunsBeforeGoAndAbortLeavesNothing) {
  start_agent();
  auto facts = job(7);
  prepare(facts, batch("touch ran\n"));
  until("ready", [&] { return count<from_agent::Ready>() == 1; });
  prepare(facts, batch("touch ran\n"));
  until("ready again", [&] { return count<from_agent::Ready>() == 2; });
  run_for(50);
  EXPECT_FALSE(std::filesystem::exists(work_dir() + "/ran"));
  uplink_->order(to_agent::Abort{{facts.gang, facts.epoch, kExternStep}});
  until("clean", [&] { return count<from_agent::Clean>() == 1; });
  go(facts);  // late
  until("refused", [&] { return count<from_agent::Refused>() == 1; });
  prepare(facts);  // of a life that is over
  until("refused", [&] { return count<from_agent::Refused>() == 2; });
  uplink_->order(to_agent::Abort{{facts.gang, facts.epoch, kExternStep}});
  until("clean again", [&] { return count<from_agent::Clean>() == 2; });
  EXPECT_FALSE(std::filesystem::exists(work_dir() + "/ran"));
  EXPECT_TRUE(std::filesystem::is_empty(options_.directory + "/jobs"));
}

TEST_F(AgentTest, AbortedStepNeverRan) {
  start_agent();
  auto facts = job(8);
  run_gang(facts);
  prepare_step(facts, step(0, {"touch", "ran"}));
  until("ready", [&] { return count<from_agent::Ready>() == 2; });
  uplink_->order(to_agent::Abort{{facts.gang, facts.epoch, 0}});
  EXPECT_TRUE(wait_ended(0).never_ran);
  EXPECT_FALSE(std::filesystem::exists(work_dir() + "/ran"));
  uplink_->order(to_agent::Abort{{facts.gang, facts.epoch, 5}});
  EXPECT_TRUE(wait_ended(5).never_ran);
}

TEST_F(AgentTest, SecondGoChangesNothing) {
  start_agent();
  auto facts = job(9);
  run_gang(facts, batch("echo x >>count; sleep 0.2\n"));
  go(facts);
  go(facts);
  wait_ended(kBatchStep);
  go(facts);
  run_for(50);
  EXPECT_EQ(read("count"), "x\n");
}

TEST_F(AgentTest, OrdersOfAnotherEpochAreRefused) {
  start_agent();
  run_gang(job(10, 5));
  prepare(job(10, 4));
  until("refused", [&] { return count<from_agent::Refused>() == 1; });
  prepare_step(job(10, 4), step(0, {"true"}));
  until("refused", [&] { return count<from_agent::Refused>() == 2; });
  EXPECT_FALSE(find<from_agent::Refused>()->fault_of_job);
}

TEST_F(AgentTest, MissingCommandIsTheJobsFault) {
  start_agent();
  auto facts = job(11);
  run_gang(facts);
  prepare_step(facts, step(0, {"nosuchcommand"}));
  until("refused", [&] { return count<from_agent::Refused>() == 1; });
  const auto* refused = find<from_agent::Refused>();
  EXPECT_TRUE(refused->fault_of_job);
  EXPECT_EQ(refused->exit, (ExitStatus{2, 0}));
  EXPECT_EQ(refused->reason, "execve(): nosuchcommand: No such file or directory");
}

TEST_F(AgentTest, MissingOutputDirectoryFailsNamingThePath) {
  start_agent();
  auto facts = job(12);
  auto order = batch("touch ran\n");
  order.out.path = "nowhere/%j.out";
  prepare(facts, order);
  until("refused", [&] { return count<from_agent::Refused>() == 1; });
  const auto* refused = find<from_agent::Refused>();
  EXPECT_EQ(refused->key.step, kExternStep);
  EXPECT_TRUE(refused->fault_of_job);
  EXPECT_NE(refused->reason.find(work_dir() + "/nowhere/12.out"), std::string::npos);
  EXPECT_TRUE(std::filesystem::is_empty(options_.directory + "/jobs"));
}

TEST_F(AgentTest, MissingInterpreterIsSaidInTheOutputFile) {
  start_agent();
  auto facts = job(13);
  auto order = batch("");
  order.script = "#!/no/such/shell\necho\n";
  prepare(facts, order);
  until("refused", [&] { return count<from_agent::Refused>() == 1; });
  EXPECT_EQ(find<from_agent::Refused>()->exit.code, 2);
  EXPECT_NE(read("slurm-13.out").find("slurmstepd-node01: error: execve():"), std::string::npos);
}

TEST_F(AgentTest, MissingWorkDirectoryFallsBackToTmpWithANote) {
  start_agent();
  auto facts = job(14);
  auto order = batch("pwd\n");
  order.work_dir = work_dir() + "/gone";
  order.out.path = work_dir() + "/out";
  run_gang(facts, order);
  wait_ended(kBatchStep);
  EXPECT_EQ(read("out"), fmt::format("slurmstepd-node01: error: couldn't chdir to `{}/gone': No "
                                     "such file or directory: going to /tmp instead\n/tmp\n",
                                     work_dir()));
}

TEST_F(AgentTest, ExecFailureAfterGoIsReportedForTheRank) {
  start_agent();
  std::ofstream(work_dir() + "/garbage") << std::string("\0\1\2garbage", 10);
  ::chmod((work_dir() + "/garbage").c_str(), 0755);
  auto facts = job(15);
  run_gang(facts);
  run_step(facts, step(0, {"./garbage"}));
  EXPECT_EQ(wait_ended(0).exit.code, ENOEXEC);
  EXPECT_EQ(find<from_agent::RankExited>()->message, "execve(): ./garbage: Exec format error");
}

TEST_F(AgentTest, AttachedOutputComesWholePerRankAndStream) {
  start_agent();
  auto facts = job(16);
  run_gang(facts);
  run_step(facts,
           step(0, {"bash", "-c", "echo out $SLURM_PROCID; echo err $SLURM_PROCID >&2"}, 64));
  const auto end = wait_ended(0);
  EXPECT_EQ(end.exit, ExitStatus{});
  for (std::uint32_t rank = 0; rank < 64; ++rank) {
    EXPECT_EQ(output(0, rank), fmt::format("out {}\n", rank));
    EXPECT_EQ(output(0, rank, true), fmt::format("err {}\n", rank));
  }
  EXPECT_EQ(count<from_agent::RankExited>(), 64);
  EXPECT_EQ(uplink_->gaps, 0);
}

TEST_F(AgentTest, FilesByPatternsAndSharedFiles) {
  start_agent();
  auto facts = job(17);
  run_gang(facts);
  auto order = step(0, {"bash", "-c", "echo $SLURM_PROCID; echo e >&2"}, 4);
  order.out = {StreamKind::kFile, "o-%j-%s-%2t-%N.txt", {}};
  order.err = {StreamKind::kFile, "all.err", {}};
  run_step(facts, order);
  wait_ended(0);
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(read(fmt::format("o-17-0-0{}-node01.txt", rank)), fmt::format("{}\n", rank));
  }
  EXPECT_EQ(read("all.err"), "e\ne\ne\ne\n");
  order.step = 1;
  order.append = true;
  run_step(facts, order);
  wait_ended(1);
  EXPECT_EQ(read("all.err"), "e\ne\ne\ne\ne\ne\ne\ne\n");
}

TEST_F(AgentTest, InputReachesAllRanksOnce) {
  start_agent();
  auto facts = job(18);
  run_gang(facts);
  run_step(facts, step(0, {"cat"}, 2));
  const StepKey key{facts.gang, facts.epoch, 0};
  std::string big;
  for (int i = 0; i < 20'000; ++i) big += fmt::format("line {}\n", i);
  uplink_->order(to_agent::Input{key, {}, 0, false}, "hello\n");
  uplink_->order(to_agent::Input{key, {}, 0, false}, "hello\nwor");  // sent again, with more
  uplink_->order(to_agent::Input{key, {}, 9, false}, "ld\n");
  uplink_->order(to_agent::Input{key, {}, 12, true}, big);
  EXPECT_EQ(wait_ended(0).exit, ExitStatus{});
  EXPECT_EQ(output(0, 0), "hello\nworld\n" + big);
  EXPECT_EQ(output(0, 1), "hello\nworld\n" + big);
}

TEST_F(AgentTest, TerminalEchoesResizesAndPassesControlC) {
  start_agent();
  auto facts = job(19);
  run_gang(facts);
  auto order = step(0, {"bash", "-c",
                        "tty; stty size; read x; stty size; trap 'echo INT; exit 4' INT; "
                        "echo waiting; while :; do sleep 0.05; done"});
  order.pty = true;
  order.rows = 33;
  order.columns = 77;
  run_step(facts, order);
  const StepKey key{facts.gang, facts.epoch, 0};
  until("size", [&] { return output(0).find("33 77\r\n") != std::string::npos; });
  EXPECT_NE(output(0).find("/dev/pts/"), std::string::npos);
  uplink_->order(to_agent::Resize{key, 50, 100});
  uplink_->order(to_agent::Input{key, 0, 0, false}, "word\n");
  until("echo and new size",
        [&] { return output(0).find("word\r\n50 100\r\nwaiting") != std::string::npos; });
  uplink_->order(to_agent::Input{key, 0, 5, false}, "\x03");
  EXPECT_EQ(wait_ended(0).exit.code, 4);
}

TEST_F(AgentTest, SignalsReachStepsOrTheBatchShellAlone) {
  start_agent();
  auto facts = job(20);
  run_gang(facts, batch("trap 'echo got USR1' USR1; sleep 1; echo done\n"));
  run_gang(facts);
  auto order = step(0, {"bash", "-c",
                        "trap 'echo step; exit 5' USR1; echo up; while :; do sleep "
                        "0.02; done"});
  run_step(facts, order);
  until("the trap is set", [&] { return output(0) == "up\n"; });
  to_agent::Signal signal{{facts.gang, facts.epoch, kExternStep}, SIGUSR1, false, true, false};
  uplink_->order(signal);  // scancel -b
  EXPECT_EQ(wait_ended(kBatchStep).exit, ExitStatus{});
  EXPECT_EQ(read("slurm-20.out"), "got USR1\ndone\n");
  EXPECT_EQ(ended(0), nullptr);
  signal.to_steps = true;
  signal.to_batch = false;
  uplink_->order(signal);
  EXPECT_EQ(wait_ended(0).exit.code, 5);
}

TEST_F(AgentTest, EndWritesTheNoticeThenTermThenKill) {
  start_agent();
  auto facts = job(21);
  run_gang(facts, batch("trap 'echo got TERM; exit 9' TERM; echo up >up; sleep 100 & wait\n"));
  until("the trap is set", [&] { return read("up") == "up\n"; });
  end(facts, Duration::seconds(10), "*** JOB 21 ON node01 CANCELLED AT 2026-11-30T20:04:31 ***");
  EXPECT_EQ(wait_ended(kBatchStep).exit.code, 9);
  EXPECT_EQ(read("slurm-21.out"),
            "slurmstepd-node01: error: *** JOB 21 ON node01 CANCELLED AT 2026-11-30T20:04:31 ***\n"
            "got TERM\n");
  until("clean", [&] { return count<from_agent::Clean>() == 1; });
}

TEST_F(AgentTest, TreesThatIgnoreTermAreKilledAfterTheGrace) {
  start_agent();
  auto facts = job(22);
  const std::string mark = fmt::format("977{}", ::getpid());
  run_gang(facts,
           batch(fmt::format("trap '' TERM HUP; setsid sleep {0} & (setsid bash -c 'trap \"\" "
                             "TERM; sleep {0}; sleep {0}' &) ; echo up >up; sleep {0}\n",
                             mark)));
  until("all run", [&] { return processes_with(mark).size() >= 3 && read("up") == "up\n"; });
  end_and_check(facts, Duration::milliseconds(200));
  EXPECT_EQ(ended(kBatchStep)->exit.signal, SIGKILL);
  EXPECT_TRUE(processes_with(mark).empty());
}

TEST_F(AgentTest, WhatAScriptLeavesBehindEndsWithIt) {
  start_agent();
  auto facts = job(23);
  const std::string mark = fmt::format("978{}", ::getpid());
  run_gang(facts, batch(fmt::format("setsid sleep {} >/dev/null 2>&1 & exit 0\n", mark)));
  EXPECT_EQ(wait_ended(kBatchStep).exit, ExitStatus{});
  EXPECT_TRUE(processes_with(mark).empty());
}

TEST_F(AgentTest, ForkBombIsHeldAndEnded) {
  if (!open_cgroups(layout_, cluster_, "node01")->features().pids) {
    GTEST_SKIP() << "no pids controller on this machine";
  }
  options_.pids_max = 60;
  start_agent();
  auto facts = job(24);
  const std::string mark = fmt::format("979{}", ::getpid());
  run_gang(facts,
           batch(fmt::format(
               "trap '' TERM; bomb() {{ while :; do (trap '' TERM; exec sleep {}) & done; }}; "
               "bomb 2>/dev/null\n",
               mark)));
  until("the limit is reached", [&] { return processes_with(mark).size() > 30; });
  EXPECT_LE(processes_with(mark).size(), 60U);
  end_and_check(facts, Duration::milliseconds(100));
  EXPECT_TRUE(processes_with(mark).empty());
}

TEST_F(AgentTest, UmaskAndLimitsAreTheSubmitters) {
  start_agent();
  auto facts = job(25);
  auto order = batch("umask; ulimit -Sn; ulimit -Sc; touch made\n");
  order.umask = 0027;
  order.limits = {{"nofile", 123}, {"core", 0}};
  run_gang(facts, order);
  wait_ended(kBatchStep);
  EXPECT_EQ(read("slurm-25.out"), "0027\n123\n0\n");
  EXPECT_EQ(std::filesystem::status(work_dir() + "/made").permissions(),
            std::filesystem::perms(0640));
}

TEST_F(AgentTest, LimitAboveTheHardLimitIsLoweredAndSaid) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_max == RLIM_INFINITY) GTEST_SKIP() << "no hard limit to exceed";
  start_agent();
  auto facts = job(26);
  auto order = batch("ulimit -Sn\n");
  order.limits = {{"nofile", ~std::uint64_t{0}}};
  run_gang(facts, order);
  wait_ended(kBatchStep);
  EXPECT_EQ(read("slurm-26.out"),
            fmt::format("slurmstepd-node01: error: Can't propagate RLIMIT_NOFILE of unlimited from "
                        "submit host: the hard limit on this node is {0}, which is used\n{0}\n",
                        files.rlim_max));
}

TEST_F(AgentTest, RanksAreTheUserBeforeAnyPathIsOpened) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become somebody else";
  start_agent();
  auto facts = job(27);
  facts.uid = facts.gid = 65534;
  facts.user = "nobody";
  auto order =
      batch("id -u; id -g; id -G; cat /proc/self/oom_score_adj; grep CapEff /proc/self/status\n");
  run_gang(facts, order);
  EXPECT_EQ(wait_ended(kBatchStep).exit, ExitStatus{});
  // Where the supervisor may not protect itself from the OOM killer, its ranks are the better victims.
  const bool may_protect_itself = ::prctl(PR_CAPBSET_READ, CAP_SYS_RESOURCE) == 1;
  EXPECT_EQ(read("slurm-27.out"),
            fmt::format("65534\n65534\n65534\n{}\nCapEff:\t0000000000000000\n",
                        may_protect_itself ? 0 : 500));
  struct stat status{};
  ASSERT_EQ(::stat((work_dir() + "/slurm-27.out").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 65534U);
  end_and_check(facts);
  // A place that only root may write to.
  auto other = job(28, 2);
  other.uid = other.gid = 65534;
  other.user = "nobody";
  ::mkdir((root_ + "/private").c_str(), 0755);
  order.out.path = root_ + "/private/x";
  prepare(other, order);
  until("refused", [&] { return count<from_agent::Refused>() == 1; });
  EXPECT_NE(find<from_agent::Refused>()->reason.find("Permission denied"), std::string::npos);
}

TEST_F(AgentTest, NotifyMessagesArePassedOn) {
  start_agent();
  auto facts = job(29);
  run_gang(facts);
  run_step(facts,
           step(0, {"python3", "-c",
                    "import os,socket\n"
                    "s=socket.socket(socket.AF_UNIX,socket.SOCK_DGRAM)\n"
                    "s.sendto(b'READY=1\\nX_TUTTI_STEP=12',os.environ['NOTIFY_SOCKET'])\n"}));
  wait_ended(0);
  ASSERT_NE(find<from_agent::Notified>(), nullptr);
  EXPECT_EQ(find<from_agent::Notified>()->text, "READY=1\nX_TUTTI_STEP=12\n");
}

}  // namespace
}  // namespace tutti::agent
