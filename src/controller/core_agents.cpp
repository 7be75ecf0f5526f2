// What agents say: reports after (re)connecting, answers in roll calls, ends of steps, output.
#include <algorithm>
#include <fmt/format.h>

#include "controller/core.h"
#include "model/reasons.h"

namespace tutti::controller {

void Core::on_agent_message(const std::shared_ptr<Link>& link, std::string frame) {
  auto decoded = decode_frame<from_agent::Message>(frame);
  if (!decoded) {
    log_.warning("agent_message_refused", {{"error", decoded.error().message}});
    link->close("not understood: " + decoded.error().message);
    return;
  }
  if (const auto* hello = std::get_if<from_agent::Hello>(&decoded->first)) return on_hello(link, *hello);
  std::optional<NodeIndex> node = engine_.node_of(link.get());
  if (!node) return link->close("say hello first");
  on_agent(*node, decoded->first, decoded->second);
}

void Core::on_agent_closed(const Link* link) {
  std::optional<NodeIndex> node = engine_.node_of(link);
  if (!node) return;
  after_commit([this, link] { engine_.disconnect(link); });
  if (shutting_down_) return;
  unknown_since_[*node] = now_;
  set_node_status(*node, NodeStatus::kUnknown, "the agent's connection broke");
  // A roll call cannot wait for somebody who is gone, and if he had said "ready", that counts no
  // more.
  std::vector<GangId> failed;
  for (const auto& [id, call] : calls_.gangs()) {
    const Gang* g = gang(id);
    if (g && g->state == GangState::kPreparing && holds(*g, *node)) failed.push_back(id);
  }
  for (GangId id : failed)
    roll_call_failed(*gang(id), *node, "the agent's connection broke before all were ready");
}

bool Core::holds(const Gang& g, NodeIndex node) {
  return std::any_of(g.slots.begin(), g.slots.end(),
                     [&](const Slot& s) { return s.node == node && !s.released; });
}

void Core::set_node_status(NodeIndex node, NodeStatus status, const std::string& reason) {
  NodeState next = *state_.node(node);
  if (next.status == status) return;
  next.status = status;
  next.changed = now_;
  if (!next.drained && !next.down) next.reason = status == NodeStatus::kUp ? "" : reason;
  log_.info("node_status", {{"node", state_.spec->nodes[node].name}, {"status", std::string(enum_name(status))}});
  record(NodeChanged{state_.spec->nodes[node].name, std::move(next)});
}

void Core::on_hello(const std::shared_ptr<Link>& link, const from_agent::Hello& hello) {
  std::optional<NodeIndex> node = node_index(hello.node);
  if (!node) {
    log_.warning("agent_of_unknown_node", {{"node", hello.node}});
    return link->close(fmt::format("node {} is not configured", hello.node));
  }
  if (hello.protocol != kAgentProtocol)
    return link->close(fmt::format("agent protocol {}, this controller speaks {}", hello.protocol, kAgentProtocol));
  if (auto old = engine_.connect(*node, link); old && old != link) old->close("another agent of this node took over");
  send(*node, to_agent::Welcome{journal_.cluster_id(), state_.spec->kill_wait});
  NodeState next = *state_.node(*node);
  next.status = NodeStatus::kUp;
  next.changed = now_;
  next.booted = hello.booted;
  next.agent_started = hello.started;
  next.agent_version = hello.version;
  next.kernel = hello.kernel;
  if (!next.drained && !next.down) next.reason.clear();
  unknown_since_.erase(*node);
  record(NodeChanged{hello.node, std::move(next)});
  log_.info("agent_connected", {{"node", hello.node}, {"version", hello.version}, {"gangs", std::to_string(hello.gangs.size())}});
  reconcile(*node, hello);
}

// What runs and is known continues; what runs and is not known is ended; what should run and does
// not has failed, and says so.
void Core::reconcile(NodeIndex node, const from_agent::Hello& hello) {
  std::set<GangId> reported;
  for (const from_agent::GangReport& report : hello.gangs) {
    const Gang* g = gang(report.gang);
    bool ours = g && g->epoch == report.epoch && agenda_.active.contains(report.gang.value()) &&
                holds(*g, node);
    if (!ours) {
      log_.warning("unknown_gang_on_node", {{"node", hello.node}, {"job", std::to_string(report.gang.value())}});
      send(node, to_agent::EndGang{report.gang, report.epoch, state_.spec->kill_wait, {}});
      continue;
    }
    reported.insert(report.gang);
    if (g->state == GangState::kEnding) {
      send(node, to_agent::EndGang{g->id, g->epoch, state_.spec->kill_wait, {}});
      continue;
    }
    if (g->state == GangState::kPreparing) {
      prepare(*g, node);  // the agent answers ready again
      continue;
    }
    if (!report.started) send(node, to_agent::Go{{g->id, g->epoch, kExternStep}});
    reconcile_steps(node, report);
    // Whether it heard of its eviction before its agent was gone, nobody knows.
    if (g = gang(report.gang); g && g->state == GangState::kRunning && g->eviction && g->eviction->deadline < Instant::never()) send_notice(*g);
  }
  std::vector<GangId> missing;
  for (std::uint32_t id : agenda_.active) {
    const Gang* g = state_.gangs.find(id);
    if (reported.contains(g->id)) continue;
    if (holds(*g, node))
      missing.push_back(g->id);
  }
  for (GangId id : missing) {
    const Gang* g = gang(id);
    if (g->state == GangState::kPreparing) {
      prepare(*g, node);
    } else if (g->state == GangState::kEnding) {
      release(id, node);
    } else {
      node_failed(id, node, "the node came back without this job");
      release(id, node);
    }
  }
}

void Core::reconcile_steps(NodeIndex node, const from_agent::GangReport& report) {
  std::set<StepId> there;
  std::map<StepId, std::uint64_t> sizes;
  for (const from_agent::StepReport& step : report.steps) {
    there.insert(step.key.step);
    if (step.state == StepState::kDone) sizes[step.key.step] = step.output_size;
    const Gang* g = gang(report.gang);
    auto known = std::find_if(g->steps.begin(), g->steps.end(), [&](const Step& s) { return s.id == step.key.step; });
    bool open = known != g->steps.end() && known->state != StepState::kDone;
    if (known != g->steps.end()) ask_for_output(book_of(*g, *known), node);
    if (open)
      after_commit([this, id = g->id, id_of_step = known->id] { hub_.tell(id, to_client::InputWanted{id_of_step}); });
    if (step.state == StepState::kDone) {
      from_agent::StepEnded ended;
      ended.key = step.key;
      ended.exit = step.exit;
      ended.usage = step.usage;
      ended.never_ran = step.never_ran;
      ended.out_of_memory = step.out_of_memory;
      ended.output_size = step.output_size;
      if (open) on_step_ended(node, ended);
    } else if (!open) {
      send(node, to_agent::EndStep{step.key, Duration(), {}});
    } else {
      const StepRun& run = book_of(*g, *known);
      bool prepared = step.state == StepState::kPreparing;
      if (run.ending)
        tell_to_end(run, node, prepared && !run.running);
      else if (run.running && prepared)
        send(node, to_agent::Go{step.key});
    }
  }
  output_sizes_known(report.gang, node, sizes);
  // Steps of ours that the node does not know: their ranks are gone.
  const Gang* g = gang(report.gang);
  std::vector<StepKey> lost;
  for (const Step& step : g->steps) {
    if (step.state == StepState::kDone || there.contains(step.id)) continue;
    for (const StepSlot& slot : step.slots)
      if (g->slots[slot.slot].node == node) lost.push_back({g->id, g->epoch, step.id});
  }
  for (const StepKey& key : lost) {
    const StepRun* run = calls_.peek(key);
    bool never_ran = run && !run->running;
    if (never_ran && !run->ending && run->orders) {
      resend_step(*run, node);
      continue;
    }
    from_agent::StepEnded ended;
    ended.key = key;
    ended.never_ran = never_ran;
    if (!never_ran) ended.exit.signal = 9;
    on_step_ended(node, ended);
  }
}

// What the lost connection carried is lost: output goes on from where the clients are.
void Core::ask_for_output(const StepRun& run, NodeIndex node) {
  auto needed = hub_.needed(run.key.gang, run.key.step);
  if (!needed) return;
  for (std::size_t i = 0; i < run.nodes.size() && i < needed->size(); ++i)
    if (run.nodes[i] == node) send(node, to_agent::SendOutput{run.key, needed->at(i)});
}

void Core::on_agent(NodeIndex node, const from_agent::Message& message, std::string_view payload) {
  if (const auto* m = std::get_if<from_agent::Ready>(&message)) {
    on_ready(node, *m);
  } else if (const auto* m = std::get_if<from_agent::Refused>(&message)) {
    on_refused(node, *m);
  } else if (const auto* m = std::get_if<from_agent::StepEnded>(&message)) {
    on_step_ended(node, *m);
  } else if (const auto* m = std::get_if<from_agent::RankExited>(&message)) {
    on_rank_exited(node, *m);
  } else if (const auto* m = std::get_if<from_agent::Clean>(&message)) {
    const Gang* g = gang(m->gang);
    if (g && g->epoch == m->epoch) release(m->gang, node);
  } else if (const auto* m = std::get_if<from_agent::Output>(&message)) {
    if (const StepRun* run = calls_.peek(m->key)) {
      auto at = std::find(run->nodes.begin(), run->nodes.end(), node);
      if (at != run->nodes.end())
        hub_.output(m->key.gang, m->key.step, static_cast<std::uint32_t>(at - run->nodes.begin()), *m, payload);
    }
  } else if (const auto* m = std::get_if<from_agent::Notified>(&message)) {
    on_notified(*m);
  }
}

void Core::on_ready(NodeIndex node, const from_agent::Ready& m) {
  const Gang* g = gang(m.key.gang);
  if (!g || g->epoch != m.key.epoch) return;  // late: an older life
  if (m.key.step == kExternStep) {
    if (g->state == GangState::kPreparing) gang_ready(*g, node);
    return;
  }
  StepRun* run = calls_.edit(m.key);
  if (!run || run->running || run->ending) return;
  run->missing.erase(node);
  if (!run->missing.empty()) return;
  run->running = true;
  run->orders.reset();
  record(StepStarted{g->id, m.key.step});
  for (NodeIndex n : run->nodes) send(n, to_agent::Go{m.key});
  GangId id = g->id;
  StepId step = m.key.step;
  after_commit([this, id, step] { hub_.tell(id, to_client::StepStarted{step}); });
}

void Core::on_refused(NodeIndex node, const from_agent::Refused& m) {
  const Gang* g = gang(m.key.gang);
  if (!g || g->epoch != m.key.epoch || !holds(*g, node)) return;
  if (m.key.step == kExternStep || m.key.step == kBatchStep) {
    // "Go" came to a node that has nothing prepared: a broken start.
    if (g->state == GangState::kRunning) return node_failed(g->id, node, m.reason);
    if (g->state != GangState::kPreparing) return;
    if (!m.fault_of_job) return roll_call_failed(*g, node, m.reason);
    GangEnding ending;
    ending.outcome = Outcome::kFailed;
    ending.exit = m.exit.code || m.exit.signal ? m.exit : ExitStatus{1, 0};
    ending.reason = m.reason;
    log_.warning("launch_refused", {{"job", std::to_string(g->id.value())}, {"reason", m.reason}});
    end_gang(g->id, std::move(ending), {}, true);
    return;
  }
  StepRun* run = calls_.edit(m.key);
  if (!run || run->running) return;
  bool first = !run->ending;
  run->ending = true;
  if (run->forced == Outcome::kNone) run->forced = m.fault_of_job ? Outcome::kFailed : Outcome::kLaunchFailed;
  run->worst = worse(run->worst, m.exit.code || m.exit.signal ? m.exit : ExitStatus{1, 0});
  if (run->why.empty()) run->why = fmt::format("{}: {}", state_.spec->nodes[node].name, m.reason);
  run->missing.erase(node);
  run->unfinished.erase(node);
  if (first)
    for (NodeIndex n : run->unfinished) send(n, to_agent::Abort{m.key});
  if (run->unfinished.empty()) finish_step(m.key);
}

void Core::on_rank_exited(NodeIndex node, const from_agent::RankExited& m) {
  const Gang* g = gang(m.key.gang);
  if (!g || g->epoch != m.key.epoch) return;
  if (leaves(*g, node)) return;  // the step goes on without this node
  to_client::RankExited message{m.key.step, state_.spec->nodes[node].name, m.rank, m.exit, m.message};
  GangId id = g->id;
  after_commit([this, id, message] { hub_.tell(id, message); });
}

void Core::on_step_ended(NodeIndex node, const from_agent::StepEnded& m) {
  const Gang* g = gang(m.key.gang);
  if (!g || g->epoch != m.key.epoch) return;
  auto step = std::find_if(g->steps.begin(), g->steps.end(), [&](const Step& s) { return s.id == m.key.step; });
  if (step == g->steps.end() || step->state == StepState::kDone) return;
  StepRun& run = book_of(*g, *step);
  if (leaves(*g, node) && run.unfinished.size() > 1) {
    run.unfinished.erase(node);
    return;
  }
  if (m.never_ran && !run.ending && run.unfinished.contains(node)) {
    // Nobody had told it to end: what should have run there has not.
    std::string why = "its ranks never ran";
    if (m.key.step == kBatchStep) return node_failed(g->id, node, why);
    if (!run.running) return on_refused(node, from_agent::Refused{m.key, why, false, {}});
    run.forced = Outcome::kLaunchFailed;
    run.worst = worse(run.worst, {1, 0});
    run.why = fmt::format("{}: {}", state_.spec->nodes[node].name, why);
  }
  if (!run.unfinished.erase(node)) return;  // said before
  run.missing.erase(node);
  if (!m.never_ran) run.worst = worse(m.exit, run.worst);
  run.out_of_memory |= m.out_of_memory;
  run.usage.cpu_ms += m.usage.cpu_ms;
  run.usage.max_rss_kib = std::max(run.usage.max_rss_kib, m.usage.max_rss_kib);
  for (std::size_t i = 0; i < run.nodes.size(); ++i)
    if (run.nodes[i] == node) run.output_sizes[i] = m.output_size;
  if (run.unfinished.empty()) finish_step(m.key);
}

void Core::node_failed(GangId id, NodeIndex node, const std::string& reason) {
  const Gang* g = gang(id);
  if (!g || g->state == GangState::kDone || g->state == GangState::kEnding) return;
  const WorkloadEntry* entry = entry_of(*g);
  GangEnding ending;
  ending.outcome = Outcome::kNodeFail;
  ending.exit.signal = 9;
  ending.reason = fmt::format("{}: {}", state_.spec->nodes[node].name, reason);
  // Somebody's terminal cannot be started again; a script can. The user's retry count is untouched.
  ending.requeue = entry->workload.requeue && entry->workload.is_batch();
  ending.eligible = now_;
  ending.avoid_node = state_.spec->nodes[node].name;
  log_.warning("node_failed_under_job", {{"job", std::to_string(id.value())}, {"node", ending.avoid_node}, {"reason", reason}});
  end_gang(id, std::move(ending), fmt::format("*** JOB {} ON {{node}} CANCELLED AT {{time}} DUE TO NODE FAILURE ***", id.value()), true);
}

void Core::lose_node(NodeIndex node) {
  set_node_status(node, NodeStatus::kLost, "the agent did not come back");
  std::vector<GangId> hit;
  for (std::uint32_t id : agenda_.active) {
    const Gang* g = state_.gangs.find(id);
    if (holds(*g, node)) hit.push_back(g->id);
  }
  for (GangId id : hit) {
    const Gang* g = gang(id);
    if (g->state == GangState::kPreparing) {
      roll_call_failed(*g, node, "the node is lost");
      continue;
    }
    node_failed(id, node, "the node is lost");
    release(id, node);
  }
}

void Core::take_planned_answers() {
  for (const AgentAnswer& a : engine_.take_answers()) {
    answers_in_turn_.push_back(a);
    on_agent(a.node, a.message, a.payload);
  }
}

}  // namespace tutti::controller
