#include "agent/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <thread>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace tutti::agent {

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = other.release();
  }
  return *this;
}

void Descriptor::reset() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

Result<std::string> read_small_file(const std::string& path) {
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail_errno(errno, path);
  std::string text;
  std::array<char, 4096> buffer;
  while (text.size() < (1U << 20)) {
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno(errno, path);
    if (n == 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return text;
}

namespace {

struct StatLine {
  char state = '?';
  pid_t parent = 0;
  std::uint64_t start_ticks = 0;
};

// /proc/PID/stat: the name in parentheses may hold anything, so parse after the last ')'.
std::optional<StatLine> read_stat(pid_t pid) {
  auto text = read_small_file(fmt::format("/proc/{}/stat", pid));
  if (!text) return std::nullopt;
  const auto close = text->rfind(')');
  if (close == std::string::npos) return std::nullopt;
  StatLine line;
  std::string_view rest(*text);
  rest.remove_prefix(close + 1);
  for (int field = 3; !rest.empty() && field <= 22; ++field) {
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    const auto word = rest.substr(0, rest.find(' '));
    if (field == 3 && !word.empty()) line.state = word.front();
    if (field == 4) std::from_chars(word.data(), word.data() + word.size(), line.parent);
    if (field == 22) std::from_chars(word.data(), word.data() + word.size(), line.start_ticks);
    rest.remove_prefix(word.size());
  }
  return line;
}

}  // namespace

Result<std::uint64_t> process_start_ticks(pid_t pid) {
  auto line = read_stat(pid);
  if (!line) return fail(ErrorCode::kNotFound, fmt::format("no process {}", pid));
  return line->start_ticks;
}

Result<ProcessRef> process_ref(pid_t pid) {
  auto ticks = process_start_ticks(pid);
  if (!ticks) return tl::unexpected(ticks.error());
  return ProcessRef{pid, *ticks};
}

bool is_alive(const ProcessRef& process) {
  if (!process) return false;
  auto line = read_stat(process.pid);
  return line && line->start_ticks == process.start_ticks && line->state != 'Z' &&
         line->state != 'X';
}

Result<Descriptor> open_process(const ProcessRef& process) {
  Descriptor fd(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
  if (!fd) {
    const int error = errno == ESRCH ? ENOENT : errno;
    return fail_errno(error, fmt::format("process {}", process.pid));
  }
  // The descriptor now pins whoever has the pid; is it the one that was meant?
  if (!is_alive(process)) {
    return fail(ErrorCode::kNotFound,
                fmt::format("process {} is gone (or its pid is another one's now)", process.pid));
  }
  return fd;
}

bool wait_for_exit(int pidfd, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd poll_entry{pidfd, POLLIN, 0};
    const int n = ::poll(&poll_entry, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (n > 0) return true;
    if (n == 0 && left.count() <= 0) return false;
    if (n < 0 && errno != EINTR) return false;
  }
}

Status stop_process(const ProcessRef& process, std::chrono::milliseconds grace) {
  auto fd = open_process(process);
  if (fd) {
    ::syscall(SYS_pidfd_send_signal, fd->get(), SIGTERM, nullptr, 0);
    if (!wait_for_exit(fd->get(), grace)) {
      ::syscall(SYS_pidfd_send_signal, fd->get(), SIGKILL, nullptr, 0);
      if (!wait_for_exit(fd->get(), std::chrono::seconds(5))) {
        return fail(ErrorCode::kUnavailable,
                    fmt::format("process {} does not die of SIGKILL", process.pid));
      }
    }
  }
  auto line = read_stat(process.pid);
  if (line && line->start_ticks == process.start_ticks) {
    // A zombie of ours is reaped; one of somebody else's is not our concern (ECHILD).
    ::waitpid(process.pid, nullptr, WNOHANG);
  }
  return {};
}

void close_from(int first) { ::syscall(SYS_close_range, static_cast<unsigned>(first), ~0U, 0U); }

std::vector<pid_t> descendants(pid_t pid) {
  std::vector<std::pair<pid_t, pid_t>> parents;  // (parent, child)
  DIR* dir = ::opendir("/proc");
  if (dir == nullptr) return {};
  while (const dirent* entry = ::readdir(dir)) {
    const std::string_view name = entry->d_name;
    pid_t child = 0;
    auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), child);
    if (error != std::errc() || end != name.data() + name.size()) continue;
    auto line = read_stat(child);
    if (line && line->state != 'Z' && line->state != 'X') parents.emplace_back(line->parent, child);
  }
  ::closedir(dir);
  std::sort(parents.begin(), parents.end());
  std::vector<pid_t> found;
  std::vector<pid_t> queue{pid};
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const auto begin = std::lower_bound(parents.begin(), parents.end(), std::pair(queue[i], 0));
    for (auto it = begin; it != parents.end() && it->first == queue[i]; ++it) {
      found.push_back(it->second);
      queue.push_back(it->second);
    }
  }
  return found;
}

Status kill_tree(pid_t pid, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  auto pause = std::chrono::milliseconds(1);
  while (true) {
    const auto found = descendants(pid);
    if (found.empty()) return {};
    for (pid_t child : found) ::kill(child, SIGKILL);
    if (std::chrono::steady_clock::now() >= deadline) {
      return fail(ErrorCode::kUnavailable,
                  fmt::format("processes below {} do not die: {}", pid, fmt::join(found, " ")));
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(20));
  }
}

namespace detail {

CloneStack::CloneStack() {
  void* memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (memory != MAP_FAILED) memory_ = memory;
}

CloneStack::~CloneStack() {
  if (memory_ == nullptr) return;
#ifdef __SANITIZE_ADDRESS__
  // A child that went on to another program never left its functions; to the sanitizer their
  // variables would seem to be there still for whoever is given this address next.
  __asan_unpoison_memory_region(memory_, kBytes);
#endif
  ::munmap(memory_, kBytes);
}

namespace {
int write_all(const char* path, const char* text, std::size_t size) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int error = ::write(fd, text, size) == static_cast<ssize_t>(size) ? 0 : errno;
  ::close(fd);
  return error;
}
// "INSIDE OUTSIDE 1" without malloc or locale: it runs between clone and exec.
int write_map(const char* path, unsigned inside, unsigned outside) {
  std::array<char, 48> text;
  char* end = std::to_chars(text.data(), text.data() + 16, inside).ptr;
  *end++ = ' ';
  end = std::to_chars(end, end + 16, outside).ptr;
  *end++ = ' ';
  *end++ = '1';
  return write_all(path, text.data(), static_cast<std::size_t>(end - text.data()));
}
}  // namespace

int write_id_maps(uid_t inside_uid, uid_t outside_uid, gid_t inside_gid, gid_t outside_gid) {
  if (int error = write_map("/proc/self/uid_map", inside_uid, outside_uid)) return error;
  // The kernel lets an unprivileged process map its gid only after giving up setgroups().
  if (int error = write_all("/proc/self/setgroups", "deny", 4); error && error != ENOENT) {
    return error;
  }
  return write_map("/proc/self/gid_map", inside_gid, outside_gid);
}

}  // namespace detail

namespace {

enum class Stage : int {
  kNone,
  kCgroup,
  kSession,
  kDescriptors,
  kLimits,
  kUserNamespace,
  kCredentials,
  kDirectory,
  kExec
};

// All that the child needs, prepared before: between clone and exec it shares our memory and must
// neither allocate nor take a lock.
struct ChildPlan {
  const SpawnOptions* options = nullptr;
  std::vector<char*> argv;
  std::vector<char*> envp;
  std::vector<std::pair<int, int>> moves;  // (source moved out of the way, target)
  int highest_target = -1;
  uid_t own_uid = 0;
  gid_t own_gid = 0;
  // The answer.
  Stage failed_at = Stage::kNone;
  std::size_t failed_index = 0;
  int error = 0;
};

int join_cgroups(ChildPlan& plan) {
  for (std::size_t i = 0; i < plan.options->cgroup_procs.size(); ++i) {
    plan.failed_index = i;
    const int fd = ::open(plan.options->cgroup_procs[i].c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return errno;
    const int error = ::write(fd, "0", 1) == 1 ? 0 : errno;
    ::close(fd);
    if (error) return error;
  }
  return 0;
}

int start_session(const ChildPlan& plan) {
  if (plan.options->new_session && ::setsid() < 0) return errno;
  if (plan.options->parent_death_signal &&
      ::prctl(PR_SET_PDEATHSIG, plan.options->parent_death_signal) < 0) {
    return errno;
  }
  return 0;
}

int place_descriptors(ChildPlan& plan) {
  // First out of the way of all targets, then each to its place, then close everything else.
  for (auto& [source, target] : plan.moves) {
    source = ::fcntl(source, F_DUPFD_CLOEXEC, plan.highest_target + 1);
    if (source < 0) return errno;
  }
  int next = 0;
  for (const auto& [source, target] : plan.moves) {
    if (::dup2(source, target) < 0) return errno;
    if (target > next) ::syscall(SYS_close_range, unsigned(next), unsigned(target - 1), 0U);
    next = std::max(next, target + 1);
  }
  ::syscall(SYS_close_range, static_cast<unsigned>(next), ~0U, CLOSE_RANGE_CLOEXEC);
  if (plan.options->controlling_terminal && ::ioctl(0, TIOCSCTTY, 0) < 0) return errno;
  return 0;
}

int set_limits(ChildPlan& plan) {
  for (std::size_t i = 0; i < plan.options->limits.size(); ++i) {
    plan.failed_index = i;
    const auto& entry = plan.options->limits[i];
    if (::syscall(SYS_prlimit64, 0, entry.resource, &entry.limit, nullptr) < 0) return errno;
  }
  if (plan.options->nice_increment) {
    errno = 0;
    if (::nice(plan.options->nice_increment) == -1 && errno) return errno;
  }
  return 0;
}

// Raw system calls: the C library's wrappers would change all threads of the parent.
int take_credentials(const Credentials& credentials) {
  if (::syscall(SYS_setgroups, credentials.groups.size(), credentials.groups.data()) < 0) {
    return errno;
  }
  const auto gid = credentials.gid;
  const auto uid = credentials.uid;
  if (::syscall(SYS_setresgid, gid, gid, gid) < 0) return errno;
  if (::syscall(SYS_setresuid, uid, uid, uid) < 0) return errno;
  return 0;
}

int enter_user_namespace(const ChildPlan& plan) {
  if (::unshare(CLONE_NEWUSER) < 0) return errno;
  const auto [uid, gid] = *plan.options->user_namespace;
  return detail::write_id_maps(uid, plan.own_uid, gid, plan.own_gid);
}

void default_signals() {
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) ::sigaction(number, &action, nullptr);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// What it returns is the exit code of the child.
int run_child(void* argument) {
  auto& plan = *static_cast<ChildPlan*>(argument);
  const auto& options = *plan.options;
  const auto failed = [&plan](Stage stage, int error) {
    if (!error) return false;
    plan.failed_at = stage;
    plan.error = error;
    return true;
  };
  if (failed(Stage::kCgroup, join_cgroups(plan))) return 127;
  if (failed(Stage::kSession, start_session(plan))) return 127;
  if (failed(Stage::kDescriptors, place_descriptors(plan))) return 127;
  if (failed(Stage::kLimits, set_limits(plan))) return 127;
  if (options.umask) ::umask(*options.umask);
  if (options.user_namespace && failed(Stage::kUserNamespace, enter_user_namespace(plan))) {
    return 127;
  }
  if (options.credentials && failed(Stage::kCredentials, take_credentials(*options.credentials))) {
    return 127;
  }
  // As the user, so that nobody learns of a directory that he may not see.
  if (!options.directory.empty() && ::chdir(options.directory.c_str()) < 0) {
    failed(Stage::kDirectory, errno);
    return 127;
  }
  default_signals();
  ::execve(options.program.c_str(), plan.argv.data(), plan.envp.data());
  failed(Stage::kExec, errno);
  return 127;
}

tl::unexpected<Error> describe_failure(const ChildPlan& plan) {
  const auto& options = *plan.options;
  std::string what;
  std::string reason;
  switch (plan.failed_at) {
    case Stage::kCgroup:
      what = "joining " + options.cgroup_procs[plan.failed_index];
      reason = "cgroup";
      break;
    case Stage::kSession:
      what = reason = "session";
      break;
    case Stage::kDescriptors:
      what = "passing descriptors";
      reason = "descriptors";
      break;
    case Stage::kLimits:
      what = options.limits.empty()
                 ? std::string("changing the nice value")
                 : fmt::format("resource limit {}", options.limits[plan.failed_index].resource);
      reason = "limits";
      break;
    case Stage::kUserNamespace:
      what = "user namespace";
      reason = "user_namespace";
      break;
    case Stage::kCredentials:
      what =
          fmt::format("becoming uid {} gid {}", options.credentials->uid, options.credentials->gid);
      reason = "credentials";
      break;
    case Stage::kDirectory:
      what = "chdir " + options.directory;
      reason = "chdir";
      break;
    case Stage::kExec:
    case Stage::kNone:
      what = "exec " + options.program;
      reason = "exec";
      break;
  }
  auto error = fail_errno(plan.error, what);
  error.value().reason = reason;
  return error;
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  // execve() takes char* for historical reasons and changes nothing.
  for (const auto& string : strings) result.push_back(const_cast<char*>(string.c_str()));
  result.push_back(nullptr);
  return result;
}

}  // namespace

Result<SpawnedProcess> spawn(const SpawnOptions& options) {
  ChildPlan plan;
  plan.options = &options;
  plan.argv = pointers(options.arguments);
  plan.envp = pointers(options.environment);
  for (const auto& move : options.descriptors) {
    std::erase_if(plan.moves, [&](const auto& other) { return other.second == move.second; });
    plan.moves.push_back(move);
    plan.highest_target = std::max(plan.highest_target, move.second);
  }
  std::sort(plan.moves.begin(), plan.moves.end(),
            [](const auto& a, const auto& b) { return a.second < b.second; });
  plan.own_uid = ::geteuid();
  plan.own_gid = ::getegid();

  const detail::CloneStack stack;
  if (stack.top() == nullptr) return fail_errno(errno, "stack of a new process");
  // Taking other ids makes the shared memory undumpable, which guards it while the child has it.
  const int dumpable = ::prctl(PR_GET_DUMPABLE);
  // No handler of ours may run in the child while it shares our memory.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  int pidfd = -1;
  const pid_t pid = ::clone(run_child, stack.top(), CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD,
                            &plan, &pidfd);
  const int clone_error = errno;
  if (options.credentials && dumpable == 1) ::prctl(PR_SET_DUMPABLE, 1);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) {
    auto error = fail_errno(clone_error, "starting " + options.program);
    error.value().reason = "clone";
    return error;
  }
  SpawnedProcess process{pid, Descriptor(pidfd)};
  if (plan.failed_at != Stage::kNone) {
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    return describe_failure(plan);
  }
  return process;
}

}  // namespace tutti::agent
