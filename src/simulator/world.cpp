#include "simulator/world.h"

#include <fmt/format.h>

#include <algorithm>

namespace tutti::simulator {

World::World(ClusterSpec spec, Instant start, WorldOptions options)
    : options_(std::move(options)), now_(start) {
  plan_.next_look = Instant::never();
  state_.spec = std::make_shared<const ClusterSpec>(std::move(spec));
}

Result<World> World::create(ClusterSpec spec, Instant start, WorldOptions options) {
  if (spec.nodes.empty()) return invalid("a cluster without nodes");
  World world({}, start, std::move(options));
  std::vector<std::string> names;
  for (const NodeSpec& node : spec.nodes) names.push_back(node.name);
  if (auto status = world.record(ClusterConfigured{std::move(spec)}); !status)
    return tl::make_unexpected(status.error());
  for (const std::string& name : names) {
    NodeState up;
    up.status = NodeStatus::kUp;
    up.changed = start;
    if (auto status = world.record(NodeChanged{name, std::move(up)}); !status)
      return tl::make_unexpected(status.error());
  }
  return world;
}

Status World::record(EventBody body) {
  dirty_ = true;
  return state::apply(state_, agenda_, Event{now_, std::move(body)});
}

void World::tell(WorldChange::Kind kind, WorkloadId workload, GangId gang) {
  if (watcher_) watcher_({kind, workload, gang});
}

scheduler::PassInput World::input() const {
  scheduler::PassInput input{state_, agenda_, now_};
  input.profile = options_.profile;
  input.reserve_depth = options_.reserve_depth;
  return input;
}

Result<WorkloadId> World::submit(Workload workload, Duration run) {
  workload.id = WorkloadId(state_.next_id);
  workload.submitted = now_;
  if (auto status = scheduler::check_can_ever_run(*state_.spec, workload); !status)
    return tl::make_unexpected(status.error());
  const WorkloadId id = workload.id;
  if (auto status = record(WorkloadSubmitted{std::move(workload)}); !status)
    return tl::make_unexpected(status.error());
  runs_.emplace(id.value(), run);
  tell(WorldChange::Kind::kSubmitted, id, GangId());
  return id;
}

Status World::change(EventBody body) { return record(std::move(body)); }

Status World::fail_node(NodeIndex node, std::string reason) {
  NodeState lost = *state_.node(node);
  lost.status = NodeStatus::kLost;
  lost.reason = std::move(reason);
  lost.changed = now_;
  const std::string name = state_.spec->nodes[node].name;
  if (auto status = record(NodeChanged{name, std::move(lost)}); !status) return status;
  std::vector<std::uint32_t> hit;
  for (std::uint32_t id : agenda_.active) {
    const Gang* gang = state_.gangs.find(id);
    if (gang->state != GangState::kEnding &&
        std::any_of(gang->slots.begin(), gang->slots.end(),
                    [&](const Slot& slot) { return slot.node == node; }))
      hit.push_back(id);
  }
  for (std::uint32_t id : hit) {
    const Gang& gang = *state_.gangs.find(id);
    const WorkloadEntry* entry = state_.workloads.find(gang.workload.value());
    if (auto status = end(gang, Outcome::kNodeFail, entry->workload.requeue, name); !status)
      return status;
  }
  return {};
}

Status World::repair_node(NodeIndex node) {
  NodeState up = *state_.node(node);
  up.status = NodeStatus::kUp;
  up.reason.clear();
  up.changed = now_;
  return record(NodeChanged{state_.spec->nodes[node].name, std::move(up)});
}

Instant World::next_due() const {
  if (dirty_) return now_;
  Instant next = plan_.next_look;
  if (!due_.empty()) next = std::min(next, due_.top().at);
  return std::max(next, now_);
}

Status World::move_to(Instant to) {
  if (to < now_ || to > next_due())
    return fail(ErrorCode::kInternal, fmt::format("the clock is at {} ms, due is {} ms: not {} ms",
                                                  now_.ms(), next_due().ms(), to.ms()));
  now_ = to;
  return {};
}

Status World::advance(Instant to) {
  if (auto status = move_to(to); !status) return status;
  if (plan_.next_look <= now_) dirty_ = true;
  while (!due_.empty() && due_.top().at <= now_) {
    const Due due = due_.top();
    due_.pop();
    if (auto status = on_due(due); !status) return status;
  }
  return dirty_ ? plan_now() : Status();
}

Status World::plan_now() {
  const scheduler::PassInput pass = input();
  plan_ = scheduler::plan(pass);
  ++passes_;
  work_units_ += plan_.stats.work_units;
  if (options_.lint) {
    std::vector<std::string> broken = scheduler::lint(pass, plan_);
    if (!broken.empty())
      return fail(ErrorCode::kInternal, fmt::format("at {} ms: {}", now_.ms(), broken.front()));
  }
  dirty_ = false;
  Status status = carry_out(plan_);
  // What the plan itself brought about is no reason to plan again.
  dirty_ = false;
  return status;
}

Status World::carry_out(const scheduler::Plan& plan) {
  for (const scheduler::Withdraw& each : plan.withdrawals)
    if (auto status = record(EvictionWithdrawn{each.gang, each.cause}); !status) return status;
  for (const scheduler::TakeOver& each : plan.take_overs)
    if (auto status =
            record(EvictionTakenOver{each.gang, each.beneficiary.workload,
                                     each.beneficiary.array_index, each.beneficiary.gang});
        !status)
      return status;
  for (const scheduler::Evict& each : plan.evictions)
    if (auto status = evict(each); !status) return status;
  for (const scheduler::Start& start : plan.starts)
    if (auto status = allocate(start); !status) return status;
  return plan.promise_changes.empty() ? Status() : record(PromisesChanged{plan.promise_changes});
}

Status World::evict(const scheduler::Evict& decided) {
  if (auto status = record(EvictionDecided{decided.gang, decided.queue, decided.eviction}); !status)
    return status;
  schedule(Due::Kind::kLeave, decided.eviction.deadline, *state_.gangs.find(decided.gang.value()));
  return {};
}

// Work without checkpoints: what is evicted begins anew.
Status World::leave(const Gang& gang) {
  const Eviction& eviction = *gang.eviction;
  if (!eviction.slots.empty())
    return record(GangResized{gang.id, eviction.slots, {}, eviction.reason});
  return end(gang, Outcome::kPreempted, eviction.mode != ReclaimMode::kCancel, "");
}

Status World::allocate(const scheduler::Start& start) {
  GangAllocated event;
  event.workload = start.element.workload;
  event.array_index = start.element.array_index;
  event.gang = start.element.gang;
  if (!event.gang)
    event.gang =
        start.element.array_index ? GangId(state_.next_id) : GangId(start.element.workload.value());
  event.epoch = Epoch(state_.next_epoch);
  event.partition = start.partition;
  event.slots = start.slots;
  event.limit_end = start.limit.is_infinite() ? Instant() : now_ + start.limit;
  const GangId id = event.gang;
  if (auto status = record(std::move(event)); !status) return status;
  const Gang& gang = *state_.gangs.find(id.value());
  tell(WorldChange::Kind::kAllocated, gang.workload, id);
  if (options_.start_delay > Duration()) {
    schedule(Due::Kind::kGo, now_ + options_.start_delay, gang);
    return {};
  }
  return go(gang);
}

Status World::go(const Gang& gang) {
  const GangId id = gang.id;
  Instant limit_end;
  if (gang.limit_end.is_set()) limit_end = now_ + (gang.limit_end - gang.allocated);
  const Duration run = runs_.at(gang.workload.value());
  if (auto status = record(GangStarted{id, limit_end}); !status) return status;
  const Gang& running = *state_.gangs.find(id.value());
  Instant end = now_ + run;
  if (limit_end.is_set()) end = std::min(end, limit_end);
  schedule(Due::Kind::kEnd, end, running);
  tell(WorldChange::Kind::kStarted, running.workload, id);
  return {};
}

void World::schedule(Due::Kind kind, Instant at, const Gang& gang) {
  due_.push({at, kind, gang.id.value(), gang.epoch.value(), next_order_++});
}

Status World::on_due(const Due& due) {
  const Gang* gang = state_.gangs.find(due.gang);
  if (!gang || gang->epoch.value() != due.epoch) return {};
  switch (due.kind) {
    case Due::Kind::kGo:
      return gang->state == GangState::kPreparing ? go(*gang) : Status();
    case Due::Kind::kEnd: {
      if (gang->state != GangState::kRunning) return {};
      const bool whole = now_ >= gang->started + runs_.at(gang->workload.value());
      return end(*gang, whole ? Outcome::kCompleted : Outcome::kTimeout, false, "");
    }
    case Due::Kind::kLeave: {
      const bool due_now = gang->eviction && gang->eviction->deadline <= now_;
      const bool holds = gang->state == GangState::kRunning || gang->state == GangState::kPreparing;
      return due_now && holds ? leave(*gang) : Status();
    }
    case Due::Kind::kRelease:
      return gang->state == GangState::kEnding ? release(*gang) : Status();
    case Due::Kind::kForgive:
      return gang->state == GangState::kPending && !gang->avoid_nodes.empty()
                 ? record(AvoidanceExpired{gang->id})
                 : Status();
  }
  return {};
}

Status World::end(const Gang& gang, Outcome outcome, bool requeue, const std::string& avoid) {
  const GangId id = gang.id;
  GangEnding ending;
  ending.gang = id;
  ending.outcome = outcome;
  ending.requeue = requeue;
  ending.eligible = now_;
  ending.avoid_node = avoid;
  if (auto status = record(std::move(ending)); !status) return status;
  const Gang& ended = *state_.gangs.find(id.value());
  tell(WorldChange::Kind::kEnding, ended.workload, id);
  if (options_.release_delay > Duration()) {
    schedule(Due::Kind::kRelease, now_ + options_.release_delay, ended);
    return {};
  }
  return release(ended);
}

Status World::release(const Gang& gang) {
  const GangId id = gang.id;
  const WorkloadId workload = gang.workload;
  const auto slots = static_cast<std::uint32_t>(gang.slots.size());
  for (std::uint32_t slot = 0; slot < slots; ++slot)
    if (auto status = record(SlotReleased{id, slot}); !status) return status;
  const Gang* left = state_.gangs.find(id.value());
  if (left && left->state == GangState::kPending && !left->avoid_nodes.empty())
    schedule(Due::Kind::kForgive, now_ + options_.avoid_for, *left);
  tell(WorldChange::Kind::kReleased, workload, id);
  return forget_if_over(workload);
}

Status World::forget_if_over(WorkloadId id) {
  const WorkloadEntry* entry = state_.workloads.find(id.value());
  if (!entry || entry->is_open()) return {};
  tell(WorldChange::Kind::kOver, id, GangId());
  runs_.erase(id.value());
  return options_.forget ? record(WorkloadForgotten{id}) : Status();
}

}  // namespace tutti::simulator
