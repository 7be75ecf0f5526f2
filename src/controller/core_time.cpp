// What the passing of time decides: limits, deadlines of roll calls, lost nodes, old jobs.
#include <algorithm>
#include <fmt/format.h>

#include "controller/core.h"
#include "controller/queries.h"

namespace tutti::controller {

void Core::schedule_limit(const Gang& g) {
  if (g.eviction) limits_.insert({g.eviction->deadline, g.id.value()});
  if (auto ready = entry_of(g)->workload.extras->terms.ready_deadline; ready && !g.ranks_met.is_set())
    limits_.insert({g.started + *ready, g.id.value()});
  if (!g.limit_end.is_set()) return;
  limits_.insert({g.limit_end, g.id.value()});
  if (Instant warning = warning_time(g); warning < Instant::never())
    limits_.insert({warning, g.id.value()});
}

// never() if there is no warning to give (any more).
Instant Core::warning_time(const Gang& g) const {
  const WarningSignal& warning = entry_of(g)->workload.extras->warning_signal;
  if (warning.signal == 0 || g.warned || !g.limit_end.is_set()) return Instant::never();
  // A lead that covers the whole run would fire before there is anything to save: half of it then.
  Duration lead = Duration::seconds(warning.seconds_before);
  const Duration whole = g.limit_end - g.started;
  if (lead >= whole) lead = Duration::milliseconds(whole.ms() / 2);
  return g.limit_end + (Duration() - lead);
}

void Core::check_limits() {
  while (!limits_.empty() && limits_.begin()->first <= now_) {
    GangId id(limits_.begin()->second);
    limits_.erase(limits_.begin());
    const Gang* g = gang(id);
    if (!g) continue;
    if (g->eviction && g->eviction->deadline <= now_) {
      finish_eviction(id);
      continue;
    }
    if (g->state != GangState::kRunning || g->suspended.is_set()) continue;
    check_ready_deadline(id);
    g = gang(id);
    if (g->state != GangState::kRunning || !g->limit_end.is_set()) continue;
    if (g->limit_end <= now_) {
      GangEnding ending;
      ending.outcome = Outcome::kTimeout;
      ending.exit = ExitStatus{};
      end_gang(id, std::move(ending), fmt::format("*** JOB {} ON {{node}} CANCELLED AT {{time}} DUE TO TIME LIMIT ***", id.value()));
      continue;
    }
    if (warning_time(*g) > now_) continue;
    record(GangWarned{id});
    send_limit_warning(*gang(id));
  }
}

void Core::check_roll_calls() {
  std::vector<std::pair<GangId, NodeIndex>> late;
  for (const auto& [id, call] : calls_.gangs())
    if (call.deadline <= now_ && !call.missing.empty()) late.push_back({id, *call.missing.begin()});
  for (const auto& [id, node] : late)
    if (const Gang* g = gang(id); g && g->state == GangState::kPreparing)
      roll_call_failed(*g, node, fmt::format("did not answer the roll call within {} s", state_.spec->roll_call_timeout.whole_seconds()));
  std::vector<StepKey> slow;
  for (const auto& [key, run] : calls_.steps())
    if (!run.running && run.deadline <= now_ && !run.ending && !run.missing.empty()) slow.push_back(key);
  for (const StepKey& key : slow) {
    StepRun* run = calls_.edit(key);
    run->worst = {1, 0};
    run->why = fmt::format("{} did not answer the roll call", state_.spec->nodes[*run->missing.begin()].name);
    end_step(key.gang, key.step, Outcome::kLaunchFailed, std::nullopt, run->why);
  }
}

void Core::check_nodes() {
  std::vector<NodeIndex> lost;
  for (const auto& [node, since] : unknown_since_)
    if (since + state_.spec->node_grace <= now_) lost.push_back(node);
  for (NodeIndex node : lost) {
    unknown_since_.erase(node);
    lose_node(node);
  }
  while (!avoidances_.empty() && avoidances_.begin()->first <= now_) {
    GangId id(avoidances_.begin()->second);
    avoidances_.erase(avoidances_.begin());
    const Gang* g = gang(id);
    if (g && g->state == GangState::kPending && !g->avoid_nodes.empty()) record(AvoidanceExpired{id});
  }
}

void Core::check_waiters() {
  auto due = [&](Waiter& waiter) {
    auto target = find_job(state_, waiter.job, nullptr);
    bool satisfied = !target;
    if (target) {
      bool unstarted = target->simple_unstarted || !target->unstarted.empty();
      auto every = [&](auto test) { return std::all_of(target->gangs.begin(), target->gangs.end(), [&](GangId id) { return test(*gang(id)); }); };
      if (waiter.until == "done")
        satisfied = !unstarted && every([](const Gang& g) { return g.state == GangState::kDone; });
      else if (waiter.until == "started")
        satisfied = !unstarted && every([](const Gang& g) { return g.state != GangState::kPending && g.state != GangState::kPreparing; });
      else
        satisfied = !unstarted && every([](const Gang& g) { return g.state != GangState::kPending; });
    }
    return satisfied || waiter.deadline <= now_;
  };
  for (std::size_t i = 0; i < waiters_.size();) {
    if (!due(waiters_[i])) {
      ++i;
      continue;
    }
    std::uint32_t job = waiters_[i].job;
    ApiCall call = std::move(waiters_[i].call);
    waiters_.erase(waiters_.begin() + static_cast<std::ptrdiff_t>(i));
    Published picture;
    picture.state = state_;
    picture.pass = pass_;
    auto text = state_json(picture, {{"jobs", std::to_string(job)}, {"states", "all"}}, {}, now_);
    if (text)
      answer(call, {200, std::move(*text)});
    else
      refuse(call, text.error());
  }
}

void Core::forget_old() {
  while (!finished_.empty() && finished_.front().first + state_.spec->min_job_age <= now_) {
    std::uint32_t id = finished_.front().second;
    finished_.pop_front();
    const WorkloadEntry* entry = state_.workloads.find(id);
    if (!entry || entry->is_open()) continue;
    if (named_.contains(id)) {
      kept_.insert(id);
      continue;
    }
    for (BlobId blob : {entry->workload.launch.script, entry->workload.launch.environment})
      if (blob) batch_.drop_blobs.push_back(*journal::parse_blob_id(to_hex(blob)));
    if (entry->workload.submission_key)
      submission_keys_.erase({entry->workload.uid, entry->workload.submission_key});
    record(WorkloadForgotten{WorkloadId(id)});
  }
}

void Core::on_time() {
  take_planned_answers();
  check_limits();
  check_reservations();
  check_roll_calls();
  check_nodes();
  check_gone_clients();
  forget_old();
  close_books();
  if (next_look_ <= now_) dirty_ = true;
}

// The book of a step that is over is kept while somebody may still ask for its output.
void Core::close_books() {
  std::vector<StepKey> over;
  for (const auto& [key, run] : calls_.steps()) {
    const Gang* g = gang(key.gang);
    bool present = g && g->epoch == key.epoch && g->state != GangState::kPending;
    bool wanted = present && (g->state == GangState::kRunning || hub_.followed(key.gang, key.step));
    bool open = present && (g->state == GangState::kRunning || g->state == GangState::kEnding) &&
                !run.unfinished.empty();
    if (!open && !wanted) over.push_back(key);
  }
  for (const StepKey& key : over) calls_.close(key);
}

Instant Core::next_time() const {
  Instant next = std::min({next_look_, calls_.next_deadline(), hub_.next_deadline()});
  next = std::min(next, next_reservation_time());
  if (!limits_.empty()) next = std::min(next, limits_.begin()->first);
  for (const auto& [node, since] : unknown_since_) next = std::min(next, since + state_.spec->node_grace);
  if (!avoidances_.empty()) next = std::min(next, avoidances_.begin()->first);
  if (!finished_.empty()) next = std::min(next, finished_.front().first + state_.spec->min_job_age);
  for (const Waiter& waiter : waiters_) next = std::min(next, waiter.deadline);
  return next;
}

void Core::end_all(bool requeue) {
  std::vector<std::uint32_t> ids(agenda_.active.begin(), agenda_.active.end());
  for (std::uint32_t id : ids) {
    const Gang* g = state_.gangs.find(id);
    if (!g || g->state == GangState::kEnding) continue;
    const Workload& w = entry_of(*g)->workload;
    GangEnding ending;
    ending.requeue = requeue && w.requeue && w.is_batch();
    ending.outcome = ending.requeue ? Outcome::kRequeued : Outcome::kCancelled;
    ending.eligible = now_;
    ending.by_uid = 0;
    end_gang(GangId(id), std::move(ending), fmt::format("*** JOB {} ON {{node}} CANCELLED AT {{time}} DUE TO SHUTDOWN ***", id));
  }
}

}  // namespace tutti::controller
