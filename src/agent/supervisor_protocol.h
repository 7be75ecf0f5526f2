// Messages between an agent and the supervisor of a step, over a Unix socket (SOCK_SEQPACKET): one
// frame (base/frame.h) a packet. The agent may be older or newer than the supervisor: fields are
// only added, an unknown message is ignored. The first packet on each connection is the
// supervisor's State; a supervisor serves the newest connection and drops the one before.
//
// Files in the step's directory: `control` (socket to connect to), `notify` (socket of the ranks),
// `slurm_script`, `output` (agent/spool.h), and at the end `status.json` (StepStatus), which is
// complete before anybody hears that the step has ended.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/archive.h"
#include "base/frame.h"
#include "model/gang.h"
#include "model/launch.h"

namespace tutti::agent {

constexpr std::uint32_t kSupervisorProtocol = 1;
// Descriptors that a new supervisor finds open: its first connection, and its order as JSON.
constexpr int kControlDescriptor = 3;
constexpr int kOrderDescriptor = 4;
// Payload bytes in one packet; a socket buffer takes several.
constexpr std::size_t kPacketPayloadMax = 32 * 1024;

struct SupervisorOrder {
  std::uint32_t protocol = kSupervisorProtocol;
  std::string node;
  std::string directory;                  // of the step
  bool become_user = false;               // uid and gid of the job, with these groups
  std::vector<std::uint32_t> groups;      // of the job's user; none = gid alone
  std::vector<std::string> cgroup_procs;  // files to write the supervisor's pid to
  JobFacts job;
  SlotOrder slot;
  StepOrder step;
};
void describe(auto& a, SupervisorOrder& x) {
  a("protocol", x.protocol);
  a("node", x.node);
  a("directory", x.directory);
  a("become_user", x.become_user);
  a("groups", x.groups);
  a("cgroup_procs", x.cgroup_procs);
  a("job", x.job);
  a("slot", x.slot);
  a("step", x.step);
}

struct RankStatus {
  std::uint32_t rank = 0;
  ExitStatus exit;
  std::string message;
};
void describe(auto& a, RankStatus& x) {
  a("rank", x.rank);
  a("exit", x.exit);
  a("message", x.message);
}

// Why a step was not prepared.
struct Refusal {
  std::string reason;
  bool fault_of_job = false;
  ExitStatus exit;
};
void describe(auto& a, Refusal& x) {
  a("reason", x.reason);
  a("fault_of_job", x.fault_of_job);
  a("exit", x.exit);
}

// How a step ended on this node.
struct StepStatus {
  std::uint32_t protocol = kSupervisorProtocol;
  bool never_ran = false;
  std::optional<Refusal> refusal;  // was not even prepared
  ExitStatus exit;                 // the worst of the ranks
  std::vector<RankStatus> ranks;
  Usage usage;
  std::uint64_t output_size = 0, output_taken = 0;
};
void describe(auto& a, StepStatus& x) {
  a("protocol", x.protocol);
  a("never_ran", x.never_ran);
  a("refusal", x.refusal);
  a("exit", x.exit);
  a("ranks", x.ranks);
  a("usage", x.usage);
  a("output_size", x.output_size);
  a("output_taken", x.output_taken);
}

namespace to_supervisor {

struct Go {  // release the barrier; a second one does nothing
  static constexpr std::string_view kName = "go";
};
void describe(auto&, Go&) {}
struct Abort {  // end at once, without a trace if no rank has run
  static constexpr std::string_view kName = "abort";
};
void describe(auto&, Abort&) {}
struct Signal {
  static constexpr std::string_view kName = "signal";
  std::int32_t signal = 0;
  bool whole_tree = false;
};
void describe(auto& a, Signal& x) {
  a("signal", x.signal);
  a("whole_tree", x.whole_tree);
}
struct End {  // "{node}" and "{time}" in the notice are filled in
  static constexpr std::string_view kName = "end";
  Duration grace;
  std::string notice;
};
void describe(auto& a, End& x) {
  a("grace_ms", x.grace);
  a("notice", x.notice);
}
struct Input {  // bytes follow; as to_agent::Input
  static constexpr std::string_view kName = "input";
  std::optional<std::uint32_t> rank;
  std::uint64_t offset = 0;
  bool end = false;
};
void describe(auto& a, Input& x) {
  a("rank", x.rank);
  a("offset", x.offset);
  a("end", x.end);
}
struct Taken {
  static constexpr std::string_view kName = "taken";
  std::uint64_t offset = 0;
};
void describe(auto& a, Taken& x) { a("offset", x.offset); }
struct Resize {
  static constexpr std::string_view kName = "resize";
  std::uint16_t rows = 0, columns = 0;
};
void describe(auto& a, Resize& x) {
  a("rows", x.rows);
  a("columns", x.columns);
}

using Message = std::variant<Go, Abort, Signal, End, Input, Taken, Resize>;
}  // namespace to_supervisor

namespace from_supervisor {

struct State {
  static constexpr std::string_view kName = "state";
  std::uint32_t protocol = kSupervisorProtocol;
  bool ready = false, running = false, attached = false;
  std::vector<std::uint32_t> pids;
  std::uint64_t output_size = 0, output_taken = 0;
};
void describe(auto& a, State& x) {
  a("protocol", x.protocol);
  a("ready", x.ready);
  a("running", x.running);
  a("attached", x.attached);
  a("pids", x.pids);
  a("output_size", x.output_size);
  a("output_taken", x.output_taken);
}
struct Started {
  static constexpr std::string_view kName = "started";
  std::vector<std::uint32_t> pids;
};
void describe(auto& a, Started& x) { a("pids", x.pids); }
struct RankExited {
  static constexpr std::string_view kName = "rank_exited";
  RankStatus rank;
};
void describe(auto& a, RankExited& x) { a("rank", x.rank); }
struct Grown {  // the spool has this size now
  static constexpr std::string_view kName = "grown";
  std::uint64_t size = 0;
};
void describe(auto& a, Grown& x) { a("size", x.size); }
struct Notified {
  static constexpr std::string_view kName = "notified";
  std::string text;
};
void describe(auto& a, Notified& x) { a("text", x.text); }
// Processes of the step survive SIGKILL from their user: the agent has to end them.
struct Stuck {
  static constexpr std::string_view kName = "stuck";
};
void describe(auto&, Stuck&) {}
// The last message, also after a refusal; the process ends after it.
struct Ended {
  static constexpr std::string_view kName = "ended";
  StepStatus status;
};
void describe(auto& a, Ended& x) { a("status", x.status); }

using Message = std::variant<State, Started, RankExited, Grown, Notified, Stuck, Ended>;
}  // namespace from_supervisor

}  // namespace tutti::agent
