// Processes: starting one without fork(), naming one so that a re-used pid is noticed, waiting for
// one, and finding and ending a tree of them. Owns nothing but what a caller holds in Descriptor.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace tutti::agent {

// An open file descriptor, closed at the end of its life. -1 = none.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { reset(); }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset();

 private:
  int fd_ = -1;
};

// A process by pid and start time: pids are re-used, this pair is not (until the next boot).
struct ProcessRef {
  static constexpr std::string_view kName = "process_ref";
  std::int32_t pid = 0;
  std::uint64_t start_ticks = 0;  // clock ticks since boot, field 22 of /proc/PID/stat
  explicit operator bool() const { return pid > 0; }
  friend auto operator<=>(const ProcessRef&, const ProcessRef&) = default;
};
template <class A>
void describe(A& a, ProcessRef& x) {
  a("pid", x.pid);
  a("start_ticks", x.start_ticks);
}

// Start time of a process in clock ticks since boot; kNotFound when there is no such process.
Result<std::uint64_t> process_start_ticks(pid_t pid);
Result<ProcessRef> process_ref(pid_t pid);
// True while that very process exists and is not a zombie.
bool is_alive(const ProcessRef& process);
// A pidfd of that very process (kNotFound when it is gone or its pid belongs to another one).
Result<Descriptor> open_process(const ProcessRef& process);

// Who a child runs as. Applied in the order groups, gid, uid, so that no privilege stays.
struct Credentials {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;
};
struct ResourceLimit {
  int resource = 0;  // RLIMIT_*
  rlimit limit{};
};

struct SpawnOptions {
  std::string program;                   // path; no search
  std::vector<std::string> arguments;    // with argv[0]
  std::vector<std::string> environment;  // "NAME=value"; exactly this, nothing inherited
  std::string directory;                 // chdir after taking the credentials; empty: unchanged
  // (descriptor here, number in the child). All others are closed. A number named twice: last wins.
  std::vector<std::pair<int, int>> descriptors;
  bool new_session = true;  // setsid()
  // Makes the terminal on the child's descriptor 0 its controlling one (needs new_session).
  bool controlling_terminal = false;
  std::optional<mode_t> umask;
  std::optional<Credentials> credentials;
  // Inside an ordinary user's cluster, where the child's uid 0 is the caller: show it this uid and
  // gid again in a nested user namespace (see virtual_cluster.h). Instead of credentials.
  std::optional<std::pair<uid_t, gid_t>> user_namespace;
  std::vector<ResourceLimit> limits;  // set before the credentials are taken
  int nice_increment = 0;
  int parent_death_signal = 0;  // PR_SET_PDEATHSIG; 0 = none
  // cgroup.procs files (Cgroups::procs_files): the child moves itself before anything else.
  std::vector<std::string> cgroup_procs;
};

struct SpawnedProcess {
  pid_t pid = 0;
  Descriptor pidfd;
};

// Starts a program with a clean signal mask and default signal handlers. Address space is never
// copied (clone(CLONE_VM | CLONE_VFORK)): the cost does not grow with the caller's memory; the
// calling thread waits until the exec. An error names the step that failed ("chdir DIR", "exec
// PROGRAM"...), its reason is the step's word (cgroup, limits, user_namespace, credentials,
// chdir, descriptors, exec, clone); no child is left then.
Result<SpawnedProcess> spawn(const SpawnOptions& options);

// Waits for the end of the process; false when the time is over. Does not reap.
bool wait_for_exit(int pidfd, std::chrono::milliseconds timeout);
// SIGTERM, then SIGKILL after the grace; returns when the process is gone. Reaps it if it is a
// child. Not an error if it is gone already. kUnavailable if it survives SIGKILL for 5 s.
Status stop_process(const ProcessRef& process, std::chrono::milliseconds grace);

// Closes all descriptors >= first.
void close_from(int first);
// All living descendants of a process by one look at /proc, parents first. A descendant whose
// parent has died is found only if the process is its subreaper (PR_SET_CHILD_SUBREAPER).
std::vector<pid_t> descendants(pid_t pid);
// SIGKILL to all descendants of the process, not to itself, until none is left or the time is
// over (then kUnavailable naming them). The way of last resort where no cgroup can be had.
Status kill_tree(pid_t pid, std::chrono::milliseconds timeout);

// The whole of a small file (up to 1 MiB) such as those below /proc and /sys.
Result<std::string> read_small_file(const std::string& path);

namespace detail {
// The stack of a child made by clone(CLONE_VM), alive until the child has gone on to another
// program or ended. errno tells why it is empty.
class CloneStack {
 public:
  CloneStack();
  ~CloneStack();
  CloneStack(const CloneStack&) = delete;
  CloneStack& operator=(const CloneStack&) = delete;
  void* top() const { return memory_ ? static_cast<char*>(memory_) + kBytes : nullptr; }

 private:
  static constexpr std::size_t kBytes = 128 * 1024;
  void* memory_ = nullptr;
};

// Maps uid and gid of the calling process, alone in the namespace it has just made, with `outside`
// ids as seen from the parent namespace. Async-signal-safe; returns 0 or an errno.
int write_id_maps(uid_t inside_uid, uid_t outside_uid, gid_t inside_gid, gid_t outside_gid);
}  // namespace detail

}  // namespace tutti::agent
