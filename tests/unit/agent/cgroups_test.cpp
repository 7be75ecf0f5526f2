#include "agent/cgroups.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "agent/device_filter.h"
#include "agent/process.h"
#include "tests/unit/agent/helper.h"

namespace tutti::agent {
namespace {

using namespace std::chrono_literals;

std::string missing_text(const CgroupLayout& layout) {
  return fmt::format("{}", fmt::join(layout.missing, "; "));
}

// What is made is removed, also on failure.
class CgroupsTest : public testing::Test {
 protected:
  void open(const ProbeOptions& options) {
    layout_ = probe_cgroups(options);
    if (layout_.version == CgroupVersion::kNone) {
      GTEST_SKIP() << "no cgroups here: " << missing_text(layout_);
    }
    groups_ = open_cgroups(layout_, fmt::format("test{}", ::getpid()), "node01");
  }
  void TearDown() override {
    if (!groups_) return;
    for (auto job : groups_->jobs()) {
      EXPECT_TRUE(groups_->kill_all(job, "", {}));
      while (::waitpid(-1, nullptr, WNOHANG) > 0) {
      }
      auto status = groups_->remove_job(job);
      EXPECT_TRUE(status) << status.error().message;
    }
    auto status = groups_->remove_node();
    EXPECT_TRUE(status) << status.error().message;
    for (const auto& tree : layout_.hierarchies) {
      EXPECT_FALSE(std::filesystem::exists(tree.path + fmt::format("/tutti-test{}", ::getpid())));
    }
  }
  // A job and a step "0", and spawn options that put a child there.
  SpawnOptions step_of(std::uint32_t job, const JobLimits& limits) {
    auto made = groups_->create_job(job, limits);
    EXPECT_TRUE(made) << made.error().message;
    auto step = groups_->create_step(job, "0");
    EXPECT_TRUE(step) << step.error().message;
    SpawnOptions options;
    options.cgroup_procs = groups_->procs_files(job, "0");
    EXPECT_FALSE(options.cgroup_procs.empty());
    return options;
  }
  CgroupLayout layout_;
  std::unique_ptr<Cgroups> groups_;
};

// On every version this machine has (a hybrid one has both), and what needs a controller that
// only one of them can have, on the one that would be taken.
class CgroupsOn : public CgroupsTest, public testing::WithParamInterface<CgroupVersion> {
 protected:
  void SetUp() override { open({.only = GetParam()}); }
};
class CgroupsHere : public CgroupsTest {
 protected:
  void SetUp() override { open({}); }
};

std::vector<CgroupVersion> versions_here() {
  std::vector<CgroupVersion> versions;
  for (auto version : {CgroupVersion::kV1, CgroupVersion::kV2}) {
    if (probe_cgroups({.only = version}).version == version) versions.push_back(version);
  }
  return versions;
}
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CgroupsOn);
INSTANTIATE_TEST_SUITE_P(Version, CgroupsOn, testing::ValuesIn(versions_here()),
                         [](const auto& info) { return std::string(enum_name(info.param)); });

TEST_P(CgroupsOn, NamesWhatIsMissing) {
  const auto& features = groups_->features();
  const int absent = !features.cpu + !features.memory + !features.pids + !features.devices +
                     !features.freezer + !features.cpuset + !features.kill;
  if (absent > 0) {
    EXPECT_FALSE(features.missing.empty());
  }
  RecordProperty("missing", missing_text(layout_));
  EXPECT_EQ(from_json<CgroupLayout>(to_json(layout_)).value(), layout_);
}

TEST_P(CgroupsOn, ARankOpensOnlyTheGpuItHoldsAlsoWhenItMakesTheNode) {
  if (!groups_->features().devices) GTEST_SKIP() << missing_text(layout_);
  if (::geteuid() != 0) GTEST_SKIP() << "making device nodes needs root";
  // 8 declared GPUs, the job holds number 0. No driver has major 195 or 240 here.
  const unsigned major = 240;
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("tutti-{}", ::getpid());
  std::filesystem::create_directory(folder);
  JobLimits limits;
  limits.devices = standard_devices();
  limits.devices->push_back({'c', major, 0, "rw"});
  auto options = step_of(7, limits);
  const auto path = [&](int i) { return (folder / fmt::format("gpu{}", i)).string(); };
  for (unsigned i = 0; i < 8; ++i) {
    auto seen = run_helper({"make", path(i), std::to_string(major), std::to_string(i)}, options);
    ASSERT_TRUE(seen) << seen.error().message;
    EXPECT_EQ(*seen, i == 0 ? "OK\nENXIO\n" : "OK\nEPERM\n") << i;
    // The same node outside of the group: no driver answers, but nothing forbids it.
    EXPECT_EQ(run_helper({"open", path(i)}).value(), "ENXIO\n");
  }
  EXPECT_EQ(
      run_helper({"open", "/dev/null", "/dev/zero", "/dev/full", "/dev/ptmx"}, options).value(),
      "OK\nOK\nOK\nOK\n");
  EXPECT_EQ(run_helper({"open", "/dev/kmsg"}, options).value(), "EPERM\n");
  std::filesystem::remove_all(folder);
}

TEST_P(CgroupsOn, AForkBombIsEndedAndTheGroupIsNotReused) {
  if (!groups_->features().kill) GTEST_SKIP() << missing_text(layout_);
  JobLimits limits;
  limits.pids_max = 200;
  auto options = step_of(8, limits);
  auto bomb = start_helper({"bomb"}, options);
  ASSERT_TRUE(bomb) << bomb.error().message;
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  while (groups_->processes(8, "0").value().size() < 50 &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_FALSE(groups_->is_empty(8, "0").value());
  EXPECT_FALSE(groups_->is_empty(8, "").value());
  auto busy = groups_->create_job(8, limits);
  ASSERT_FALSE(busy) << "a name whose processes live cannot be taken again";
  EXPECT_EQ(busy.error().code, ErrorCode::kConflict);
  EXPECT_EQ(groups_->remove_job(8).error().code, ErrorCode::kConflict);
  auto killed = groups_->kill_all(8, "0", {});
  EXPECT_TRUE(killed) << killed.error().message;
  ::waitpid(bomb->process.pid, nullptr, 0);
  EXPECT_TRUE(groups_->is_empty(8, "").value());
  EXPECT_EQ(groups_->create_step(8, "0").error().code, ErrorCode::kConflict);
  auto removed = groups_->remove_job(8);
  EXPECT_TRUE(removed) << removed.error().message;
  EXPECT_TRUE(groups_->jobs().empty());
  // After removal the name is free again and the new group works.
  options = step_of(8, limits);
  EXPECT_EQ(run_helper({"open", "/dev/null"}, options).value(), "OK\n");
}

TEST_P(CgroupsOn, ASupervisorCanEndAllOfItsStepButItself) {
  auto options = step_of(9, {});
  options.program = "/bin/sh";
  options.arguments = {"sh", "-c", "(setsid sleep 100 &) ; sleep 100 & sleep 100 & sleep 100"};
  options.environment = {"PATH=/bin:/usr/bin"};
  auto supervisor = spawn(options);
  ASSERT_TRUE(supervisor);
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  while (groups_->processes(9, "0").value().size() < 5 &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  ::kill(supervisor->pid, SIGSTOP);
  EXPECT_EQ(groups_->processes(9, "0").value().size(), 5U);
  auto killed = groups_->kill_all(9, "0", {.except = supervisor->pid});
  EXPECT_TRUE(killed) << killed.error().message;
  EXPECT_EQ(groups_->processes(9, "0").value(), std::vector{supervisor->pid});
}

TEST_P(CgroupsOn, AttachMovesAProcessAndAnotherObjectSeesTheSameGroups) {
  ASSERT_TRUE(groups_->create_job(10, {}));
  ASSERT_TRUE(groups_->create_step(10, "batch"));
  SpawnOptions options;
  options.program = "/bin/sleep";
  options.arguments = {"sleep", "100"};
  auto process = spawn(options);
  ASSERT_TRUE(process);
  auto attached = groups_->attach(10, "batch", process->pid);
  EXPECT_TRUE(attached) << attached.error().message;
  auto again = open_cgroups(layout_, fmt::format("test{}", ::getpid()), "node01");
  EXPECT_EQ(again->jobs(), std::vector<std::uint32_t>{10});
  EXPECT_EQ(again->processes(10, "batch").value(), std::vector{process->pid});
  EXPECT_FALSE(groups_->attach(10, "other", process->pid)) << "there is no such step";
  EXPECT_TRUE(again->kill_all(10, "batch", {}));
  ::waitpid(process->pid, nullptr, 0);
  EXPECT_TRUE(again->is_empty(10, "batch").value());
  EXPECT_TRUE(again->remove_step(10, "batch"));
  EXPECT_TRUE(again->remove_step(10, "batch")) << "twice is not an error";
}

// A sanitizer needs memory of its own in the program that is limited.
#ifdef __SANITIZE_ADDRESS__
constexpr std::uint64_t kMemoryLimitMib = 512;
#else
constexpr std::uint64_t kMemoryLimitMib = 64;
#endif

TEST_F(CgroupsHere, MemoryLimitEndsTheEaterAndIsCounted) {
  if (!groups_->features().memory) GTEST_SKIP() << missing_text(layout_);
  JobLimits limits;
  limits.memory_mib = kMemoryLimitMib;
  auto options = step_of(11, limits);
  EXPECT_EQ(run_helper({"eat", "16"}, options).value(), "eaten\n");
  const auto usage = groups_->usage(11);
  EXPECT_EQ(usage.oom_kills, 0U);
  EXPECT_GE(usage.memory_peak_bytes.value_or(0), 16U << 20);
  int status = 0;
  EXPECT_EQ(run_helper({"eat", std::to_string(4 * kMemoryLimitMib)}, options, &status).value(), "");
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  EXPECT_GE(groups_->usage(11).oom_kills, 1U);
  EXPECT_LE(groups_->usage(11).memory_peak_bytes.value_or(0), kMemoryLimitMib << 20);
}

TEST_P(CgroupsOn, CpuTimeIsCountedWhenAskedFor) {
  JobLimits limits;
  limits.account_cpu = true;
  auto options = step_of(12, limits);
  ASSERT_TRUE(run_helper({"spin", "30"}, options));
  const auto usage = groups_->usage(12);
  ASSERT_TRUE(usage.cpu_ns.has_value());
  EXPECT_GE(*usage.cpu_ns, 25'000'000U);
}

TEST_F(CgroupsHere, CpusAreBound) {
  if (!groups_->features().cpuset) GTEST_SKIP() << missing_text(layout_);
  JobLimits limits;
  limits.cpus = "0";
  auto options = step_of(13, limits);
  options.program = "/bin/grep";
  options.arguments = {"grep", "-q", "Cpus_allowed_list:.0$", "/proc/self/status"};
  auto process = spawn(options);
  ASSERT_TRUE(process) << process.error().message;
  int status = 0;
  ::waitpid(process->pid, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(CgroupsHere, ARefusedLimitLeavesNothing) {
  if (!groups_->features().cpuset) GTEST_SKIP() << missing_text(layout_);
  JobLimits limits;
  limits.cpus = "4096";
  auto refused = groups_->create_job(14, limits);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("'4096'"), std::string::npos) << refused.error().message;
  EXPECT_TRUE(groups_->jobs().empty());
}

// Not an assertion (no wall time is asserted): the cost this header speaks of, for the reader.
TEST_P(CgroupsOn, PrintsItsCost) {
  JobLimits limits;
  limits.memory_mib = 1000;
  limits.pids_max = 1000;
  limits.devices = standard_devices();
  limits.devices->push_back({'c', 240, 0, "rw"});
  const auto cpu_us = [] {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec * 1e6 + time.tv_nsec / 1e3;
  };
  constexpr int kRounds = 50;
  double create = 0;
  double attach = 0;
  double remove = 0;
  for (int i = 0; i < kRounds; ++i) {
    SpawnOptions options;
    options.program = "/bin/sleep";
    options.arguments = {"sleep", "100"};
    auto process = spawn(options);
    ASSERT_TRUE(process);
    double at = cpu_us();
    ASSERT_TRUE(groups_->create_job(20, limits));
    ASSERT_TRUE(groups_->create_step(20, "batch"));
    create += cpu_us() - at;
    at = cpu_us();
    ASSERT_TRUE(groups_->attach(20, "batch", process->pid));
    attach += cpu_us() - at;
    ::kill(process->pid, SIGKILL);
    ::waitpid(process->pid, nullptr, 0);
    at = cpu_us();
    ASSERT_TRUE(groups_->remove_job(20));
    remove += cpu_us() - at;
  }
  std::printf(
      "             cgroup %s, one job with one step: create %.0f, attach %.0f, remove "
      "%.0f us of CPU\n",
      std::string(enum_name(GetParam())).c_str(), create / kRounds, attach / kRounds,
      remove / kRounds);
}

TEST(CgroupProbe, UnderstandsSharedMountsAndContainersWithoutNamespace) {
  // Two controllers in one tree, and a mount that shows only the container's part of it.
  const auto proc = std::filesystem::temp_directory_path() / fmt::format("proc-{}", ::getpid());
  const auto tree = proc / "tree";
  std::filesystem::create_directories(proc / "self");
  std::filesystem::create_directories(tree / "inner");
  std::ofstream(proc / "self/mountinfo") << "30 20 0:30 /docker/abc " << tree.string()
                                         << " rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
                                         << "31 20 0:31 / /nowhere rw - tmpfs none rw\n";
  std::ofstream(proc / "self/cgroup") << "4:cpu,cpuacct:/docker/abc/inner\n3:memory:/x\n";
  const auto layout = probe_cgroups({.only = {}, .proc = proc.string()});
  EXPECT_EQ(layout.version, CgroupVersion::kV1);
  EXPECT_EQ(layout.hierarchies,
            (std::vector<CgroupHierarchy>{{{"cpu", "cpuacct"}, (tree / "inner").string()}}));
  EXPECT_NE(missing_text(layout).find("memory: no such cgroup is mounted"), std::string::npos);
  std::filesystem::remove_all(proc);
}

TEST(NoCgroups, EndsWhatItCanSee) {
  auto groups = open_cgroups({}, "x", "node01");
  EXPECT_FALSE(groups->features().kill);
  ASSERT_TRUE(groups->create_job(1, {}));
  ASSERT_TRUE(groups->create_step(1, "0"));
  SpawnOptions options;
  options.program = "/bin/sh";
  options.arguments = {"sh", "-c", "sleep 100 & sleep 100 & wait"};
  options.environment = {"PATH=/bin:/usr/bin"};
  auto process = spawn(options);
  ASSERT_TRUE(process);
  ASSERT_TRUE(groups->attach(1, "0", process->pid));
  EXPECT_FALSE(groups->is_empty(1, "0").value());
  EXPECT_TRUE(groups->kill_all(1, "0", {}));
  EXPECT_TRUE(groups->is_empty(1, "0").value());
  ::waitpid(process->pid, nullptr, 0);
}

TEST(DeviceFilter, EachRuleIsClosedByAnAnswer) {
  // 6 instructions of preparation, per rule 4 + one per number + 2, and 2 for "no".
  EXPECT_EQ(assemble_device_filter({}).size(), 8U);
  EXPECT_EQ(
      assemble_device_filter({{'c', 1, 3, "rw"}, {'c', 136, {}, "r"}, {'b', {}, {}, "m"}}).size(),
      8U + 8 + 7 + 6);
}

}  // namespace
}  // namespace tutti::agent
