#include "agent/step_ranks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "agent/rank_environment.h"

namespace tutti::agent {
namespace {

struct ExecReport {
  std::uint32_t local = 0;
  std::int32_t error = 0;
};

// Signals that the supervisor ignores or blocks are as after a login in the rank.
void reset_signals() {
  for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGPIPE, SIGQUIT, SIGCHLD}) {
    ::signal(signal, SIG_DFL);
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// While it lives, the signals that end a process are blocked with their default action: one sent to
// a rank that was forked but has not got to reset_signals() yet waits for it instead of being
// ignored as the supervisor ignores it.
class EndingSignalsWait {
 public:
  EndingSignalsWait() {
    sigset_t mask;
    sigemptyset(&mask);
    for (const int signal : kSignals) sigaddset(&mask, signal);
    ::sigprocmask(SIG_BLOCK, &mask, &before_);
    for (std::size_t i = 0; i < kSignals.size(); ++i) handlers_[i] = ::signal(kSignals[i], SIG_DFL);
  }
  ~EndingSignalsWait() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) ::signal(kSignals[i], handlers_[i]);
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  EndingSignalsWait(const EndingSignalsWait&) = delete;
  EndingSignalsWait& operator=(const EndingSignalsWait&) = delete;

 private:
  static constexpr std::array<int, 4> kSignals{SIGHUP, SIGINT, SIGTERM, SIGQUIT};
  std::array<sighandler_t, 4> handlers_{};
  sigset_t before_{};
};

// A job out of memory loses a rank, not the supervisor that reports it. Where the supervisor could
// not protect itself (that needs CAP_SYS_RESOURCE) its ranks are made the better victims: half the
// memory limit is more than a supervisor ever has.
void set_oom_score(std::string_view score) {
  Descriptor file(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  if (file) [[maybe_unused]]
    const ssize_t n = ::write(file.get(), score.data(), score.size());
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (auto& string : strings) result.push_back(string.data());
  result.push_back(nullptr);
  return result;
}

// The life of a rank before its program. `barrier` and `reports` are the child's ends.
[[noreturn]] void run_rank(const RankStart& start, const RankDescriptors& streams,
                           std::uint32_t local, int barrier, int reports) {
  // Should the supervisor be killed, its ranks go with it.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setsid();
  if (streams.terminal) ::ioctl(streams.in, TIOCSCTTY, 0);
  ::dup2(streams.in, 0);
  ::dup2(streams.out, 1);
  ::dup2(streams.err, 2);
  set_oom_score(start.reset_oom_score ? "0" : "500");
  for (const auto& limit : start.plan->limits) {
    ::setrlimit(static_cast<__rlimit_resource_t>(limit.resource), &limit.limit);
  }
  // In the directory of the job, which is above that of the step.
  const std::string& of_step = start.order->directory;
  const std::string notice_file = of_step.substr(0, of_step.rfind('/')) + "/notice.json";
  const RankIdentity identity{start.order->node, local, static_cast<std::uint32_t>(::getpid()),
                              start.notify_socket, notice_file};
  auto environment =
      rank_environment(start.order->job, start.order->slot, start.order->step, identity);
  auto arguments = start.plan->argv;
  const auto envp = pointers(environment);
  const auto argv = pointers(arguments);
  reset_signals();

  char token = 0;
  ssize_t n = 0;
  do {
    n = ::read(barrier, &token, 1);
  } while (n < 0 && errno == EINTR);
  if (n != 1) ::_exit(0);  // abandoned
  ::execve(start.plan->program.c_str(), argv.data(), envp.data());
  const ExecReport report{local, errno};
  [[maybe_unused]] const ssize_t written = ::write(reports, &report, sizeof report);
  ::_exit(report.error);
}

}  // namespace

Status StepRanks::fork_all(const RankStart& start,
                           const std::vector<RankDescriptors>& descriptors) {
  std::array<int, 2> barrier{};
  std::array<int, 2> reports{};
  if (::pipe2(barrier.data(), O_CLOEXEC) != 0) return fail_errno(errno, "pipe");
  Descriptor barrier_read(barrier[0]);
  barrier_ = Descriptor(barrier[1]);
  if (::pipe2(reports.data(), O_CLOEXEC) != 0) return fail_errno(errno, "pipe");
  exec_reports_ = Descriptor(reports[0]);
  Descriptor reports_write(reports[1]);
  ::fcntl(exec_reports_.get(), F_SETFL, O_NONBLOCK);
  command_ = start.plan->argv.empty() ? std::string() : start.plan->argv[0];
  // The batch script's copy is known to its user by no path.
  if (command_.ends_with("/slurm_script")) command_ = "slurm_script";

  const EndingSignalsWait ending_signals_wait;
  for (std::uint32_t local = 0; local < descriptors.size(); ++local) {
    const pid_t pid = ::fork();
    if (pid < 0) {
      auto error =
          fail_errno(errno, fmt::format("forking rank {}", start.order->step.ranks[local]));
      abandon();
      return error;
    }
    if (pid == 0) {
      // Else the barrier would not notice that the supervisor is gone.
      ::close(barrier[1]);
      run_rank(start, descriptors[local], local, barrier[0], reports[1]);
    }
    ranks_.push_back(Rank{pid, false, 0});
    statuses_.push_back(RankStatus{start.order->step.ranks[local], {}, {}});
  }
  return {};
}

void StepRanks::release() {
  if (released_) return;
  released_ = true;
  const std::string tokens(ranks_.size(), 'g');
  [[maybe_unused]] const ssize_t n = ::write(barrier_.get(), tokens.data(), tokens.size());
  barrier_.reset();
}

void StepRanks::abandon() { barrier_.reset(); }

bool StepRanks::on_exec_report() {
  while (true) {
    ExecReport report;
    const ssize_t n = ::read(exec_reports_.get(), &report, sizeof report);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return false;
    if (n != sizeof report) {
      exec_reports_.reset();
      return true;
    }
    if (report.local >= ranks_.size()) continue;
    ranks_[report.local].exec_error = report.error;
    statuses_[report.local].message =
        fmt::format("execve(): {}: {}", command_, std::strerror(report.error));
  }
}

StepRanks::Reaped StepRanks::reap() {
  Reaped result;
  while (true) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, WNOHANG | __WALL);
    if (pid < 0 && errno == EINTR) continue;
    if (pid < 0) result.none_left = true;
    if (pid <= 0) break;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      if (ranks_[i].pid != pid || ranks_[i].ended) continue;
      ranks_[i].ended = true;
      ++ended_;
      statuses_[i].exit = WIFSIGNALED(status) ? ExitStatus{0, WTERMSIG(status)}
                                              : ExitStatus{WEXITSTATUS(status), 0};
      result.ranks.push_back(i);
      break;
    }
  }
  return result;
}

void StepRanks::signal_ranks(int signal, bool groups) const {
  for (const auto& rank : ranks_) {
    // Not yet reaped, so the pid is still this rank's; its session has made it a group leader, or
    // will have before it can run.
    if (rank.ended) continue;
    if (!groups || ::kill(-rank.pid, signal) != 0) ::kill(rank.pid, signal);
  }
}

void StepRanks::signal_tree(int signal) {
  for (const pid_t pid : descendants(::getpid())) ::kill(pid, signal);
}

std::vector<std::uint32_t> StepRanks::pids() const {
  std::vector<std::uint32_t> pids;
  for (const auto& rank : ranks_) pids.push_back(static_cast<std::uint32_t>(rank.pid));
  return pids;
}

ExitStatus StepRanks::worst() const {
  const auto weight = [](const ExitStatus& exit) {
    return exit.signal != 0 ? 128 + exit.signal : exit.code;
  };
  ExitStatus worst;
  for (const auto& status : statuses_) {
    if (weight(status.exit) > weight(worst)) worst = status.exit;
  }
  return worst;
}

}  // namespace tutti::agent
