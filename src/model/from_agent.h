// What an agent tells the controller: see model/agent_protocol.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/archive.h"
#include "model/gang.h"
#include "model/step_key.h"

namespace tutti {

namespace from_agent {

struct StepReport {
  StepKey key;
  StepState state = StepState::kPreparing;
  ExitStatus exit;  // when done
  Usage usage;
  bool never_ran = false, out_of_memory = false;
  std::uint64_t output_size = 0;  // of this node's spool, when done
};
void describe(auto& a, StepReport& x) {
  a("key", x.key);
  a("state", x.state);
  a("exit", x.exit);
  a("usage", x.usage);
  a("never_ran", x.never_ran);
  a("out_of_memory", x.out_of_memory);
  a("output_size", x.output_size);
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
  std::vector<GangReport> gangs;     // what really is here
  std::vector<std::string> missing;  // features: "cgroup cpuset", ...
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
  std::string reason;         // for people, names the path or command
  bool fault_of_job = false;  // trying elsewhere cannot help (missing directory, no such command)
  ExitStatus exit;            // what the step counts as having returned, if fault_of_job
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
  ExitStatus exit;  // the worst
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
  bool is_error = false;     // stderr
  std::uint64_t offset = 0;  // position of this record in the node's spool of the step
  std::uint64_t next = 0;    // position after it
  bool end = false;          // nothing follows on this stream of this rank
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

using Message =
    std::variant<Hello, Ready, Refused, Started, RankExited, StepEnded, Clean, Output, Notified>;
}  // namespace from_agent

}  // namespace tutti
