// Steps: created by srun inside an allocation, called like a gang, booked to their end.
#include <algorithm>
#include <fmt/format.h>

#include "controller/core.h"
#include "controller/facts.h"
#include "model/reasons.h"
#include "scheduler/step_layout.h"

namespace tutti::controller {

void Core::on_step_request(ApiCall& call) {
  auto parsed = from_json<StepRequest>(std::string_view(call.body));
  if (!parsed) return refuse(call, Error{ErrorCode::kInvalid, std::string(reason::kMalformed), parsed.error().message, {}});
  StepRequest& request = *parsed;
  const Gang* g = gang(request.gang);
  if (!g) return refuse(call, Error{ErrorCode::kNotFound, std::string(reason::kUnknownJob), fmt::format("job {} is not known", request.gang.value()), {}});
  const WorkloadEntry* entry = entry_of(*g);
  if (!call.caller.is_operator && call.caller.uid != entry->workload.uid)
    return refuse(call, Error{ErrorCode::kDenied, std::string(reason::kNotOwner), "only the owner of a job launches steps in it", {}});
  auto key = request_key(request.key);
  if (!key) return refuse(call, key.error());
  for (const Step& known : g->steps)
    if (*key && known.request_key == *key) return answer(call, {200, to_json(reply_of(*g, known))});
  if (g->state != GangState::kRunning)
    return refuse(call, Error{ErrorCode::kConflict, std::string(g->state == GangState::kDone || g->state == GangState::kEnding ? reason::kAlreadyDone : reason::kNotRunning), fmt::format("job {} is {}", g->id.value(), enum_name(g->state)), {}});
  auto layout = scheduler::lay_out_step(*state_.spec, entry->workload, *g, request);
  if (!layout) return refuse(call, layout.error());

  Step step;
  // One step of a life has the name "interactive"; a second terminal is a step like others.
  bool named = std::any_of(g->steps.begin(), g->steps.end(), [](const Step& s) { return s.id == kInteractiveStep; });
  step.id = request.interactive && !named ? kInteractiveStep : next_step_id(*g);
  step.request_key = *key;
  step.name = request.order.name;
  step.created = now_;
  step.slots = layout->slots;
  step.cpus_per_task = layout->cpus_per_task;
  step.overlap = request.overlap || request.interactive;
  step.takes_gpus = request.gpus_per_task || request.gpus_total || request.gpus_per_node;
  GangId id = g->id;
  record(StepCreated{id, step});
  g = gang(id);

  StepReply reply = reply_of(*g, step);
  StepOrder order = std::move(request.order);
  order.step = step.id;
  order.nodes = reply.nodes;
  order.tasks = reply.tasks;
  order.total_tasks = layout->total_tasks;
  order.tasks_per_node = request.tasks_per_node ? request.tasks_per_node : order.tasks_per_node;
  order.cpus_per_task = layout->cpus_per_task;
  order.cpus_per_task_given = request.cpus_per_task > 0;
  order.gpus_per_task = request.gpus_per_task;
  order.distribution = request.distribution.starts_with("cyclic") ? "Cyclic" : "Block";
  call_step(*g, step, std::move(order));
  answer(call, {200, to_json(reply)});
}

StepReply Core::reply_of(const Gang& g, const Step& step) const {
  StepReply reply;
  reply.step = step.id;
  reply.epoch = g.epoch;
  for (const StepSlot& slot : step.slots) {
    reply.nodes.push_back(state_.spec->nodes[g.slots[slot.slot].node].name);
    reply.tasks.push_back(static_cast<std::uint32_t>(slot.ranks.size()));
    reply.ranks.push_back(slot.ranks);
  }
  return reply;
}

StepId Core::next_step_id(const Gang& g) const {
  StepId next = 0;
  for (const Step& step : g.steps) next = std::max(next, step.id + 1);
  return next;
}

void Core::call_step(const Gang& g, const Step& step, StepOrder order) {
  StepRun& run = book_of(g, step);
  run.deadline = now_ + state_.spec->roll_call_timeout;
  auto orders = std::make_shared<std::vector<StepOrder>>();
  for (std::size_t i = 0; i < step.slots.size(); ++i) {
    order.node_id = static_cast<std::uint32_t>(i);
    order.ranks = step.slots[i].ranks;
    order.gpus = step.slots[i].gpus;
    orders->push_back(order);
    send(run.nodes[i], to_agent::PrepareStep{g.id, g.epoch, order});
  }
  run.orders = std::move(orders);
}

void Core::resend_step(const StepRun& run, NodeIndex node) {
  for (std::size_t i = 0; i < run.nodes.size(); ++i)
    if (run.nodes[i] == node) send(node, to_agent::PrepareStep{run.key.gang, run.key.epoch, run.orders->at(i)});
}

// The book of a step; opened from the state when there is none (after a restart).
StepRun& Core::book_of(const Gang& g, const Step& step) {
  StepKey key{g.id, g.epoch, step.id};
  StepRun& run = calls_.open(key);
  if (run.key == key) return run;
  run.key = key;
  run.running = step.state != StepState::kPreparing;
  run.deadline = now_ + state_.spec->roll_call_timeout;
  for (const StepSlot& slot : step.slots) {
    NodeIndex node = g.slots[slot.slot].node;
    run.nodes.push_back(node);
    if (step.state == StepState::kPreparing) run.missing.insert(node);
    if (step.state != StepState::kDone) run.unfinished.insert(node);
    bool held = g.state == GangState::kRunning || g.state == GangState::kEnding;
    if (step.state == StepState::kDone && held && !g.slots[slot.slot].released) run.unsized.insert(node);
  }
  run.output_sizes.assign(run.nodes.size(), 0);
  return run;
}

// What the node has of the output of steps that are over: `sizes`, nothing of others.
void Core::output_sizes_known(GangId id, NodeIndex node, const std::map<StepId, std::uint64_t>& sizes) {
  const Gang* g = gang(id);
  for (const Step& step : g->steps) {
    bool here = step.state == StepState::kDone &&
                std::any_of(step.slots.begin(), step.slots.end(), [&](const StepSlot& s) { return g->slots[s.slot].node == node; });
    if (!here) continue;
    StepRun& run = book_of(*g, step);
    if (!run.unsized.erase(node)) continue;
    auto size = sizes.find(step.id);
    for (std::size_t i = 0; i < run.nodes.size(); ++i)
      if (run.nodes[i] == node && size != sizes.end()) run.output_sizes[i] = size->second;
    if (run.unsized.empty()) tell_step_ended(run, id, step, nullptr);
  }
}

void Core::end_step(GangId id, StepId step_id, Outcome outcome, std::optional<std::uint32_t> uid,
                    const std::string& why) {
  const Gang* g = gang(id);
  if (!g) return;
  auto step = std::find_if(g->steps.begin(), g->steps.end(), [&](const Step& s) { return s.id == step_id; });
  if (step == g->steps.end() || step->state == StepState::kDone) return;
  StepRun& run = book_of(*g, *step);
  if (run.ending) return;
  run.ending = true;
  if (run.forced == Outcome::kNone) run.forced = outcome;
  run.by_uid = uid;
  if (run.why.empty()) run.why = why;
  for (NodeIndex node : run.unfinished) tell_to_end(run, node, !run.running);
}

void Core::tell_to_end(const StepRun& run, NodeIndex node, bool not_started) {
  if (not_started) return send(node, to_agent::Abort{run.key});
  send(node, to_agent::EndStep{
                 run.key, state_.spec->kill_wait,
                 fmt::format("*** STEP {}.{} ON {{node}} CANCELLED AT {{time}}{} ***", run.key.gang.value(),
                             run.key.step, run.forced == Outcome::kTimeout ? " DUE TO TIME LIMIT" : "")});
}

// Every node has reported the end, or cannot any more.
void Core::finish_step(const StepKey& key) {
  StepRun* run = calls_.edit(key);
  const Gang* g = gang(key.gang);
  if (!run || !g || g->epoch != key.epoch) return;
  auto known = std::find_if(g->steps.begin(), g->steps.end(), [&](const Step& s) { return s.id == key.step; });
  if (known == g->steps.end() || known->state == StepState::kDone) return;
  Outcome outcome = run->forced;
  // A cancelled script that still ended by itself with an error has failed, as Slurm books it.
  if (key.step == kBatchStep && outcome == Outcome::kCancelled && run->worst.signal == 0 && run->worst.code != 0)
    outcome = Outcome::kFailed;
  bool cut_short = g->state == GangState::kEnding && g->outcome != Outcome::kCompleted &&
                   g->outcome != Outcome::kFailed;
  if (outcome == Outcome::kNone && cut_short) outcome = g->outcome;
  if (outcome == Outcome::kNone && run->out_of_memory) outcome = Outcome::kOutOfMemory;
  if (outcome == Outcome::kNone)
    outcome = run->worst == ExitStatus{} ? Outcome::kCompleted : Outcome::kFailed;
  record(StepEnded{key.gang, key.step, run->worst, outcome, run->usage, run->why});
  g = gang(key.gang);
  for (const Step& step : g->steps)
    if (step.id == key.step) tell_step_ended(*run, key.gang, step, nullptr);
  if (key.step == kBatchStep) return on_batch_done(*g, run->worst, outcome);
  const WorkloadEntry* entry = state_.workloads.find(g->workload.value());
  bool was_last = std::all_of(g->steps.begin(), g->steps.end(), [](const Step& s) { return s.state == StepState::kDone; });
  if (entry && entry->workload.ends_with_steps && was_last) on_batch_done(*g, run->worst, outcome);
}

}  // namespace tutti::controller
