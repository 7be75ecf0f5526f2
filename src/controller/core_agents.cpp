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
  std::optional<NodeIndex> node = engine_.disconnect(link);
  if (!node || shutting_down_) return;
  unknown_since_[*node] = now_;
  set_node_status(*node, NodeStatus::kUnknown, "the agent's connection broke");
  // A roll call cannot wait for somebody who is gone; his word "ready" counts no more.
  std::vector<GangId> failed;
  for (const auto& [id, call] : calls_.gangs)
    if (call.missing.contains(*node)) failed.push_back(id);
  for (GangId id : failed)
    if (const Gang* g = gang(id)) roll_call_failed(*g, *node, "the agent's connection broke before it was ready");
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
    bool holds = g && g->epoch == report.epoch && agenda_.active.contains(report.gang.value()) &&
                 std::any_of(g->slots.begin(), g->slots.end(), [&](const Slot& s) { return s.node == node && !s.released; });
    if (!holds) {
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
  }
  std::vector<GangId> missing;
  for (std::uint32_t id : agenda_.active) {
    const Gang* g = state_.gangs.find(id);
    if (reported.contains(g->id)) continue;
    if (std::any_of(g->slots.begin(), g->slots.end(), [&](const Slot& s) { return s.node == node && !s.released; }))
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
  for (const from_agent::StepReport& step : report.steps) {
    there.insert(step.key.step);
    const Gang* g = gang(report.gang);
    auto known = std::find_if(g->steps.begin(), g->steps.end(), [&](const Step& s) { return s.id == step.key.step; });
    bool open = known != g->steps.end() && known->state != StepState::kDone;
    if (step.state == StepState::kDone) {
      from_agent::StepEnded ended;
      ended.key = step.key;
      ended.exit = step.exit;
      ended.usage = step.usage;
      if (open) on_step_ended(node, ended);
    } else if (!open) {
      send(node, to_agent::EndStep{step.key, Duration(), {}});
    } else {
      StepRun& run = book_of(*g, *known);
      if (run.running && step.state == StepState::kPreparing) send(node, to_agent::Go{step.key});
      if (!run.running && step.state == StepState::kPreparing) on_ready(node, from_agent::Ready{step.key});
    }
  }
  // Steps of ours that the node does not know: their ranks are gone.
  const Gang* g = gang(report.gang);
  std::vector<StepKey> lost;
  for (const Step& step : g->steps) {
    if (step.state == StepState::kDone || there.contains(step.id)) continue;
    for (const StepSlot& slot : step.slots)
      if (g->slots[slot.slot].node == node) lost.push_back({g->id, g->epoch, step.id});
  }
  for (const StepKey& key : lost) {
    StepRun* run = calls_.find(key);
    if (run && !run->running && !run->orders.empty()) {
      resend_step(*run, node);
      continue;
    }
    from_agent::StepEnded ended;
    ended.key = key;
    ended.exit.signal = 9;
    on_step_ended(node, ended);
  }
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
    if (StepRun* run = calls_.find(m->key)) {
      auto at = std::find(run->nodes.begin(), run->nodes.end(), node);
      if (at != run->nodes.end())
        hub_.output(m->key.gang, m->key.step, static_cast<std::uint32_t>(at - run->nodes.begin()), *m, payload);
    }
  } else if (const auto* m = std::get_if<from_agent::Notified>(&message)) {
    log_.info("notified", {{"job", std::to_string(m->key.gang.value())}, {"text", m->text}});
  }
}

void Core::on_ready(NodeIndex node, const from_agent::Ready& m) {
  const Gang* g = gang(m.key.gang);
  if (!g || g->epoch != m.key.epoch) return;  // late: an older life
  if (m.key.step == kExternStep) {
    if (g->state == GangState::kPreparing) gang_ready(*g, node);
    return;
  }
  StepRun* run = calls_.find(m.key);
  if (!run || run->running || run->forced != Outcome::kNone) return;
  run->missing.erase(node);
  if (!run->missing.empty()) return;
  run->running = true;
  run->orders.clear();
  record(StepStarted{g->id, m.key.step});
  for (NodeIndex n : run->nodes) send(n, to_agent::Go{m.key});
  GangId id = g->id;
  StepId step = m.key.step;
  after_commit([this, id, step] { hub_.tell(id, to_client::StepStarted{step}); });
}

void Core::on_refused(NodeIndex node, const from_agent::Refused& m) {
  const Gang* g = gang(m.key.gang);
  if (!g || g->epoch != m.key.epoch) return;
  if (m.key.step == kExternStep || m.key.step == kBatchStep) {
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
  StepRun* run = calls_.find(m.key);
  if (!run || run->running) return;
  run->forced = m.fault_of_job ? Outcome::kFailed : Outcome::kLaunchFailed;
  run->never_ran = true;
  run->worst = m.exit.code || m.exit.signal ? m.exit : ExitStatus{1, 0};
  run->why = fmt::format("{}: {}", state_.spec->nodes[node].name, m.reason);
  run->unfinished.erase(node);
  for (NodeIndex n : run->nodes)
    if (n != node) send(n, to_agent::Abort{m.key});
  if (run->unfinished.empty()) finish_step(m.key);
}

void Core::on_rank_exited(NodeIndex node, const from_agent::RankExited& m) {
  const Gang* g = gang(m.key.gang);
  if (!g || g->epoch != m.key.epoch) return;
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
    if (std::any_of(g->slots.begin(), g->slots.end(), [&](const Slot& s) { return s.node == node && !s.released; }))
      hit.push_back(g->id);
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

}  // namespace tutti::controller
