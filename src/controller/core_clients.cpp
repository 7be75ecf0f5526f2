// Clients that follow a gang: srun, salloc, tutti run.
#include <algorithm>

#include "controller/core.h"
#include "model/attach_protocol.h"

namespace tutti::controller {

namespace {
constexpr Duration kClientGrace = Duration::seconds(30);

bool lives_for_client(const Workload& w) {
  return w.kind == WorkloadKind::kSession && !w.is_batch() && !w.detached;
}
}

void Core::on_client_opened(std::shared_ptr<Link> link, Caller caller, GangId id) {
  const Gang* g = gang(id);
  const WorkloadEntry* entry = state_.workloads.find(g ? g->workload.value() : id.value());
  if (!entry) return link->close(std::string(kClosedNoSuchJob));
  if (!caller.is_operator && caller.uid != entry->workload.uid) return link->close(std::string(kClosedNotYourJob));
  hub_.open(link, caller, id);
  if (!g) return;
  tell_gang_changed(*g, g->state == GangState::kRunning);
}

void Core::on_client_message(const Link* link, std::string frame) {
  AttachHub::Client* client = hub_.find(link);
  if (!client) return;
  auto decoded = decode_frame<from_client::Message>(frame);
  if (!decoded) return client->link->close("not understood: " + decoded.error().message);
  const Gang* g = gang(client->gang);
  auto run_of = [&](StepId step) -> const StepRun* {
    if (!g) return nullptr;
    auto known = std::find_if(g->steps.begin(), g->steps.end(), [&](const Step& s) { return s.id == step; });
    return known == g->steps.end() ? nullptr : &book_of(*g, *known);
  };
  if (const auto* m = std::get_if<from_client::Follow>(&decoded->first)) {
    follow_step(*client, *m);
  } else if (std::holds_alternative<from_client::Own>(decoded->first)) {
    // An allocation without a script lives for the client that asked for it.
    const WorkloadEntry* entry = state_.workloads.find(client->gang.value());
    if (entry && lives_for_client(entry->workload)) hub_.own(*client);
  } else if (const auto* m = std::get_if<from_client::Taken>(&decoded->first)) {
    const StepRun* run = run_of(m->step);
    if (run && m->node < run->nodes.size()) send(run->nodes[m->node], to_agent::OutputTaken{run->key, m->next});
  } else if (const auto* m = std::get_if<from_client::Input>(&decoded->first)) {
    const StepRun* run = run_of(m->step);
    if (!run) return;
    for (NodeIndex node : run->nodes)
      send(node, to_agent::Input{run->key, m->rank, m->offset, m->end}, std::string(decoded->second));
  } else if (const auto* m = std::get_if<from_client::Signal>(&decoded->first)) {
    const StepRun* run = run_of(m->step);
    if (!run) return;
    if (m->signal == 9 || m->signal == 15) {
      end_step(client->gang, m->step, Outcome::kCancelled, client->caller.uid, {});
    } else {
      for (NodeIndex node : run->nodes) send(node, to_agent::Signal{run->key, m->signal, true, false, false});
    }
  } else if (const auto* m = std::get_if<from_client::Resize>(&decoded->first)) {
    if (const StepRun* run = run_of(m->step))
      for (NodeIndex node : run->nodes) send(node, to_agent::Resize{run->key, m->rows, m->columns});
  } else if (const auto* m = std::get_if<from_client::Leave>(&decoded->first)) {
    client_left(*client, m->keep_running);
    after_commit([this, keep = client->link] { hub_.leave(keep.get()); });
  }
}

void Core::follow_step(AttachHub::Client& client, const from_client::Follow& m) {
  const Gang* g = gang(client.gang);
  if (!g) return;
  auto step = std::find_if(g->steps.begin(), g->steps.end(), [&](const Step& s) { return s.id == m.step; });
  if (step == g->steps.end()) return;
  const StepRun& run = book_of(*g, *step);
  hub_.follow(client, m.step, m.have, run.nodes.size());
  for (std::size_t i = 0; i < run.nodes.size(); ++i) {
    std::uint64_t have = i < m.have.size() ? m.have[i] : 0;
    send(run.nodes[i], to_agent::SendOutput{run.key, have});
  }
  // What happened while nobody listened.
  if (step->state == StepState::kRunning)
    after_commit([link = client.link, s = m.step] {
      link->send(encode_frame(to_client::Message(to_client::StepStarted{s})));
    });
  if (step->state == StepState::kDone && run.unsized.empty()) tell_step_ended(run, client.gang, *step, client.link.get());
}

void Core::tell_step_ended(const StepRun& run, GangId id, const Step& step, const Link* only) {
  to_client::StepEnded message{step.id, step.exit, step.outcome, step.reason, run.by_uid};
  after_commit([this, id, message, sizes = run.output_sizes, only] {
    hub_.step_ended(id, message, sizes, only);
  });
}

void Core::client_left(const AttachHub::Client& client, bool keep_running) {
  if (keep_running) {
    // Nobody is expected back, also after a restart.
    if (const WorkloadEntry* entry = state_.workloads.find(client.gang.value());
        entry && client.owns_gang) {
      WorkloadChanged event;
      event.workload = entry->workload.id;
      event.detached = true;
      const Gang* g = gang(client.gang);
      if (g && std::any_of(g->steps.begin(), g->steps.end(), [](const Step& s) { return s.state != StepState::kDone; }))
        event.ends_with_steps = true;
      record(std::move(event));
    }
    return;
  }
  const Gang* g = gang(client.gang);
  if (!g) {
    // The client gave up before its job ever started.
    if (const WorkloadEntry* entry = state_.workloads.find(client.gang.value()); entry && client.owns_gang)
      (void)cancel(client.caller, whole_of(*entry), Outcome::kCancelled);
    return;
  }
  // A client that leaves before its steps are over gives them up.
  bool given_up = std::any_of(g->steps.begin(), g->steps.end(), [&](const Step& s) {
    return s.state != StepState::kDone && client.forwarded.contains(s.id);
  });
  for (const auto& [step, have] : client.forwarded) end_step(client.gang, step, Outcome::kCancelled, client.caller.uid, "the client left");
  g = gang(client.gang);
  if (!client.owns_gang || g->state == GangState::kDone || g->state == GangState::kEnding) return;
  GangEnding ending;
  ExitStatus exit = g->derived_exit;
  ending.outcome = exit == ExitStatus{} ? Outcome::kCompleted : Outcome::kFailed;
  bool cancelled = given_up || std::any_of(g->steps.begin(), g->steps.end(), [](const Step& s) { return s.outcome == Outcome::kCancelled; });
  if (g->state != GangState::kRunning || cancelled) ending.outcome = Outcome::kCancelled, ending.by_uid = client.caller.uid;
  ending.exit = exit;
  end_gang(client.gang, std::move(ending));
}

void Core::on_client_closed(const Link* link) {
  after_commit([this, link, deadline = now_ + kClientGrace] { hub_.lost(link, deadline); });
}

void Core::check_gone_clients() {
  if (hub_.next_deadline() > now_) return;
  for (const AttachHub::Gone& gone : hub_.gone(now_)) {
    log_.info("client_gone", {{"job", std::to_string(gone.gang.value())}});
    AttachHub::Client client;
    client.gang = gone.gang;
    client.owns_gang = gone.owns_gang;
    client.caller = {true, false, gone.uid, 0};
    for (StepId step : gone.steps) client.forwarded[step];
    client_left(client, false);
  }
  after_commit([this, now = now_] { hub_.forget_gone(now); });
}

// After a restart: those who followed a gang before come back soon, or they died meanwhile.
void Core::expect_clients() {
  state_.workloads.for_each([this](std::uint32_t, const WorkloadEntry& entry) {
    if (!entry.is_open() || entry.workload.detached) return;
    expect_client(entry);
    if (lives_for_client(entry.workload)) return;
    for (GangId gang_id : entry.gangs) {
      AttachHub::Gone who{now_ + kClientGrace, gang_id, false, {}, entry.workload.uid};
      for (const Step& step : gang(gang_id)->steps)
        if (step.state != StepState::kDone && step.id >= 0) who.steps.push_back(step.id);
      if (!who.steps.empty()) hub_.expect(std::move(who));
    }
  });
}

// A session without its client is nobody's.
void Core::expect_client(const WorkloadEntry& entry) {
  if (!lives_for_client(entry.workload)) return;
  GangId id(entry.workload.id.value());
  AttachHub::Gone who{now_ + kClientGrace, id, true, {}, entry.workload.uid};
  if (const Gang* g = gang(id))
    for (const Step& step : g->steps)
      if (step.state != StepState::kDone) who.steps.push_back(step.id);
  hub_.expect(std::move(who));
}

}  // namespace tutti::controller
