#include "agent/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tutti::agent {
namespace {

using namespace std::chrono_literals;

struct Finished {
  int status = 0;
  std::string output;
};

// Runs `sh -c SCRIPT` with its output in a pipe.
Result<Finished> run_shell(const std::string& script, SpawnOptions options = {}) {
  int pipe_fds[2];
  if (::pipe2(pipe_fds, O_CLOEXEC) < 0) return fail_errno(errno, "pipe");
  Descriptor reader(pipe_fds[0]);
  Descriptor writer(pipe_fds[1]);
  options.program = "/bin/sh";
  options.arguments = {"sh", "-c", script};
  options.descriptors.emplace_back(writer.get(), 1);
  auto process = spawn(options);
  if (!process) return tl::unexpected(process.error());
  writer.reset();
  Finished finished;
  char buffer[512];
  ssize_t n;
  while ((n = ::read(reader.get(), buffer, sizeof buffer)) > 0) {
    finished.output.append(buffer, static_cast<std::size_t>(n));
  }
  ::waitpid(process->pid, &finished.status, 0);
  return finished;
}

TEST(Spawn, PassesExactlyArgumentsEnvironmentAndDescriptors) {
  SpawnOptions options;
  options.environment = {"ONLY=this"};
  options.directory = "/usr";
  options.umask = 027;
  Descriptor open_here(::open("/dev/null", O_RDONLY));  // inheritable; must not arrive
  options.descriptors = {{open_here.get(), 0}, {open_here.get(), 7}};
  // 2 is the shell's own, for reading the folder.
  auto result = run_shell("echo $ONLY; pwd; umask; echo /proc/self/fd/*; exit 3", options);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(WEXITSTATUS(result->status), 3);
  EXPECT_EQ(result->output,
            "this\n/usr\n0027\n/proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 /proc/self/fd/7\n");
}

TEST(Spawn, SwapsDescriptorsThatAreEachOthersTargets) {
  Descriptor a(::open("/dev/null", O_RDONLY));
  Descriptor b(::open("/dev/zero", O_RDONLY));
  SpawnOptions options;
  options.descriptors = {{a.get(), b.get()}, {b.get(), a.get()}};
  auto result = run_shell(
      fmt::format("readlink /proc/self/fd/{} /proc/self/fd/{}", a.get(), b.get()), options);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->output, "/dev/zero\n/dev/null\n");
}

TEST(Spawn, StartsWithACleanSignalStateInItsOwnSession) {
  struct sigaction ignore{};
  struct sigaction before{};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGUSR1, &ignore, &before);
  auto result = run_shell("grep -E 'Sig(Blk|Ign)' /proc/self/status; ps -o sid= -p $$");
  ::sigaction(SIGUSR1, &before, nullptr);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_NE(result->output.find("SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000"),
            std::string::npos)
      << result->output;
}

TEST(Spawn, SaysWhichStepFailedAndLeavesNoChild) {
  SpawnOptions options;
  options.program = "/nowhere/program";
  options.arguments = {"program"};
  auto missing = spawn(options);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().reason, "exec");
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(missing.error().message, "exec /nowhere/program: No such file or directory");
  options.program = "/bin/true";
  options.directory = "/nowhere";
  auto directory = spawn(options);
  ASSERT_FALSE(directory);
  EXPECT_EQ(directory.error().message, "chdir /nowhere: No such file or directory");
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(Spawn, TakesCredentialsAndLimits) {
  if (::geteuid() != 0) GTEST_SKIP() << "changing the user needs root";
  SpawnOptions options;
  options.credentials = Credentials{65534, 65533, {65531, 65532}};
  options.limits = {{RLIMIT_NOFILE, {77, 88}}};
  auto result = run_shell("id -u; id -g; id -G; ulimit -Sn; ulimit -Hn", options);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->output, "65534\n65533\n65533 65531 65532\n77\n88\n");
  EXPECT_EQ(::geteuid(), 0U) << "the parent must not change with the child";
}

TEST(Process, ARefOfADeadProcessIsNotAlive) {
  SpawnOptions options;
  options.program = "/bin/sleep";
  options.arguments = {"sleep", "100"};
  auto process = spawn(options);
  ASSERT_TRUE(process);
  auto ref = process_ref(process->pid);
  ASSERT_TRUE(ref);
  EXPECT_TRUE(is_alive(*ref));
  EXPECT_FALSE(is_alive({ref->pid, ref->start_ticks + 1}));
  EXPECT_FALSE(open_process({ref->pid, ref->start_ticks + 1}));
  EXPECT_FALSE(wait_for_exit(process->pidfd.get(), 0ms));
  ASSERT_TRUE(stop_process(*ref, 1s));
  EXPECT_FALSE(is_alive(*ref));
  EXPECT_FALSE(open_process(*ref));
  EXPECT_TRUE(stop_process(*ref, 1s)) << "stopping twice is not an error";
  EXPECT_EQ(::waitpid(ref->pid, nullptr, WNOHANG), -1) << "it was not reaped";
}

TEST(Process, KillTreeEndsGrandchildrenAndNotTheRoot) {
  SpawnOptions options;
  options.program = "/bin/sh";
  options.arguments = {"sh", "-c", "(sleep 100 & sleep 100 & wait) & sleep 100 & wait; sleep 100"};
  options.environment = {"PATH=/bin:/usr/bin"};
  auto process = spawn(options);
  ASSERT_TRUE(process);
  const auto deadline = std::chrono::steady_clock::now() + 5s;
  while (descendants(process->pid).size() < 4 && std::chrono::steady_clock::now() < deadline) {
    ::usleep(1000);
  }
  const auto tree = descendants(process->pid);
  EXPECT_EQ(tree.size(), 4U);
  ::kill(process->pid, SIGSTOP);  // so that it starts nothing new
  EXPECT_TRUE(kill_tree(process->pid, 5s));
  EXPECT_TRUE(descendants(process->pid).empty());
  EXPECT_EQ(::kill(process->pid, 0), 0);
  ::kill(process->pid, SIGKILL);
  ::waitpid(process->pid, nullptr, 0);
}

}  // namespace
}  // namespace tutti::agent
