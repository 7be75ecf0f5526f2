// Messages between the controller and an agent, over one long-lived channel that the agent dials.
// Every order carries gang and epoch: an agent refuses an order of an older epoch than it knows
// and answers a repeated one as it did the first time, so duplicates and reorderings are harmless.
// A message is one line of JSON; Output and Input are followed by raw bytes (base/frame.h).
//
//   agent -> controller   hello, ready | refused, started, rank_exited, step_ended, clean, output
//   controller -> agent   welcome, prepare_gang, prepare_step, go, abort, signal, end_gang, input,
//                         output_taken
//
// Roll call of a gang: prepare_gang to every node (with the batch step on the first) -> ready from
// all -> go. Of a step: prepare_step -> ready from all -> go. In between no rank has run: ranks of
// a prepared step stand forked behind a barrier in their supervisor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/archive.h"
#include "model/launch.h"

namespace tutti {

constexpr std::uint32_t kAgentProtocol = 1;

struct StepKey {
  GangId gang;
  Epoch epoch;
  StepId step = 0;
  friend auto operator<=>(const StepKey&, const StepKey&) = default;
};
void describe(auto& a, StepKey& x) {
  a("gang", x.gang);
  a("epoch", x.epoch);
  a("step", x.step);
}

namespace to_agent {

struct Welcome {
  static constexpr std::string_view kName = "welcome";
  std::string cluster_id;
  Duration kill_wait;
};
void describe(auto& a, Welcome& x) {
  a("cluster_id", x.cluster_id);
  a("kill_wait_ms", x.kill_wait);
}
struct PrepareGang {
  static constexpr std::string_view kName = "prepare_gang";
  JobFacts job;
  SlotOrder slot;
  std::optional<StepOrder> batch;  // on the first node of a batch job
};
void describe(auto& a, PrepareGang& x) {
  a("job", x.job);
  a("slot", x.slot);
  a("batch", x.batch);
}
struct PrepareStep {
  static constexpr std::string_view kName = "prepare_step";
  GangId gang;
  Epoch epoch;
  StepOrder order;
};
void describe(auto& a, PrepareStep& x) {
  a("gang", x.gang);
  a("epoch", x.epoch);
  a("order", x.order);
}
// All are ready. For step == kExternStep: the gang itself (and its batch step, if it has one here).
struct Go {
  static constexpr std::string_view kName = "go";
  StepKey key;
};
void describe(auto& a, Go& x) { a("key", x.key); }
// The roll call failed: give everything back; answered by `clean` (gang) or `step_ended` with
// never_ran (step).
struct Abort {
  static constexpr std::string_view kName = "abort";
  StepKey key;
};
void describe(auto& a, Abort& x) { a("key", x.key); }
// To the ranks of a step; steps/batch select within a gang when key.step == kExternStep.
struct Signal {
  static constexpr std::string_view kName = "signal";
  StepKey key;
  std::int32_t signal = 0;
  bool to_steps = true, to_batch = false;
  bool whole_tree = false;  // every process, not only the ranks themselves
};
void describe(auto& a, Signal& x) {
  a("key", x.key);
  a("signal", x.signal);
  a("to_steps", x.to_steps);
  a("to_batch", x.to_batch);
  a("whole_tree", x.whole_tree);
}
// End a step: CONT + TERM, then KILL after `grace`, then step_ended.
struct EndStep {
  static constexpr std::string_view kName = "end_step";
  StepKey key;
  Duration grace;
  std::string notice;  // written to the step's stderr: "*** STEP 51.0 ON node01 CANCELLED AT ... ***"
};
void describe(auto& a, EndStep& x) {
  a("key", x.key);
  a("grace_ms", x.grace);
  a("notice", x.notice);
}
// End all of the gang's steps like EndStep, then clean the slot; answered by `clean`. Also sent
// for a gang with nothing running.
struct EndGang {
  static constexpr std::string_view kName = "end_gang";
  GangId gang;
  Epoch epoch;
  Duration grace;
  std::string notice;
};
void describe(auto& a, EndGang& x) {
  a("gang", x.gang);
  a("epoch", x.epoch);
  a("grace_ms", x.grace);
  a("notice", x.notice);
}
struct Input {  // raw bytes follow; rank unset = every rank of the step on this node
  static constexpr std::string_view kName = "input";
  StepKey key;
  std::optional<std::uint32_t> rank;
  std::uint64_t offset = 0;  // of the first byte in the client's input; repeated bytes are dropped
  bool end = false;
};
void describe(auto& a, Input& x) {
  a("key", x.key);
  a("rank", x.rank);
  a("offset", x.offset);
  a("end", x.end);
}
// The client has the output up to `offset` of this node's spool: it may be forgotten.
struct OutputTaken {
  static constexpr std::string_view kName = "output_taken";
  StepKey key;
  std::uint64_t offset = 0;
};
void describe(auto& a, OutputTaken& x) {
  a("key", x.key);
  a("offset", x.offset);
}
// Send output from `offset` on (a client attached, or attached again).
struct SendOutput {
  static constexpr std::string_view kName = "send_output";
  StepKey key;
  std::uint64_t offset = 0;
};
void describe(auto& a, SendOutput& x) {
  a("key", x.key);
  a("offset", x.offset);
}
struct Resize {
  static constexpr std::string_view kName = "resize";
  StepKey key;
  std::uint16_t rows = 0, columns = 0;
};
void describe(auto& a, Resize& x) {
  a("key", x.key);
  a("rows", x.rows);
  a("columns", x.columns);
}

using Message = std::variant<Welcome, PrepareGang, PrepareStep, Go, Abort, Signal, EndStep, EndGang,
                             Input, OutputTaken, SendOutput, Resize>;
}  // namespace to_agent

namespace from_agent {

struct StepReport {
  StepKey key;
  StepState state = StepState::kPreparing;
  ExitStatus exit;  // when done
  Usage usage;
};
void describe(auto& a, StepReport& x) {
  a("key", x.key);
  a("state", x.state);
  a("exit", x.exit);
  a("usage", x.usage);
}
struct GangReport {
  GangId gang;
  Epoch epoch;
  bool started = false;  // "go" was heard
  std::vector<StepReport> steps;
};
void describe(auto& a, GangReport& x) {
  a("gang", x.gang);
  a("epoch", x.epoch);
  a("started", x.started);
  a("steps", x.steps);
}
struct Hello {
  static constexpr std::string_view kName = "hello";
  std::uint32_t protocol = kAgentProtocol;
  std::string node, version, kernel;
  Instant booted, started;
  std::vector<GangReport> gangs;      // what really is here
  std::vector<std::string> missing;   // features: "cgroup cpuset", ...
};
void describe(auto& a, Hello& x) {
  a("protocol", x.protocol);
  a("node", x.node);
  a("version", x.version);
  a("kernel", x.kernel);
  a("booted_ms", x.booted);
  a("started_ms", x.started);
  a("gangs", x.gangs);
  a("missing", x.missing);
}
struct Ready {  // step == kExternStep: the gang
  static constexpr std::string_view kName = "ready";
  StepKey key;
};
void describe(auto& a, Ready& x) { a("key", x.key); }
struct Refused {
  static constexpr std::string_view kName = "refused";
  StepKey key;
  std::string reason;     // for people, names the path or command
  bool fault_of_job = false;  // trying elsewhere cannot help (missing directory, no such command)
  ExitStatus exit;        // what the step counts as having returned, if fault_of_job
};
void describe(auto& a, Refused& x) {
  a("key", x.key);
  a("reason", x.reason);
  a("fault_of_job", x.fault_of_job);
  a("exit", x.exit);
}
struct Started {
  static constexpr std::string_view kName = "started";
  StepKey key;
  std::vector<std::uint32_t> pids;
};
void describe(auto& a, Started& x) {
  a("key", x.key);
  a("pids", x.pids);
}
struct RankExited {
  static constexpr std::string_view kName = "rank_exited";
  StepKey key;
  std::uint32_t rank = 0;
  ExitStatus exit;
  std::string message;  // what the supervisor has to say ("execve(): nosuchcommand: No such file…")
};
void describe(auto& a, RankExited& x) {
  a("key", x.key);
  a("rank", x.rank);
  a("exit", x.exit);
  a("message", x.message);
}
struct StepEnded {  // all ranks of this node are gone
  static constexpr std::string_view kName = "step_ended";
  StepKey key;
  bool never_ran = false;
  ExitStatus exit;   // the worst
  bool out_of_memory = false;
  Usage usage;
  std::uint64_t output_size = 0;  // of this node's spool
};
void describe(auto& a, StepEnded& x) {
  a("key", x.key);
  a("never_ran", x.never_ran);
  a("exit", x.exit);
  a("out_of_memory", x.out_of_memory);
  a("usage", x.usage);
  a("output_size", x.output_size);
}
struct Clean {  // no process, cgroup or file of the gang is left on this node
  static constexpr std::string_view kName = "clean";
  GangId gang;
  Epoch epoch;
};
void describe(auto& a, Clean& x) {
  a("gang", x.gang);
  a("epoch", x.epoch);
}
struct Output {  // raw bytes follow
  static constexpr std::string_view kName = "output";
  StepKey key;
  std::uint32_t rank = 0;
  bool is_error = false;      // stderr
  std::uint64_t offset = 0;   // position of this record in the node's spool of the step
  std::uint64_t next = 0;     // position after it
  bool end = false;           // nothing follows on this stream of this rank
};
void describe(auto& a, Output& x) {
  a("key", x.key);
  a("rank", x.rank);
  a("is_error", x.is_error);
  a("offset", x.offset);
  a("next", x.next);
  a("end", x.end);
}
// Something a rank said by the notify protocol (READY, X_TUTTI_STEP…), as key=value lines.
struct Notified {
  static constexpr std::string_view kName = "notified";
  StepKey key;
  std::string text;
};
void describe(auto& a, Notified& x) {
  a("key", x.key);
  a("text", x.text);
}

using Message = std::variant<Hello, Ready, Refused, Started, RankExited, StepEnded, Clean, Output, Notified>;
}  // namespace from_agent

}  // namespace tutti
