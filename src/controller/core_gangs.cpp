// The life of a gang: allocated, roll call, go, ending, clean. Each step is one event; orders leave
// after it is durable.
#include <algorithm>
#include <fmt/format.h>

#include "controller/core.h"
#include "controller/facts.h"
#include "controller/queries.h"
#include "model/reasons.h"

namespace tutti::controller {

namespace {
constexpr std::uint32_t kMaxLaunchFailures = 6;
constexpr Duration kAvoidFor = Duration::seconds(30);

void add_slot(SlotOrder& order, const Slot& slot) {
  order.cpu_ids.insert(order.cpu_ids.end(), slot.cpu_ids.begin(), slot.cpu_ids.end());
  order.gpus.insert(order.gpus.end(), slot.gpus.begin(), slot.gpus.end());
  std::sort(order.cpu_ids.begin(), order.cpu_ids.end());
  std::sort(order.gpus.begin(), order.gpus.end());
  order.parts.insert(order.parts.end(), slot.parts.begin(), slot.parts.end());
  order.memory_mib += slot.memory_mib;
}

journal::BlobId journal_id(BlobId id) { return *journal::parse_blob_id(to_hex(id)); }
}  // namespace

void Core::start_gang(const scheduler::Start& start) {
  const WorkloadEntry* entry = state_.workloads.find(start.element.workload.value());
  GangAllocated event;
  event.workload = start.element.workload;
  event.array_index = start.element.array_index;
  event.epoch = Epoch(state_.next_epoch);
  event.partition = start.partition;
  event.slots = start.slots;
  event.rendezvous_port = start.rendezvous_port;
  event.limit_end = now_ + start.limit;
  if (event.limit_end >= Instant::never()) event.limit_end = Instant();
  if (start.element.gang) {
    event.gang = start.element.gang;
    event.array_index = gang(start.element.gang)->array_index;
  } else if (!start.element.array_index || entry->unstarted.count() == 1) {
    // A simple job's gang, and the last element of an array, carry the workload's own number.
    event.gang = GangId(entry->workload.id.value());
  } else {
    event.gang = GangId(state_.next_id);
  }
  GangId id = event.gang;
  record(std::move(event));
  ++diag_.jobs_started;
  prepare(*gang(id));
}

void Core::prepare(const Gang& g, std::optional<NodeIndex> only) {
  const WorkloadEntry* entry = entry_of(g);
  if (!only) {
    GangCall& call = calls_.open(g.id);
    call.epoch = g.epoch;
    call.deadline = now_ + state_.spec->roll_call_timeout;
    call.missing.clear();
    for (const Slot& slot : g.slots) call.missing.insert(slot.node);
  }
  JobFacts facts = job_facts(state_, *entry, g);
  std::map<NodeIndex, to_agent::PrepareGang> orders;
  for (std::uint32_t i = 0; i < g.slots.size(); ++i) {
    NodeIndex node = g.slots[i].node;
    if (only && node != *only) continue;  // who is not there now is asked when he reports
    auto [it, is_first] = orders.try_emplace(node);
    if (!is_first) {
      // Components of a heterogeneous job share the node: it holds what all of them hold.
      add_slot(it->second.slot, g.slots[i]);
      continue;
    }
    it->second.job = facts;
    it->second.slot = slot_order(g, i);
    if (i == 0 && entry->workload.is_batch() && state_.spec->nodes[node].kind != NodeKind::kPlanned) {
      auto script = script_of(entry->workload);
      it->second.batch = batch_order(state_, *entry, g, std::move(script.first), script.second);
    }
  }
  for (auto& [node, order] : orders) send(node, std::move(order));
}

std::vector<NodeIndex> Core::nodes_of(const Gang& g) {
  std::vector<NodeIndex> nodes;
  for (const Slot& slot : g.slots)
    if (!slot.released && std::find(nodes.begin(), nodes.end(), slot.node) == nodes.end())
      nodes.push_back(slot.node);
  return nodes;
}

std::pair<std::string, std::string> Core::script_of(const Workload& workload) {
  auto text_of = [this](BlobId id) -> std::string {
    if (!id) return {};
    // Submitted in this very turn: not in the journal yet.
    for (const journal::Blob& blob : batch_.blobs)
      if (blob.id() == journal_id(id)) return blob.data();
    auto read = journal_.read_blob(journal_id(id));
    if (!read) log_.error("blob_missing", {{"error", read.error().message}});
    return read ? std::move(*read) : std::string();
  };
  return {text_of(workload.launch.script), text_of(workload.launch.environment)};
}

void Core::gang_ready(const Gang& g, NodeIndex node) {
  GangCall* call = calls_.edit(g.id);
  if (!call || call->epoch != g.epoch) return;
  call->missing.erase(node);
  if (call->missing.empty()) go_together(g.id);
}

void Core::go(const Gang& prepared) {
  GangId id = prepared.id;
  GangStarted event;
  event.gang = id;
  if (prepared.limit_end.is_set()) event.limit_end = now_ + (prepared.limit_end - prepared.allocated);
  record(std::move(event));
  const Gang& g = *gang(id);
  schedule_limit(g);
  for (NodeIndex node : nodes_of(g)) send(node, to_agent::Go{{g.id, g.epoch, kExternStep}});
  tell_gang_changed(g, true);
}

void Core::tell_gang_changed(const Gang& g, bool agents_ready) {
  to_client::GangChanged message;
  message.gang = g.id;
  message.state = g.state;
  message.outcome = g.outcome;
  message.epoch = g.epoch;
  for (const Slot& slot : g.slots) message.nodes.push_back(state_.spec->nodes[slot.node].name);
  message.last_failure = g.last_failure;
  message.agents_ready = agents_ready;
  message.limit_end = g.limit_end;
  GangId follow = g.id;
  after_commit([this, follow, message] { hub_.tell(follow, message); });
}

void Core::roll_call_failed(const Gang& g, NodeIndex node, const std::string& reason) {
  GangId id = g.id;
  Epoch epoch = g.epoch;
  std::vector<NodeIndex> nodes = nodes_of(g);
  calls_.close(id);
  std::uint32_t failures = g.launch_failures + 1;
  RollCallFailed event;
  event.gang = id;
  event.node = state_.spec->nodes[node].name;
  event.reason = reason;
  // The first retries go elsewhere at once; later ones wait longer and longer.
  event.retry_at = failures <= 2 ? now_ : now_ + Duration::seconds(5LL << std::min(failures - 2, 5u));
  event.hold = failures >= kMaxLaunchFailures;
  log_.warning("roll_call_failed", {{"job", std::to_string(id.value())}, {"node", event.node}, {"reason", reason}});
  record(std::move(event));
  for (NodeIndex n : nodes) send(n, to_agent::Abort{{id, epoch, kExternStep}});
  avoidances_.insert({now_ + kAvoidFor, id.value()});
  tell_gang_changed(*gang(id), false);
  release_peers(*gang(id), reason, gang(id)->eligible);
}

void Core::end_gang(GangId id, GangEnding ending, const std::string& notice, bool at_once) {
  const Gang* before = gang(id);
  if (!before || before->state == GangState::kDone) return;
  if (before->state != GangState::kEnding) {
    ending.gang = id;
    const WorkloadEntry* entry = entry_of(*before);
    bool pending = before->state == GangState::kPending;
    if (ending.requeue) remember_life(*entry, *before, ending);
    bool cut_short = ending.outcome != Outcome::kCompleted && ending.outcome != Outcome::kFailed;
    for (const Step& step : before->steps) {
      if (step.state == StepState::kDone) continue;
      StepRun& run = book_of(*before, step);
      run.ending = true;
      if (run.forced == Outcome::kNone && cut_short) run.forced = ending.outcome;
      run.by_uid = ending.by_uid;
    }
    switch (ending.outcome) {
      case Outcome::kCompleted: ++diag_.jobs_completed; break;
      case Outcome::kPreempted:
      case Outcome::kCancelled: ++diag_.jobs_cancelled; break;
      default: ++diag_.jobs_failed; break;
    }
    record(std::move(ending));
    calls_.close(id);
    go_together(id);  // those of its group wait for it no longer
    if (pending) {
      finish_gang(id);
      return;
    }
  }
  const Gang& g = *gang(id);
  for (NodeIndex node : nodes_of(g)) {
    to_agent::EndGang order;
    order.gang = id;
    order.epoch = g.epoch;
    order.grace = at_once ? Duration() : state_.spec->kill_wait;
    order.notice = notice;
    send(node, std::move(order));
  }
  tell_gang_changed(g, false);
}

void Core::release(GangId id, NodeIndex node) {
  if (slot_left(id, node)) return;
  const Gang* g = gang(id);
  if (!g || g->state != GangState::kEnding) return;
  for (std::uint32_t i = 0; i < g->slots.size(); ++i) {
    if (g->slots[i].node != node || g->slots[i].released) continue;
    // Steps end with their node: whatever did not report is over now.
    finish_steps_of(id, node);
    output_sizes_known(id, node, {});
    record(SlotReleased{id, i});
    g = gang(id);
    if (g->state == GangState::kDone) {
      finish_gang(id);
      return;
    }
    if (g->state != GangState::kEnding) {
      tell_gang_changed(*g, false);
      if (!g->avoid_nodes.empty()) avoidances_.insert({now_ + kAvoidFor, id.value()});
      return;
    }
  }
}

void Core::finish_steps_of(GangId id, NodeIndex node) {
  const Gang* g = gang(id);
  std::vector<StepKey> open;
  for (const Step& step : g->steps) {
    if (step.state == StepState::kDone) continue;
    StepRun& run = book_of(*g, step);
    run.missing.erase(node);
    run.unfinished.erase(node);
    // Whether its ranks had ended well by themselves, nobody has said.
    if (run.forced == Outcome::kNone) run.forced = Outcome::kCancelled;
    if (run.unfinished.empty()) open.push_back(run.key);
  }
  for (const StepKey& key : open) finish_step(key);
}

void Core::workload_closed(const WorkloadEntry& entry) {
  if (entry.is_open()) return;
  finished_.push_back({entry.ended, entry.workload.id.value()});
  drop_names(entry.workload);
}

void Core::finish_gang(GangId id) {
  const Gang* g = gang(id);
  const WorkloadEntry* entry = entry_of(*g);
  remember(*entry, g, nullptr, enum_name(g->outcome));
  workload_closed(*entry);
  tell_gang_changed(*g, false);
}

void Core::remember_life(const WorkloadEntry& entry, const Gang& g, const GangEnding& ending) {
  Gang life = g;
  life.state = GangState::kDone;
  life.outcome = ending.outcome;
  life.ended = now_;
  life.exit = ending.exit;
  life.last_failure = ending.reason;
  remember(entry, &life, nullptr, enum_name(ending.outcome));
}

void Core::remember(const WorkloadEntry& entry, const Gang* g, const IndexSet* unstarted,
                    std::string_view state_word) {
  if (!basis_) basis_ = scheduler::priority_basis(state_, now_);
  JobRecord record = record_of(state_, entry, g, now_, &*basis_);
  if (unstarted) record.unstarted = unstarted->to_string();
  if (!g) {
    record.gang.state = GangState::kDone;
    record.gang.outcome = entry.outcome;
    record.gang.ended = now_;
    record.gang.ended_by_uid = entry.ended_by_uid;
  }
  journal::HistoryRow row;
  row.job_id = record.gang.id.value();
  if (entry.workload.is_array()) {
    row.array_job_id = entry.workload.id.value();
    if (g && g->array_index) row.array_index = *g->array_index;
  }
  row.user = entry.workload.user;
  row.uid = entry.workload.uid;
  row.account = entry.workload.account;
  row.partition = record.partition;
  row.name = entry.workload.name;
  row.state = std::string(state_word);
  row.submit = entry.workload.submitted;
  row.start = g ? g->started : Instant();
  row.end = now_;
  row.record = to_json(record);
  batch_.history.push_back(std::move(row));
}

void Core::on_batch_done(const Gang& g, const ExitStatus& exit, Outcome outcome) {
  if (g.state != GangState::kRunning) return;
  if (ends_evicted(g, exit)) return finish_eviction(g.id);
  GangEnding ending;
  ending.outcome = outcome;
  ending.exit = exit;
  end_gang(g.id, std::move(ending));
}

}  // namespace tutti::controller
