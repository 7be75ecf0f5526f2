#include "agent/step_launch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <map>

#include "agent/output_pattern.h"
#include "agent/rank_environment.h"
#include "base/text.h"

namespace tutti::agent {
namespace {

Refusal job_refusal(std::string reason, int code) {
  return Refusal{std::move(reason), true, ExitStatus{code, 0}};
}

// What Slurm's step daemon returns for a file it cannot open: killed by "signal 53".
Refusal file_refusal(std::string_view stream, const std::string& path, int error) {
  return Refusal{fmt::format("Could not open {} file {}: {}", stream, path, std::strerror(error)),
                 true, ExitStatus{0, 53}};
}

// Opens each path once, so that streams and ranks that name the same file share its position.
class StreamOpener {
 public:
  StreamOpener(const SupervisorOrder& order, LaunchPlan& plan) : order_(order), plan_(plan) {}

  tl::expected<int, Refusal> open(std::string_view stream, const StreamTarget& target,
                                  std::uint32_t rank) {
    if (target.only_rank && *target.only_rank != rank) return kNoStream;
    if (target.kind == StreamKind::kNull) return kNoStream;
    if (target.kind == StreamKind::kAttached) return kAttachedStream;
    const PatternValues values{&order_.job, &order_.step, order_.node, rank};
    const std::string path =
        absolute_path(order_.step.work_dir, expand_pattern(target.path, values));
    if (path == "/dev/null") return kNoStream;
    const bool reading = stream == "stdin";
    if (!reading) {
      if (const auto found = outputs_.find(path); found != outputs_.end()) return found->second;
    }
    // Appending in both cases: several ranks, nodes or jobs may write to one file.
    const int flags =
        reading ? O_RDONLY : O_WRONLY | O_CREAT | O_APPEND | (order_.step.append ? 0 : O_TRUNC);
    // O_NONBLOCK: a FIFO that nobody reads must not stop the supervisor.
    Descriptor file(::open(path.c_str(), flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666));
    if (!file) return tl::unexpected(file_refusal(stream, path, errno));
    ::fcntl(file.get(), F_SETFL, ::fcntl(file.get(), F_GETFL) & ~O_NONBLOCK);
    const int fd = file.get();
    if (!reading) outputs_.emplace(path, fd);
    plan_.files.push_back(std::move(file));
    return fd;
  }

 private:
  const SupervisorOrder& order_;
  LaunchPlan& plan_;
  std::map<std::string, int> outputs_;
};

tl::expected<void, Refusal> open_streams(const SupervisorOrder& order, LaunchPlan& plan) {
  const StepOrder& step = order.step;
  StreamOpener opener(order, plan);
  const bool err_is_out = step.err.kind == StreamKind::kNull && step.err.path.empty();
  for (const std::uint32_t rank : step.ranks) {
    RankStreams streams;
    // Under a terminal only the first rank is connected, as with Slurm.
    const bool silent = step.pty && rank != 0;
    if (!silent) {
      auto out = opener.open("stdout", step.out, rank);
      if (!out) return tl::unexpected(out.error());
      streams.out = *out;
      streams.err_is_out = err_is_out;
      streams.err = *out;
      if (!err_is_out) {
        auto err = opener.open("stderr", step.err, rank);
        if (!err) return tl::unexpected(err.error());
        streams.err = *err;
      }
      auto in = opener.open("stdin", step.in, rank);
      if (!in) return tl::unexpected(in.error());
      streams.in = *in;
    }
    plan.streams.push_back(streams);
  }
  for (const auto& streams : plan.streams) {
    if (plan.notes_file == kNoStream) plan.notes_file = streams.err;
  }
  return {};
}

// An error of errno if the file names an interpreter that is not there (`interpreter` says which);
// the kernel would say the same, but only after the go.
int check_interpreter(const std::string& program, std::string& interpreter) {
  Descriptor file(::open(program.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return 0;  // may be executable and not readable
  std::array<char, 256> head{};
  const ssize_t n = ::read(file.get(), head.data(), head.size());
  std::string_view line(head.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
  if (!line.starts_with("#!")) return 0;
  line =
      line.substr(2, line.find('\n') == std::string_view::npos ? line.size() : line.find('\n') - 2);
  line = trim(line);
  interpreter = std::string(line.substr(0, line.find_first_of(" \t")));
  if (interpreter.empty()) return ENOEXEC;
  return ::access(interpreter.c_str(), X_OK) == 0 ? 0 : errno;
}

tl::expected<void, Refusal> find_program(const SupervisorOrder& order, LaunchPlan& plan) {
  const StepOrder& step = order.step;
  if (!step.script.empty()) {
    plan.program = order.directory + "/slurm_script";
    Descriptor file(
        ::open(plan.program.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0700));
    std::size_t done = 0;
    while (file && done < step.script.size()) {
      const ssize_t n = ::write(file.get(), step.script.data() + done, step.script.size() - done);
      if (n < 0 && errno != EINTR) break;
      if (n > 0) done += static_cast<std::size_t>(n);
    }
    if (done < step.script.size()) {
      return tl::unexpected(
          Refusal{fmt::format("{}: {}", plan.program, std::strerror(errno)), false, {}});
    }
    ::fchmod(file.get(), 0700);  // whatever the job's umask
    plan.argv.push_back(plan.program);
    plan.argv.insert(plan.argv.end(), step.argv.begin(), step.argv.end());
  } else {
    if (step.argv.empty()) return tl::unexpected(job_refusal("execve(): no command", 2));
    plan.argv = step.argv;
    auto [program, error] = resolve_program(plan.argv[0], find_variable(step.environment, "PATH"));
    if (error != 0) {
      return tl::unexpected(
          job_refusal(fmt::format("execve(): {}: {}", plan.argv[0], std::strerror(error)), error));
    }
    plan.program = program;
  }
  std::string interpreter;
  if (const int error = check_interpreter(plan.program, interpreter); error != 0) {
    // Not the script's own path: it is a copy in a folder that the user does not know.
    return tl::unexpected(job_refusal(
        fmt::format("execve(): bad interpreter({}): {}", interpreter, std::strerror(error)),
        error));
  }
  return {};
}

}  // namespace

Status CgroupMove::start(const std::vector<std::string>& procs_files) {
  if (procs_files.empty()) return {};
  const std::string pid = fmt::to_string(::getpid());
  mover_ = ::fork();
  if (mover_ < 0) return fail_errno(errno, "forking");
  if (mover_ > 0) return {};
  for (const auto& path : procs_files) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file < 0 || ::write(file, pid.data(), pid.size()) < 0) ::_exit(errno);
    ::close(file);
  }
  ::_exit(0);
}

Status CgroupMove::finish() {
  if (mover_ <= 0) return {};
  int status = 0;
  while (::waitpid(mover_, &status, 0) < 0 && errno == EINTR) {
  }
  mover_ = 0;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return fail_errno(WIFEXITED(status) ? WEXITSTATUS(status) : EINTR, "joining the step's cgroup");
}

Status become_user(const JobFacts& job, const std::vector<std::uint32_t>& groups) {
  const std::vector<gid_t> all = groups.empty() ? std::vector<gid_t>{job.gid} : std::vector<gid_t>(groups.begin(), groups.end());
  if (::setgroups(all.size(), all.data()) != 0) return fail_errno(errno, "setting the groups of the job's user");
  if (::setresgid(job.gid, job.gid, job.gid) != 0) {
    return fail_errno(errno, fmt::format("becoming gid {}", job.gid));
  }
  if (::setresuid(job.uid, job.uid, job.uid) != 0) {
    return fail_errno(errno, fmt::format("becoming uid {}", job.uid));
  }
  ::prctl(PR_SET_DUMPABLE, 1);
  return {};
}

std::pair<std::string, int> resolve_program(const std::string& name, std::string_view path) {
  const auto check = [](const std::string& candidate) {
    struct stat status{};
    if (::stat(candidate.c_str(), &status) != 0) return errno;
    if (S_ISDIR(status.st_mode)) return EACCES;
    return ::access(candidate.c_str(), X_OK) == 0 ? 0 : errno;
  };
  if (name.empty()) return {name, ENOENT};
  if (name.find('/') != std::string::npos) return {name, check(name)};
  if (path.data() == nullptr) path = "/usr/local/bin:/usr/bin:/bin";
  int result = ENOENT;
  for (const std::string_view directory : split(path, ':')) {
    const std::string candidate =
        directory.empty() ? "./" + name : fmt::format("{}/{}", directory, name);
    const int error = check(candidate);
    if (error == 0) return {candidate, 0};
    if (error == EACCES) result = EACCES;
  }
  return {name, result};
}

std::vector<ResourceLimit> fit_limits(const std::vector<Rlimit>& wanted,
                                      std::vector<std::string>& notes) {
  static constexpr std::array<std::pair<std::string_view, int>, 10> kNames{
      {{"cpu", RLIMIT_CPU},
       {"fsize", RLIMIT_FSIZE},
       {"data", RLIMIT_DATA},
       {"stack", RLIMIT_STACK},
       {"core", RLIMIT_CORE},
       {"rss", RLIMIT_RSS},
       {"nproc", RLIMIT_NPROC},
       {"nofile", RLIMIT_NOFILE},
       {"memlock", RLIMIT_MEMLOCK},
       {"as", RLIMIT_AS}}};
  std::vector<ResourceLimit> limits;
  for (const auto& limit : wanted) {
    const auto* found = std::find_if(kNames.begin(), kNames.end(),
                                     [&](const auto& entry) { return entry.first == limit.name; });
    if (found == kNames.end()) {
      notes.push_back(fmt::format("resource limit {} is not known here", quote(limit.name)));
      continue;
    }
    rlimit now{};
    ::getrlimit(static_cast<__rlimit_resource_t>(found->second), &now);
    rlim_t value = limit.value;
    if (now.rlim_max != RLIM_INFINITY && value > now.rlim_max) {
      notes.push_back(
          fmt::format("Can't propagate RLIMIT_{} of {} from submit host: the hard "
                      "limit on this node is {}, which is used",
                      upper(limit.name),
                      value == RLIM_INFINITY ? "unlimited" : fmt::to_string(value), now.rlim_max));
      value = now.rlim_max;
    }
    limits.push_back({found->second, rlimit{value, now.rlim_max}});
  }
  return limits;
}

tl::expected<LaunchPlan, Refusal> plan_launch(const SupervisorOrder& order) {
  const StepOrder& step = order.step;
  LaunchPlan plan;
  ::umask(step.umask);
  if (!step.work_dir.empty() && ::chdir(step.work_dir.c_str()) != 0) {
    plan.notes.push_back(fmt::format("couldn't chdir to `{}': {}: going to /tmp instead",
                                     step.work_dir, std::strerror(errno)));
    if (::chdir("/tmp") != 0) {
      return tl::unexpected(
          Refusal{fmt::format("chdir to /tmp: {}", std::strerror(errno)), false, {}});
    }
  }
  if (auto opened = open_streams(order, plan); !opened) return tl::unexpected(opened.error());
  plan.limits = fit_limits(step.limits, plan.notes);
  if (auto found = find_program(order, plan); !found) {
    // Where the owner of a script looks: in its output file.
    if (plan.notes_file >= 0) {
      const std::string line =
          fmt::format("slurmstepd-{}: error: {}\n", order.node, found.error().reason);
      [[maybe_unused]] const ssize_t n = ::write(plan.notes_file, line.data(), line.size());
    }
    return tl::unexpected(found.error());
  }
  return plan;
}

}  // namespace tutti::agent
