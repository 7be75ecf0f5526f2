// Room taken back: notice, answer, release. Who starts in it is decided by the pass that follows.
// Also what ranks report of themselves, and the deadline by which they must have met.
#include <algorithm>
#include <csignal>
#include <fmt/format.h>

#include "base/text.h"
#include "controller/core.h"

namespace tutti::controller {

namespace {
// What the ranks find where TUTTI_NOTICE_FILE points.
struct NoticeText {
  std::string cause;  // "preempted", "time_limit", "withdrawn"
  std::string text;   // one sentence
  std::int64_t deadline = 0;  // Unix time, seconds; 0 = none
  std::string mode;
  std::uint32_t beneficiary = 0;  // job number; 0 = nobody
};
void describe(auto& a, NoticeText& x) {
  a("cause", x.cause);
  a("text", x.text);
  a("deadline", x.deadline);
  a("mode", x.mode);
  a("beneficiary", x.beneficiary);
}

// The ready deadline's back-off grows with every try that failed.
constexpr std::int64_t kReadyBackOffSeconds = 30;
// What ends so long after its notice was withdrawn may still have ended because of it.
constexpr Duration kNoticeWorks = Duration::seconds(60);
}  // namespace

void Core::send_notice(const Gang& g) {
  const Workload& w = entry_of(g)->workload;
  const Eviction& e = *g.eviction;
  NoticeText text;
  text.cause = "preempted";
  text.text = e.reason;
  text.deadline = e.deadline.whole_seconds();
  text.mode = std::string(enum_name(e.mode));
  text.beneficiary = e.beneficiary_gang ? e.beneficiary_gang.value() : e.beneficiary.value();
  to_agent::Notice order;
  order.gang = g.id;
  order.epoch = g.epoch;
  order.text = to_json(text);
  order.signal = w.extras->terms.notice_signal;
  const WarningSignal& warning = w.extras->warning_signal;
  if (order.signal == 0 && warning.signal != 0) {
    // Who asked to be warned of the end is warned of this one alike.
    order.signal = warning.signal;
    order.to_batch = warning.to_batch_shell;
    order.to_steps = !warning.to_batch_shell;
  }
  if (order.signal == 0) order.signal = SIGTERM;
  if (e.mode == ReclaimMode::kSuspend) order.signal = 0;
  for (NodeIndex node : nodes_of(g)) {
    bool leaves = e.slots.empty();
    for (std::uint32_t slot : e.slots) leaves = leaves || g.slots[slot].node == node;
    if (leaves) send(node, order);
  }
}

void Core::send_limit_warning(const Gang& g) {
  const WarningSignal& warning = entry_of(g)->workload.extras->warning_signal;
  NoticeText text;
  text.cause = "time_limit";
  text.text = "the time limit ends";
  text.deadline = g.limit_end.whole_seconds();
  to_agent::Notice order;
  order.gang = g.id;
  order.epoch = g.epoch;
  order.text = to_json(text);
  order.signal = warning.signal;
  order.to_steps = !warning.to_batch_shell;
  order.to_batch = warning.to_batch_shell;
  for (NodeIndex node : nodes_of(g)) send(node, order);
}

void Core::carry_out_evictions(const scheduler::Plan& plan) {
  for (const scheduler::Withdraw& each : plan.withdrawals) {
    const Gang* g = gang(each.gang);
    if (!g || !g->eviction) continue;
    record(EvictionWithdrawn{each.gang, each.cause});
    log_.info("eviction_withdrawn", {{"job", std::to_string(each.gang.value())}, {"cause", each.cause}});
    NoticeText text;
    text.cause = "withdrawn";
    text.text = each.cause;
    to_agent::Notice order;
    order.gang = g->id;
    order.epoch = g->epoch;
    order.text = to_json(text);
    for (NodeIndex node : nodes_of(*g)) send(node, order);
  }
  for (const scheduler::TakeOver& each : plan.take_overs)
    record(EvictionTakenOver{each.gang, each.beneficiary.workload, each.beneficiary.array_index,
                             each.beneficiary.gang});
  for (const scheduler::Evict& each : plan.evictions) {
    record(EvictionDecided{each.gang, each.queue, each.eviction});
    const Gang& g = *gang(each.gang);
    log_.info("evicted", {{"job", std::to_string(g.id.value())}, {"reason", each.eviction.reason},
                          {"cost_gpu_seconds", std::to_string(each.eviction.cost_gpu_seconds)}});
    limits_.insert({each.eviction.deadline, g.id.value()});
    if (g.state == GangState::kPreparing || each.eviction.deadline <= now_)
      finish_eviction(each.gang);
    else
      send_notice(g);
  }
}

// The answer has come, or the deadline.
void Core::finish_eviction(GangId id) {
  const Gang* g = gang(id);
  if (!g || !g->eviction || g->state == GangState::kEnding || g->state == GangState::kDone) return;
  const Eviction e = *g->eviction;
  if (!e.slots.empty()) return shrink(id);
  if (e.mode == ReclaimMode::kSuspend) {
    for (NodeIndex node : nodes_of(*g))
      send(node, to_agent::Signal{{id, g->epoch, kExternStep}, SIGSTOP, true, true, true});
    record(GangSuspended{id});
    return;
  }
  GangEnding ending;
  ending.outcome = Outcome::kPreempted;
  ending.requeue = e.mode != ReclaimMode::kCancel;
  ending.counts_as_restart = ending.requeue;
  ending.eligible = now_;
  ending.reason = e.reason;
  end_gang(id, std::move(ending),
           fmt::format("*** JOB {} ON {{node}} CANCELLED AT {{time}} DUE TO PREEMPTION ***", id.value()));
}

// The surplus of an elastic gang leaves its nodes; the rest goes on.
void Core::shrink(GangId id) {
  const Gang& g = *gang(id);
  std::vector<NodeIndex> nodes;
  for (std::uint32_t slot : g.eviction->slots) nodes.push_back(g.slots[slot].node);
  for (NodeIndex node : nodes) {
    to_agent::EndGang order;
    order.gang = id;
    order.epoch = g.epoch;
    order.grace = state_.spec->kill_wait;
    send(node, std::move(order));
  }
}

bool Core::leaves(const Gang& g, NodeIndex node) {
  if (g.state != GangState::kRunning || !g.eviction) return false;
  const std::vector<std::uint32_t>& left = g.eviction->slots;
  return std::any_of(left.begin(), left.end(),
                     [&](std::uint32_t s) { return g.slots[s].node == node; });
}

// A node that an elastic gang leaves is clean.
bool Core::slot_left(GangId id, NodeIndex node) {
  const Gang* g = gang(id);
  if (!g || !leaves(*g, node)) return false;
  const std::vector<std::uint32_t> left = g->eviction->slots;
  // One after the other: numbers of slots close up, so all are dropped when the last is clean.
  clean_slots_[id.value()].insert(node);
  const std::set<NodeIndex>& clean = clean_slots_[id.value()];
  for (std::uint32_t s : left)
    if (!clean.contains(g->slots[s].node)) return true;
  for (const Step& step : g->steps)
    if (StepRun* run = calls_.edit({id, g->epoch, step.id}))
      for (NodeIndex each : clean) run->unfinished.erase(each);
  clean_slots_.erase(id.value());
  record(GangResized{id, left, {}, g->eviction->reason});
  tell_gang_changed(*gang(id), true);
  return true;
}

// A script that ends within its notice: over for good if it says so by exit code 0 and has not
// asked for another life by reporting what it saved.
bool Core::ends_evicted(const Gang& g, const ExitStatus& exit) const {
  if (!g.eviction || !g.eviction->slots.empty()) return false;
  const bool withdrawn = g.eviction->deadline >= Instant::never();
  if (withdrawn && g.eviction->decided + kNoticeWorks < now_) return false;
  return exit.code != 0 || exit.signal != 0 || g.eviction->saved.is_set();
}

void Core::on_notified(const from_agent::Notified& m) {
  const Gang* g = gang(m.key.gang);
  if (!g || g->epoch != m.key.epoch || g->state != GangState::kRunning) return;
  const GangId id = g->id;
  for (std::string_view line : split(m.text, '\n', EmptyPieces::kDrop)) {
    auto pair = split_once(line, '=');
    if (!pair) continue;
    if (pair->first == "X_TUTTI_CHECKPOINT") on_checkpoint(id, parse_integer<std::uint64_t>(pair->second).value_or(0));
    if (pair->first == "READY" && pair->second == "1" && !gang(id)->ranks_met.is_set())
      record(RanksMet{id, 0});
  }
}

void Core::on_checkpoint(GangId id, std::uint64_t step) {
  record(CheckpointReported{id, step});
  const Gang* g = gang(id);
  if (g->eviction && g->eviction->mode == ReclaimMode::kCheckpoint) finish_eviction(id);
}

// Ranks that have not met by their deadline never will: others can use the room meanwhile.
void Core::check_ready_deadline(GangId id) {
  const Gang* g = gang(id);
  const auto& deadline = entry_of(*g)->workload.extras->terms.ready_deadline;
  if (!deadline || g->ranks_met.is_set() || g->started + *deadline > now_) return;
  const WorkloadEntry& entry = *entry_of(*g);
  GangEnding ending;
  ending.outcome = Outcome::kLaunchFailed;
  ending.reason = fmt::format("its ranks had not met after {} s", deadline->whole_seconds());
  ending.requeue = entry.workload.requeue && entry.workload.is_batch();
  ending.counts_as_restart = ending.requeue;
  const std::uint32_t tries = std::min(g->restarts, 6u);
  ending.eligible = now_ + Duration::seconds(kReadyBackOffSeconds << tries);
  if (auto suspect = suspected_node(*g)) ending.avoid_node = state_.spec->nodes[*suspect].name;
  log_.warning("ranks_did_not_meet", {{"job", std::to_string(id.value())}, {"node", ending.avoid_node}});
  end_gang(id, std::move(ending),
           fmt::format("*** JOB {} ON {{node}} CANCELLED AT {{time}}: ITS RANKS DID NOT MEET ***", id.value()));
}

// A node that does not answer; else, of two or more, one on which no rank of a step came up.
std::optional<NodeIndex> Core::suspected_node(const Gang& g) const {
  for (const Slot& slot : g.slots)
    if (!engine_.reachable(slot.node)) return slot.node;
  for (const Step& step : g.steps) {
    if (step.id < 0 || step.state != StepState::kPreparing) continue;
    if (const StepRun* run = calls_.peek({g.id, g.epoch, step.id}); run && !run->missing.empty())
      return *run->missing.begin();
  }
  return std::nullopt;
}

}  // namespace tutti::controller
