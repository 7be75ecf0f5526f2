// Messages between a client that follows a gang (srun, salloc, tutti run) and the controller, over
// the channel /v1/attach. The channel is opened right after the submission and lives until the
// client is satisfied. If it breaks, the client dials again and says what it already has; a client
// that stays away longer than a grace time has died: its steps, and an allocation that lived only
// for it, are ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/archive.h"
#include "model/agent_protocol.h"
#include "model/gang.h"

namespace tutti {

// Why the controller closes a channel for good: coming back would end the same way.
inline constexpr std::string_view kClosedNoSuchJob = "no such job";
inline constexpr std::string_view kClosedNotYourJob = "not your job";
// Why a step ended that nobody had started yet when the controller died: asking again helps.
inline constexpr std::string_view kStepLostAtRestart = "controller restarted";

namespace to_client {

struct GangChanged {
  static constexpr std::string_view kName = "gang_changed";
  GangId gang;
  GangState state = GangState::kPending;
  Outcome outcome = Outcome::kNone;
  Epoch epoch;
  std::vector<std::string> nodes;
  std::string wait_reason, wait_text, last_failure;
  bool agents_ready = false;  // the roll call of the gang succeeded
  Instant limit_end;
};
void describe(auto& a, GangChanged& x) {
  a("gang", x.gang);
  a("state", x.state);
  a("outcome", x.outcome);
  a("epoch", x.epoch);
  a("nodes", x.nodes);
  a("wait_reason", x.wait_reason);
  a("wait_text", x.wait_text);
  a("last_failure", x.last_failure);
  a("agents_ready", x.agents_ready);
  a("limit_end_ms", x.limit_end);
}
struct StepStarted {
  static constexpr std::string_view kName = "step_started";
  StepId step = 0;
};
void describe(auto& a, StepStarted& x) { a("step", x.step); }
struct RankExited {
  static constexpr std::string_view kName = "rank_exited";
  StepId step = 0;
  std::string node;
  std::uint32_t rank = 0;
  ExitStatus exit;
  std::string message;
};
void describe(auto& a, RankExited& x) {
  a("step", x.step);
  a("node", x.node);
  a("rank", x.rank);
  a("exit", x.exit);
  a("message", x.message);
}
// All ranks of all nodes are gone and all output was sent before this message.
struct StepEnded {
  static constexpr std::string_view kName = "step_ended";
  StepId step = 0;
  ExitStatus exit;
  Outcome outcome = Outcome::kCompleted;
  std::string reason;
  std::optional<std::uint32_t> by_uid;
};
void describe(auto& a, StepEnded& x) {
  a("step", x.step);
  a("exit", x.exit);
  a("outcome", x.outcome);
  a("reason", x.reason);
  a("by_uid", x.by_uid);
}
struct Output {  // raw bytes follow
  static constexpr std::string_view kName = "output";
  StepId step = 0;
  std::uint32_t node = 0;  // index in the step's nodes
  std::uint32_t rank = 0;
  bool is_error = false;
  std::uint64_t next = 0;  // position of this node's spool after it: say `taken` with it
  bool end = false;
};
void describe(auto& a, Output& x) {
  a("step", x.step);
  a("node", x.node);
  a("rank", x.rank);
  a("is_error", x.is_error);
  a("next", x.next);
  a("end", x.end);
}
// A node of the step is back after its connection broke: input may have been lost on the way. What
// is sent again is known by its offset.
struct InputWanted {
  static constexpr std::string_view kName = "input_wanted";
  StepId step = 0;
};
void describe(auto& a, InputWanted& x) { a("step", x.step); }
using Message =
    std::variant<GangChanged, StepStarted, RankExited, StepEnded, Output, InputWanted>;

}  // namespace to_client

namespace from_client {

// First message after opening: which steps the client follows, and up to where it has the output
// of each of their nodes.
struct Follow {
  static constexpr std::string_view kName = "follow";
  StepId step = 0;
  std::vector<std::uint64_t> have;  // per node of the step; empty = from the start
};
void describe(auto& a, Follow& x) {
  a("step", x.step);
  a("have", x.have);
}
// The client that submitted a session says so, each time it has connected: the allocation lives
// for it. Others (srun inside salloc) come and go.
struct Own {
  static constexpr std::string_view kName = "own";
};
void describe(auto&, Own&) {}
struct Taken {
  static constexpr std::string_view kName = "taken";
  StepId step = 0;
  std::uint32_t node = 0;
  std::uint64_t next = 0;
};
void describe(auto& a, Taken& x) {
  a("step", x.step);
  a("node", x.node);
  a("next", x.next);
}
struct Input {  // raw bytes follow
  static constexpr std::string_view kName = "input";
  StepId step = 0;
  std::optional<std::uint32_t> rank;
  std::uint64_t offset = 0;
  bool end = false;
};
void describe(auto& a, Input& x) {
  a("step", x.step);
  a("rank", x.rank);
  a("offset", x.offset);
  a("end", x.end);
}
struct Signal {
  static constexpr std::string_view kName = "signal";
  StepId step = 0;
  std::int32_t signal = 0;
};
void describe(auto& a, Signal& x) {
  a("step", x.step);
  a("signal", x.signal);
}
struct Resize {
  static constexpr std::string_view kName = "resize";
  StepId step = 0;
  std::uint16_t rows = 0, columns = 0;
};
void describe(auto& a, Resize& x) {
  a("step", x.step);
  a("rows", x.rows);
  a("columns", x.columns);
}
// The client leaves on purpose: keep what runs (tutti run, detached) or end it.
struct Leave {
  static constexpr std::string_view kName = "leave";
  bool keep_running = false;
};
void describe(auto& a, Leave& x) { a("keep_running", x.keep_running); }
using Message = std::variant<Follow, Own, Taken, Input, Signal, Resize, Leave>;

}  // namespace from_client

}  // namespace tutti
