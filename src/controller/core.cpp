// Turns: inputs, commit, publication. What the inputs mean is in core_*.cpp.
#include "controller/core.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/check.h"
#include "model/reasons.h"
#include "scheduler/plan.h"
#include "state/apply.h"

namespace tutti::controller {

namespace {
int http_status(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid:
      return 400;
    case ErrorCode::kDenied:
      return 403;
    case ErrorCode::kNotFound:
      return 404;
    case ErrorCode::kConflict:
      return 409;
    case ErrorCode::kUnavailable:
      return 503;
    case ErrorCode::kExhausted:
      return 507;
    default:
      return 500;
  }
}
}  // namespace

Core::Core(journal::Journal& journal, Users& users, Log& log, CrashPoint crash_point)
    : journal_(journal),
      users_(users),
      log_(log),
      crash_point_(std::move(crash_point)),
      published_(std::make_shared<Published>()) {}

Status Core::recover(const std::optional<journal::Snapshot>& snapshot, std::uint64_t after, Instant now) {
  now_ = now;
  diag_.since = now;
  if (snapshot) {
    auto decoded = state::decode_snapshot(snapshot->body);
    if (!decoded) return tl::unexpected<Error>(decoded.error());
    state_ = std::move(*decoded);
    agenda_ = state::derive_agenda(state_);
  }
  Status replay = journal_.for_each_event(after, [this](std::uint64_t sequence, std::string_view body) -> Status {
    auto event = from_json<Event>(body);
    if (!event)
      return fail(ErrorCode::kCorrupt, fmt::format("event {}: {}", sequence, event.error().message));
    Status applied = state::apply(state_, agenda_, *event);
    if (!applied) return fail(ErrorCode::kCorrupt, fmt::format("event {}: {}", sequence, applied.error().message));
    return {};
  });
  if (!replay) return replay;
  publish();
  rebuild_books();
  engine_.configure(*state_.spec);
  // Agents will report; until then nobody knows what runs on their nodes.
  for (NodeIndex i = 0; i < state_.spec->nodes.size(); ++i) {
    const NodeState* node = state_.node(i);
    if (!node || node->status == NodeStatus::kNeverSeen) continue;
    if (state_.spec->nodes[i].kind == NodeKind::kPlanned) continue;
    unknown_since_[i] = now;
    if (node->status == NodeStatus::kUp)
      set_node_status(i, NodeStatus::kUnknown, "the controller restarted");
  }
  std::vector<std::uint32_t> active(agenda_.active.begin(), agenda_.active.end());
  for (std::uint32_t id : active) {
    // A step without "go" cannot go on: its orders died with the old controller, and no rank of it
    // has run. Who asked for it asks again.
    const Gang* g = state_.gangs.find(id);
    for (const Step& step : std::vector<Step>(g->steps))
      if (step.state == StepState::kPreparing)
        record(StepEnded{g->id, step.id, {1, 0}, Outcome::kLaunchFailed, {}, std::string(kStepLostAtRestart)});
    g = state_.gangs.find(id);
    if (g->state == GangState::kPreparing) prepare(*g);
    if (g->state == GangState::kEnding) end_gang(g->id, {}, {}, false);
  }
  expect_clients();
  dirty_ = true;
  return {};
}

void Core::rebuild_books() {
  node_by_name_.clear();
  for (NodeIndex i = 0; i < state_.spec->nodes.size(); ++i)
    node_by_name_[state_.spec->nodes[i].name] = i;
  limits_.clear();
  for (std::uint32_t id : agenda_.active) {
    const Gang* g = state_.gangs.find(id);
    if (g->state == GangState::kRunning) schedule_limit(*g);
  }
  avoidances_.clear();
  for (std::uint32_t id : agenda_.pending)
    for (GangId gang_id : state_.workloads.find(id)->gangs)
      if (const Gang* g = gang(gang_id); g && !g->avoid_nodes.empty())
        avoidances_.insert({now_ + Duration::seconds(30), gang_id.value()});
  std::vector<std::pair<Instant, std::uint32_t>> ends;
  for (std::uint32_t id : agenda_.finished) ends.push_back({state_.workloads.find(id)->ended, id});
  std::sort(ends.begin(), ends.end());
  finished_.assign(ends.begin(), ends.end());
  submission_keys_.clear();
  named_.clear();
  kept_.clear();
  state_.workloads.for_each([this](std::uint32_t id, const WorkloadEntry& entry) {
    const Workload& w = entry.workload;
    if (entry.is_open()) count_names(w);
    if (w.submission_key) submission_keys_[{w.uid, w.submission_key}] = WorkloadId(id);
  });
}

void Core::begin(Instant now) {
  now_ = now;
  basis_.reset();
  calls_.begin_turn();
  unknown_before_turn_ = unknown_since_;
  answers_in_turn_.clear();
  shutting_down_before_turn_ = shutting_down_;
}

void Core::record(EventBody body) {
  Event event{now_, std::move(body)};
  Status applied = state::apply(state_, agenda_, event);
  if (!applied) log_.error("event_does_not_fit", {{"error", applied.error().message}});
  TUTTI_CHECK(applied.has_value());
  batch_.events.push_back(to_json(event));
  ++diag_.events;
  dirty_ = true;
}

void Core::send(NodeIndex node, to_agent::Message order, std::string payload) {
  after_commit([this, node, order = std::move(order), payload = std::move(payload)] {
    engine_.send(node, order, payload);
  });
}

void Core::answer(ApiCall& call, HttpAnswer reply) {
  callers_.push_back(std::move(call));
  std::size_t index = callers_.size() - 1;
  after_commit([this, index, reply = std::move(reply)]() mutable { callers_[index].reply(std::move(reply)); });
}

void Core::refuse(ApiCall& call, const Error& error) {
  answer(call, {http_status(error.code), to_json(ApiError{error.code, error.reason, error.message})});
}

void Core::on_call(ApiCall call) {
  ++diag_.requests;
  if (!call.caller.known) {
    return refuse(call, Error{ErrorCode::kDenied, "not_identified", "who are you? TCP asks for a token, local programs use the socket api.sock", {}});
  }
  if (call.path == "/v1/workloads") return on_submit(call);
  if (call.path == "/v1/actions") return on_action(call);
  if (call.path == "/v1/steps") return on_step_request(call);
  if (call.path == "/v1/nodes") return on_node_request(call);
  if (call.path == "/v1/partitions") return on_partition_request(call);
  if (call.path == "/v1/accounts") return on_accounts(call);
  if (call.path == "/v1/reservations") return on_reservation_request(call);
  if (call.path == "/v1/configure") return on_configure(call);
  if (call.path == "/v1/queues") return on_queues_request(call);
  if (call.path == "/v1/shutdown") return on_shutdown(call);
  if (call.path == "/v1/wait") return on_wait(std::move(call));
  refuse(call, Error{ErrorCode::kNotFound, "unknown_path", fmt::format("no such interface: {}", call.path), {}});
}

void Core::on_wait(ApiCall call) {
  auto number = [&](const char* name, unsigned long otherwise) {
    auto it = call.query.find(name);
    return it == call.query.end() ? otherwise : std::strtoul(it->second.c_str(), nullptr, 10);
  };
  Waiter waiter;
  waiter.job = static_cast<std::uint32_t>(number("job", 0));
  waiter.until = call.query["until"];
  auto timeout_ms = static_cast<std::int64_t>(std::min(number("timeout_ms", 30'000), 600'000UL));
  waiter.deadline = now_ + Duration::milliseconds(timeout_ms);
  waiter.call = std::move(call);
  waiters_.push_back(std::move(waiter));
}

Status Core::commit() {
  if (!batch_.empty()) {
    crash_point_("before_commit");
    auto written = journal_.append(batch_);
    if (!written) {
      undo_turn(written.error());
      return tl::unexpected<Error>(written.error());
    }
    crash_point_("after_commit");
    batch_ = {};
    ++diag_.commits;
  }
  publish();
  auto effects = std::exchange(effects_, {});
  for (auto& effect : effects) effect();
  crash_point_("after_effects");
  callers_.clear();
  return {};
}

// As if the turn had not been: the last published picture is the last durable state, and what is
// kept beside the state follows it. Inputs that are no calls are given to the next turn again; what
// they changed outside (links, clients) was left to effects.
void Core::undo_turn(const Error& error) {
  log_.error("commit_failed", {{"error", error.message}});
  effects_.clear();
  batch_ = {};
  state_ = published()->state;
  diag_ = published()->diag;
  agenda_ = state::derive_agenda(state_);
  calls_.undo_turn();
  unknown_since_ = unknown_before_turn_;
  shutting_down_ = shutting_down_before_turn_;
  engine_.give_back(std::move(answers_in_turn_));
  answers_in_turn_.clear();
  rebuild_books();
  dirty_ = true;
  for (ApiCall& call : callers_)
    call.reply({507, to_json(ApiError{error.code, "journal",
                                      "nothing was changed: the journal cannot be written: " +
                                          error.message})});
  callers_.clear();
}

void Core::publish() {
  diag_.jobs_pending = agenda_.pending.size();
  diag_.jobs_running = agenda_.active.size();
  diag_.agents_connected = engine_.connected();
  diag_.channels = hub_.size();
  diag_.events_since_snapshot = journal_.last_sequence() - journal_.snapshot_sequence();
  auto picture = std::make_shared<Published>();
  picture->state = state_;
  picture->pass = pass_;
  picture->diag = diag_;
  std::atomic_store(&published_, std::shared_ptr<const Published>(std::move(picture)));
}

void Core::run_pass() {
  dirty_ = false;
  if (shutting_down_) return;
  scheduler::PassInput input{state_, agenda_, now_};
  scheduler::Plan plan = scheduler::plan(input);
  // What would book a device twice is not carried out; the cluster goes on with what runs. A promise
  // that does not hold is a defect to be told of, and no reason to stop the work of everybody.
  for (const std::string& fault : scheduler::lint_word(input, plan)) log_.error("plan_is_unsound", {{"fault", fault}});
  const std::vector<std::string> faults = scheduler::lint_holdings(input, plan);
  for (const std::string& fault : faults) log_.error("plan_is_refused", {{"fault", fault}});
  if (!faults.empty()) return;
  ++diag_.passes;
  diag_.last_pass = now_;
  diag_.depth_last = plan.stats.considered;
  diag_.queue_last = agenda_.pending.size();
  next_look_ = plan.next_look;
  carry_out_evictions(plan);
  for (const scheduler::Start& start : plan.starts) {
    start_gang(start);
    if (start.backfilled) ++diag_.backfilled;
  }
  if (!plan.promise_changes.empty()) record(PromisesChanged{std::move(plan.promise_changes)});
  // A start is an event of its own making: it does not ask for another pass.
  dirty_ = false;
  auto result = std::make_shared<PassResult>();
  result->waiting = std::move(plan.waiting);
  result->promises = std::move(plan.promises);
  pass_ = std::move(result);
}

void Core::note_pass_time(std::uint64_t microseconds) {
  diag_.pass_us_last = microseconds;
  diag_.pass_us_max = std::max(diag_.pass_us_max, microseconds);
  diag_.pass_us_total += microseconds;
}

std::optional<NodeIndex> Core::node_index(std::string_view name) const {
  auto it = node_by_name_.find(std::string(name));
  if (it == node_by_name_.end()) return std::nullopt;
  return it->second;
}

}  // namespace tutti::controller
