// Workload: what somebody asked for. Immutable apart from what WorkloadChanged may alter; every
// front end lowers to it and nothing behind the front ends knows where it came from.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/archive.h"
#include "base/blob_id.h"
#include "base/shared_value.h"
#include "base/time.h"
#include "model/ask.h"
#include "model/ids.h"
#include "model/terms.h"

namespace tutti {

using std::string_view_literals::operator""sv;

enum class WorkloadKind : std::uint8_t { kFinite, kService, kSession };
template <>
struct EnumNames<WorkloadKind> {
  static constexpr std::array kTable{std::pair{WorkloadKind::kFinite, "finite"sv},
                                     std::pair{WorkloadKind::kService, "service"sv},
                                     std::pair{WorkloadKind::kSession, "session"sv}};
};

enum class Hold : std::uint8_t { kNone, kUser, kAdmin };
template <>
struct EnumNames<Hold> {
  static constexpr std::array kTable{std::pair{Hold::kNone, "none"sv},
                                     std::pair{Hold::kUser, "user"sv},
                                     std::pair{Hold::kAdmin, "admin"sv}};
};

// A signal before the time limit ends (--signal=[B:]USR1@90).
struct WarningSignal {
  std::int32_t signal = 0;  // 0 = none
  std::uint32_t seconds_before = 60;
  bool to_batch_shell = false;  // else to the steps only
  friend bool operator==(const WarningSignal&, const WarningSignal&) = default;
};
template <class A>
void describe(A& a, WarningSignal& x) {
  a("signal", x.signal);
  a("seconds_before", x.seconds_before);
  a("to_batch_shell", x.to_batch_shell);
}

struct Rlimit {
  std::string name;         // "nofile", "core": as in RLIMIT_NOFILE
  std::uint64_t value = 0;  // soft limit of the submitter; ~0 = unlimited
  friend bool operator==(const Rlimit&, const Rlimit&) = default;
};
template <class A>
void describe(A& a, Rlimit& x) {
  a("name", x.name);
  a("value", x.value);
}

// What runs. A script (blob) with arguments is step `batch` on the first slot; without a script the
// allocation is used by steps that its owner launches (srun, salloc).
struct LaunchAsk {
  BlobId script;
  BlobId environment;             // NUL-separated K=V of the submitter
  std::vector<std::string> argv;  // arguments of the script
  std::string command;            // path of the script, as shown to people; "" for a wrap or stdin
  std::string work_dir;
  std::string stdin_path, stdout_path, stderr_path;  // patterns (%j, %A...); "" = default
  bool append_output = false;
  std::uint32_t umask = 0022;
  SharedValue<std::vector<Rlimit>> limits;
};

inline void describe_blob(auto& a, std::string_view name, BlobId& id) {
  std::string hex = id ? to_hex(id) : std::string();
  a(name, hex);
  if constexpr (std::decay_t<decltype(a)>::kReading) id = blob_id_from_hex(hex).value_or(BlobId{});
}

template <class A>
void describe(A& a, LaunchAsk& x) {
  describe_blob(a, "script", x.script);
  describe_blob(a, "environment", x.environment);
  a("argv", x.argv);
  a("command", x.command);
  a("work_dir", x.work_dir);
  a("stdin_path", x.stdin_path);
  a("stdout_path", x.stdout_path);
  a("stderr_path", x.stderr_path);
  a("append_output", x.append_output);
  a("umask", x.umask);
  a("limits", x.limits);
}

// What few workloads have; apart, so that a pending job stays small.
struct WorkloadExtras {
  std::vector<Dependency> dependencies;
  bool any_dependency = false;  // separated by "?": one is enough
  WarningSignal warning_signal;
  std::string comment, reservation, licenses, mail_user, mail_type, wckey, admin_comment;
  std::vector<std::string> clusters;
  std::optional<std::uint32_t> fixed_priority;  // --priority, scontrol update priority=
  std::string submit_host;
  std::uint32_t submit_pid = 0;  // of a session's client
  Terms terms;
  std::vector<std::string> not_honoured;  // options accepted but without effect, for the owner
  friend bool operator==(const WorkloadExtras&, const WorkloadExtras&) = default;
};
template <class A>
void describe(A& a, WorkloadExtras& x) {
  a("dependencies", x.dependencies);
  a("any_dependency", x.any_dependency);
  a("warning_signal", x.warning_signal);
  a("comment", x.comment);
  a("reservation", x.reservation);
  a("licenses", x.licenses);
  a("mail_user", x.mail_user);
  a("mail_type", x.mail_type);
  a("wckey", x.wckey);
  a("admin_comment", x.admin_comment);
  a("clusters", x.clusters);
  a("fixed_priority", x.fixed_priority);
  a("submit_host", x.submit_host);
  a("submit_pid", x.submit_pid);
  a("terms", x.terms);
  a("not_honoured", x.not_honoured);
}

struct Workload {
  WorkloadId id;  // set by the controller
  WorkloadKind kind = WorkloadKind::kFinite;
  std::string name, user, group, account, qos;
  std::uint32_t uid = 0, gid = 0;
  SharedValue<std::vector<std::string>> partitions;  // in order of preference; empty = default
  // One per component of a heterogeneous job.
  SharedValue<std::vector<RoleAsk>> roles{std::vector<RoleAsk>{RoleAsk{}}};
  std::optional<Duration> time_limit;  // none = the partition's default
  std::optional<Duration> time_min;
  Instant submitted;
  Instant begin;  // not before; unset = at once
  std::int32_t nice = 0;
  Hold hold = Hold::kNone;
  bool requeue = true;     // may be started again after a node failure or by its owner
  bool immediate = false;  // start at once or not at all
  bool kill_on_bad_exit = false;
  bool detached = false;  // a session that outlives its client (salloc --no-shell)
  // Detached while steps ran (tutti run, Ctrl-B D): over with the last of them, as nobody comes
  // back.
  bool ends_with_steps = false;
  bool cpus_per_task_given = false;  // the user said so; decides SLURM_CPUS_PER_TASK
  std::string array;                 // "" or an index set "0-99:2": base/index_set.h
  std::uint32_t array_throttle = 0;  // at most so many at once; 0 = no limit
  // Chosen by the client at random: a submission asked again is known by it. 0 = none.
  std::uint64_t submission_key = 0;
  LaunchAsk launch;
  SharedValue<WorkloadExtras> extras;

  bool is_array() const { return !array.empty(); }
  bool is_batch() const { return static_cast<bool>(launch.script); }
};
template <class A>
void describe(A& a, Workload& x) {
  a("id", x.id);
  a("kind", x.kind);
  a("name", x.name);
  a("user", x.user);
  a("group", x.group);
  a("account", x.account);
  a("qos", x.qos);
  a("uid", x.uid);
  a("gid", x.gid);
  a("partitions", x.partitions);
  a("roles", x.roles);
  a("time_limit_ms", x.time_limit);
  a("time_min_ms", x.time_min);
  a("submitted_ms", x.submitted);
  a("begin_ms", x.begin);
  a("nice", x.nice);
  a("hold", x.hold);
  a("requeue", x.requeue);
  a("immediate", x.immediate);
  a("kill_on_bad_exit", x.kill_on_bad_exit);
  a("detached", x.detached);
  a("ends_with_steps", x.ends_with_steps);
  a("cpus_per_task_given", x.cpus_per_task_given);
  a("array", x.array);
  a("array_throttle", x.array_throttle);
  a("submission_key", x.submission_key);
  a("launch", x.launch);
  a("extras", x.extras);
}

}  // namespace tutti
