// Orders of the controller to an agent: see model/agent_protocol.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/archive.h"
#include "model/launch.h"
#include "model/step_key.h"

namespace tutti {

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
// The gang's room is taken back, or its end comes near for another cause: `text` (JSON) is put
// where TUTTI_NOTICE_FILE points, then the signal goes out. signal 0 = none.
struct Notice {
  static constexpr std::string_view kName = "notice";
  GangId gang;
  Epoch epoch;
  std::string text;
  std::int32_t signal = 0;
  bool to_steps = true, to_batch = false;
};
void describe(auto& a, Notice& x) {
  a("gang", x.gang);
  a("epoch", x.epoch);
  a("text", x.text);
  a("signal", x.signal);
  a("to_steps", x.to_steps);
  a("to_batch", x.to_batch);
}
// End a step: CONT + TERM, then KILL after `grace`, then step_ended.
struct EndStep {
  static constexpr std::string_view kName = "end_step";
  StepKey key;
  Duration grace;
  std::string
      notice;  // written to the step's stderr: "*** STEP 51.0 ON node01 CANCELLED AT ... ***"
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
                             Input, OutputTaken, SendOutput, Resize, Notice>;
}  // namespace to_agent

}  // namespace tutti
