// Requests and replies of the controller's HTTP interface, shared by the controller and every
// program that asks it. Paths:
//
//   POST /v1/workloads   SubmitRequest   -> SubmitReply      durable before it is answered
//   POST /v1/actions     ActionRequest   -> ActionReply      cancel, signal, hold, release,
//   requeue, update POST /v1/steps       StepRequest     -> StepReply        a step inside an
//   allocation POST /v1/nodes       NodeRequest     -> ActionReply      drain, resume, down POST
//   /v1/partitions  PartitionRequest-> ActionReply POST /v1/configure   ConfigureRequest->
//   ActionReply      operator: a new ClusterSpec in force GET  /v1/state       StateQuery (as URL
//   parameters) -> StateView GET  /v1/history     HistoryQuery    -> HistoryView      finished and
//   live jobs GET  /v1/wait?job=N&until=allocated|started|done&timeout_ms=T   -> StateView once it
//   is so GET  /v1/why?job=N   -> WhyReply GET  /v1/script?job=N -> the text of the batch script
//   GET  /v1/diag        -> DiagView
//   GET  /v1/ping        -> {"cluster": name, "version": ...}
//   channel /v1/attach?gang=N[&step=S]   model/attach_protocol.h
//   channel /v1/agent                    model/agent_protocol.h
//
// A refused request has an HTTP status >= 400 and an ApiError as body.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/archive.h"
#include "model/cluster.h"
#include "model/gang.h"
#include "model/launch.h"
#include "model/workload.h"

namespace tutti {

template <>
struct EnumNames<ErrorCode> {
  static constexpr std::array kTable{std::pair{ErrorCode::kInvalid, "invalid"sv},
                                     std::pair{ErrorCode::kNotFound, "not_found"sv},
                                     std::pair{ErrorCode::kDenied, "denied"sv},
                                     std::pair{ErrorCode::kConflict, "conflict"sv},
                                     std::pair{ErrorCode::kUnavailable, "unavailable"sv},
                                     std::pair{ErrorCode::kExhausted, "exhausted"sv},
                                     std::pair{ErrorCode::kCorrupt, "corrupt"sv},
                                     std::pair{ErrorCode::kInternal, "internal"sv}};
};

// `reason` is one of the stable words in model/reasons.h; front ends turn it into their own text.
struct ApiError {
  ErrorCode code = ErrorCode::kInternal;
  std::string reason, message;
};
void describe(auto& a, ApiError& x) {
  std::string code(enum_name(x.code));
  a("code", code);
  if constexpr (std::decay_t<decltype(a)>::kReading)
    x.code = enum_from_name<ErrorCode>(code).value_or(ErrorCode::kInternal);
  a("reason", x.reason);
  a("message", x.message);
}

struct Submission {
  Workload workload;        // id and submitted are set by the controller; uid and gid are checked
  std::string script;       // text of the batch script; empty = no batch step
  std::string environment;  // NUL-separated K=V
  // 16 hexadecimal digits, chosen at random by the client: asked again with the same key (because
  // the answer was lost), the controller answers with the job it has already accepted. "" = none.
  std::string key;
};
void describe(auto& a, Submission& x) {
  a("workload", x.workload);
  a("script", x.script);
  a("environment", x.environment);
  a("key", x.key);
}
struct SubmitRequest {
  std::vector<Submission> submissions;
  bool test_only = false;  // validate and plan, change nothing
};
void describe(auto& a, SubmitRequest& x) {
  a("submissions", x.submissions);
  a("test_only", x.test_only);
}
struct SubmitResult {
  WorkloadId id;
  std::optional<ApiError> error;
  Instant planned_start;  // test_only
  std::vector<std::string> planned_nodes;
  std::string partition;  // where it was planned, or the first one of those asked
};
void describe(auto& a, SubmitResult& x) {
  a("id", x.id);
  a("error", x.error);
  a("planned_start_ms", x.planned_start);
  a("planned_nodes", x.planned_nodes);
  a("partition", x.partition);
}
struct SubmitReply {
  std::vector<SubmitResult> results;  // one per submission, in order
};
void describe(auto& a, SubmitReply& x) { a("results", x.results); }

// A job as people name it: "12", "12_3", "12_[1-5]". `array` is an index set or empty.
struct JobRef {
  std::uint32_t job = 0;
  std::string array;
};
void describe(auto& a, JobRef& x) {
  a("job", x.job);
  a("array", x.array);
}

enum class Verb : std::uint8_t {
  kCancel,
  kSignal,
  kHold,
  kRelease,
  kRequeue,
  kRequeueHold,
  kUpdate,
  kTop
};
template <>
struct EnumNames<Verb> {
  static constexpr std::array kTable{
      std::pair{Verb::kCancel, "cancel"sv},   std::pair{Verb::kSignal, "signal"sv},
      std::pair{Verb::kHold, "hold"sv},       std::pair{Verb::kRelease, "release"sv},
      std::pair{Verb::kRequeue, "requeue"sv}, std::pair{Verb::kRequeueHold, "requeue_hold"sv},
      std::pair{Verb::kUpdate, "update"sv},   std::pair{Verb::kTop, "top"sv}};
};

// Selected are the jobs named (all of them if none is named) that pass every filter given.
struct ActionRequest {
  Verb verb = Verb::kCancel;
  std::vector<JobRef> jobs;
  std::optional<StepId> step;  // of a single job: only that step
  std::string user, account, partition, qos, name, nodes;
  std::vector<std::string> states;  // "pending", "running", "suspended"
  // cancel, signal
  std::int32_t signal = 0;  // cancel: 0
  bool to_batch = false, to_steps = true, hurry = false;
  // update: the fields that are set; `workload` and `gang` are filled in by the controller
  std::string change;       // a WorkloadChanged as JSON
  bool admin_hold = false;  // hold by an operator rather than its owner
};
void describe(auto& a, ActionRequest& x) {
  a("verb", x.verb);
  a("jobs", x.jobs);
  a("step", x.step);
  a("user", x.user);
  a("account", x.account);
  a("partition", x.partition);
  a("qos", x.qos);
  a("name", x.name);
  a("nodes", x.nodes);
  a("states", x.states);
  a("signal", x.signal);
  a("to_batch", x.to_batch);
  a("to_steps", x.to_steps);
  a("hurry", x.hurry);
  a("change", x.change);
  a("admin_hold", x.admin_hold);
}
struct ActionResult {
  std::string job;  // as named in the request, or the number found by a filter
  std::optional<ApiError> error;
};
void describe(auto& a, ActionResult& x) {
  a("job", x.job);
  a("error", x.error);
}
struct ActionReply {
  std::vector<ActionResult> results;
};
void describe(auto& a, ActionReply& x) { a("results", x.results); }

// What a step wants of its allocation. Zero or empty = the allocation's own value.
struct StepRequest {
  GangId gang;
  std::uint32_t nodes_min = 0, nodes_max = 0, tasks = 0, tasks_per_node = 0, cpus_per_task = 0;
  std::optional<std::uint32_t> gpus_per_node;
  std::uint32_t gpus_per_task = 0, gpus_total = 0;
  std::string gpu_type;
  std::vector<std::string> nodes_in, nodes_out;
  std::uint32_t relative = kNoLimit;  // first node, counted within the allocation
  bool overlap = false, exact = false, interactive = false;
  std::string distribution;  // "block" (default) or "cyclic"
  StepOrder order;           // name, argv, environment, streams...; the rest is filled in
  std::string key;           // as of a Submission: asked again, it is the same step
};
void describe(auto& a, StepRequest& x) {
  a("gang", x.gang);
  a("key", x.key);
  a("nodes_min", x.nodes_min);
  a("nodes_max", x.nodes_max);
  a("tasks", x.tasks);
  a("tasks_per_node", x.tasks_per_node);
  a("cpus_per_task", x.cpus_per_task);
  a("gpus_per_node", x.gpus_per_node);
  a("gpus_per_task", x.gpus_per_task);
  a("gpus_total", x.gpus_total);
  a("gpu_type", x.gpu_type);
  a("nodes_in", x.nodes_in);
  a("nodes_out", x.nodes_out);
  a("relative", x.relative);
  a("overlap", x.overlap);
  a("exact", x.exact);
  a("interactive", x.interactive);
  a("distribution", x.distribution);
  a("order", x.order);
}
struct StepReply {
  StepId step = 0;
  Epoch epoch;
  std::vector<std::string> nodes;
  std::vector<std::uint32_t> tasks;  // per node
  std::vector<std::vector<std::uint32_t>> ranks;
};
void describe(auto& a, StepReply& x) {
  a("step", x.step);
  a("epoch", x.epoch);
  a("nodes", x.nodes);
  a("tasks", x.tasks);
  a("ranks", x.ranks);
}

struct NodeRequest {
  std::string nodes;   // host list
  std::string action;  // "drain", "resume", "down", "undrain"
  std::string reason;
};
void describe(auto& a, NodeRequest& x) {
  a("nodes", x.nodes);
  a("action", x.action);
  a("reason", x.reason);
}
struct PartitionRequest {
  std::string partition;
  PartitionState state = PartitionState::kUp;
};
void describe(auto& a, PartitionRequest& x) {
  a("partition", x.partition);
  a("state", x.state);
}
struct ConfigureRequest {
  ClusterSpec spec;
};
void describe(auto& a, ConfigureRequest& x) { a("spec", x.spec); }

}  // namespace tutti
