// Events of gangs and their steps.
#include <algorithm>

#include "state/fold.h"

namespace tutti::state {

namespace {
Step* find_step(Gang& gang, StepId id) {
  auto it = std::find_if(gang.steps.begin(), gang.steps.end(),
                         [id](const Step& step) { return step.id == id; });
  return it == gang.steps.end() ? nullptr : &*it;
}

void back_to_pending(Gang& gang) {
  gang.state = GangState::kPending;
  gang.outcome = Outcome::kNone;
  gang.slots.clear();
  gang.steps.clear();
  gang.partition.clear();
  gang.allocated = gang.started = gang.ended = gang.limit_end = Instant();
  gang.exit = gang.derived_exit = ExitStatus();
  gang.ended_by_uid.reset();
  gang.requeue_when_clean = gang.warned = false;
  gang.eviction.reset();
  gang.checkpointed = gang.ranks_met = gang.suspended = Instant();
}

void avoid(Gang& gang, const std::string& node) {
  bool known = std::find(gang.avoid_nodes.begin(), gang.avoid_nodes.end(), node) !=
               gang.avoid_nodes.end();
  if (!node.empty() && !known) gang.avoid_nodes.push_back(node);
}

bool worse(const ExitStatus& a, const ExitStatus& b) {
  auto rank = [](const ExitStatus& s) { return s.signal ? 128 + s.signal : s.code; };
  return rank(a) > rank(b);
}
}  // namespace

Status Fold::operator()(const GangAllocated& e) {
  const WorkloadEntry* entry = state.workloads.find(e.workload.value());
  if (!entry) return unknown("workload", e.workload.value());
  const Gang* present = state.gangs.find(e.gang.value());
  Gang gang;
  if (e.slots.empty() || std::any_of(e.slots.begin(), e.slots.end(), [&](const Slot& slot) {
        return slot.node >= state.spec->nodes.size();
      }))
    return fail(ErrorCode::kCorrupt, "gang_allocated without a slot or on a node that is not there");
  if (present) {
    if (present->state != GangState::kPending || present->workload != e.workload)
      return wrong_phase(*present, e.kName);
    gang = *present;
  } else {
    if (!e.gang || (e.gang.value() != e.workload.value() && state.workloads.find(e.gang.value())))
      return fail(ErrorCode::kCorrupt, "gang_allocated with a number that is taken");
    WorkloadEntry changed = *entry;
    if (e.array_index) {
      if (!changed.unstarted.contains(*e.array_index))
        return fail(ErrorCode::kCorrupt, "gang_allocated for an array element that is not waiting");
      changed.unstarted.erase(*e.array_index);
    } else {
      if (!changed.simple_unstarted)
        return fail(ErrorCode::kCorrupt, "gang_allocated for a job that is not waiting");
      changed.simple_unstarted = false;
    }
    changed.gangs.push_back(e.gang);
    ++changed.open_gangs;
    gang.id = e.gang;
    gang.workload = e.workload;
    gang.array_index = e.array_index;
    put(std::move(changed));
    state.next_id = std::max(state.next_id, e.gang.value() + 1);
  }
  gang.state = GangState::kPreparing;
  gang.outcome = Outcome::kNone;
  gang.epoch = e.epoch;
  gang.partition = e.partition;
  gang.slots = e.slots;
  gang.rendezvous_port = e.rendezvous_port;
  gang.allocated = at;
  gang.limit_end = e.limit_end;
  state.next_epoch = std::max(state.next_epoch, e.epoch.value() + 1);
  put(std::move(gang));
  return {};
}

Status Fold::operator()(const RollCallFailed& e) {
  const Gang* present = state.gangs.find(e.gang.value());
  if (!present) return unknown("gang", e.gang.value());
  if (present->state != GangState::kPreparing) return wrong_phase(*present, e.kName);
  Gang gang = *present;
  back_to_pending(gang);
  ++gang.launch_failures;
  gang.last_failure = e.node.empty() ? e.reason : e.node + ": " + e.reason;
  gang.eligible = e.retry_at;
  if (e.avoid_node) avoid(gang, e.node);
  if (e.hold) {
    gang.hold = Hold::kAdmin;
    gang.hold_reason = "launch failed requeued held";
  }
  put(std::move(gang));
  return {};
}

Status Fold::operator()(const AvoidanceExpired& e) {
  const Gang* present = state.gangs.find(e.gang.value());
  if (!present) return unknown("gang", e.gang.value());
  Gang gang = *present;
  gang.avoid_nodes.clear();
  put(std::move(gang));
  return {};
}

Status Fold::operator()(const GangStarted& e) {
  const Gang* present = state.gangs.find(e.gang.value());
  if (!present) return unknown("gang", e.gang.value());
  if (present->state != GangState::kPreparing) return wrong_phase(*present, e.kName);
  const WorkloadEntry* entry = state.workloads.find(present->workload.value());
  if (!entry) return unknown("workload", present->workload.value());
  Gang gang = *present;
  gang.state = GangState::kRunning;
  gang.started = gang.charged_from = at;
  gang.limit_end = e.limit_end;
  gang.launch_failures = 0;
  gang.avoid_nodes.clear();
  if (entry->workload.is_batch() && !gang.slots.empty()) {
    Step step;
    step.id = kBatchStep;
    step.name = "batch";
    step.state = StepState::kRunning;
    step.created = step.started = at;
    step.overlap = true;  // the script itself does not keep its steps from the CPUs
    step.slots.push_back(
        {0, {0}, static_cast<std::uint32_t>(gang.slots[0].cpu_ids.size()), {}, false});
    gang.steps.push_back(std::move(step));
  }
  put(std::move(gang));
  return {};
}

Status Fold::operator()(const GangWarned& e) {
  const Gang* present = state.gangs.find(e.gang.value());
  if (!present) return unknown("gang", e.gang.value());
  if (present->state != GangState::kRunning || present->warned)
    return wrong_phase(*present, e.kName);
  Gang gang = *present;
  gang.warned = true;
  put(std::move(gang));
  return {};
}

Status Fold::operator()(const StepCreated& e) {
  const Gang* present = state.gangs.find(e.gang.value());
  if (!present) return unknown("gang", e.gang.value());
  if (present->state != GangState::kRunning) return wrong_phase(*present, e.kName);
  Gang gang = *present;
  bool slots_exist = std::all_of(e.step.slots.begin(), e.step.slots.end(), [&](const StepSlot& s) {
    return s.slot < gang.slots.size();
  });
  if (find_step(gang, e.step.id) || !slots_exist) return wrong_phase(*present, e.kName);
  gang.steps.push_back(e.step);
  put(std::move(gang));
  return {};
}

Status Fold::operator()(const StepStarted& e) {
  const Gang* present = state.gangs.find(e.gang.value());
  if (!present) return unknown("gang", e.gang.value());
  Gang gang = *present;
  Step* step = find_step(gang, e.step);
  if (!step) return unknown("a step of gang", e.gang.value());
  if (step->state != StepState::kPreparing) return wrong_phase(*present, e.kName);
  step->state = StepState::kRunning;
  step->started = at;
  put(std::move(gang));
  return {};
}

Status Fold::operator()(const StepEnded& e) {
  const Gang* present = state.gangs.find(e.gang.value());
  if (!present) return unknown("gang", e.gang.value());
  Gang gang = *present;
  Step* step = find_step(gang, e.step);
  if (!step) return unknown("a step of gang", e.gang.value());
  if (step->state == StepState::kDone || present->state == GangState::kDone)
    return wrong_phase(*present, e.kName);
  step->state = StepState::kDone;
  step->ended = at;
  step->exit = e.exit;
  step->outcome = e.outcome;
  step->usage = e.usage;
  step->reason = e.reason;
  for (StepSlot& slot : step->slots) slot.done = true;
  // A job that was cancelled or timed out has no exit code; what its script still returned is the
  // batch step's.
  if (e.step == kBatchStep) {
    if (gang.state == GangState::kRunning) gang.exit = e.exit;
  } else if (worse(e.exit, gang.derived_exit)) {
    gang.derived_exit = e.exit;
  }
  put(std::move(gang));
  return {};
}

Status Fold::operator()(const GangEnding& e) {
  const Gang* present = state.gangs.find(e.gang.value());
  if (!present) return unknown("gang", e.gang.value());
  if (present->state == GangState::kDone || present->state == GangState::kEnding)
    return wrong_phase(*present, e.kName);
  if (!state.workloads.find(present->workload.value()))
    return unknown("workload", present->workload.value());
  Gang gang = *present;
  bool held_slots = gang.state != GangState::kPending;
  charge_gang(gang);
  gang.charged_from = Instant();
  gang.state = held_slots ? GangState::kEnding : GangState::kDone;
  gang.outcome = e.outcome;
  gang.exit = e.exit;
  gang.ended = at;
  gang.ended_by_uid = e.by_uid;
  gang.suspended = Instant();
  if (!e.reason.empty()) gang.last_failure = e.reason;
  if (e.outcome == Outcome::kPreempted) {
    ++gang.evictions;
    gang.evicted_for = gang.eviction ? gang.eviction->reason : e.reason;
  }
  if (e.requeue && held_slots) {
    gang.requeue_when_clean = true;
    gang.eligible = e.eligible;
    if (e.counts_as_restart) ++gang.restarts;
    if (e.hold) {
      gang.hold = Hold::kUser;
      gang.hold_reason = "requeued held";
    }
    avoid(gang, e.avoid_node);
  }
  WorkloadId workload = gang.workload;
  put(std::move(gang));
  if (!held_slots) {
    gang_is_over(workload);
  }
  return {};
}

Status Fold::operator()(const SlotReleased& e) {
  const Gang* present = state.gangs.find(e.gang.value());
  if (!present) return unknown("gang", e.gang.value());
  if (present->state != GangState::kEnding || e.slot >= present->slots.size() ||
      present->slots[e.slot].released || !state.workloads.find(present->workload.value()))
    return wrong_phase(*present, e.kName);
  Gang gang = *present;
  gang.slots[e.slot].released = true;
  bool clean = std::all_of(gang.slots.begin(), gang.slots.end(),
                           [](const Slot& slot) { return slot.released; });
  WorkloadId workload = gang.workload;
  if (clean && gang.requeue_when_clean) {
    back_to_pending(gang);
    put(std::move(gang));
  } else if (clean) {
    gang.state = GangState::kDone;
    put(std::move(gang));
    gang_is_over(workload);
  } else {
    put(std::move(gang));
  }
  return {};
}

}  // namespace tutti::state
