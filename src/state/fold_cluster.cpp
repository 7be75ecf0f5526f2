// Events of workloads, nodes and the configuration.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "state/fold.h"

namespace tutti::state {

namespace {
NodeState initial_state(const NodeSpec& node, Instant at) {
  NodeState state;
  // Nothing answers for a planned node; it counts as up from the start.
  if (node.kind == NodeKind::kPlanned) state.status = NodeStatus::kUp;
  state.changed = at;
  if (!node.initial_drain_reason.empty()) {
    state.drained = true;
    state.reason = node.initial_drain_reason;
    state.reason_at = at;
  }
  return state;
}
}  // namespace

Status Fold::operator()(const ClusterConfigured& e) {
  // What runs has been used by the rules that were in force.
  charge_all();
  std::map<std::string, NodeIndex> old_index, new_index;
  for (NodeIndex i = 0; i < state.spec->nodes.size(); ++i) old_index[state.spec->nodes[i].name] = i;
  for (NodeIndex i = 0; i < e.spec.nodes.size(); ++i) new_index[e.spec.nodes[i].name] = i;
  CowTable<NodeState> nodes;
  bool same_order = true;
  for (NodeIndex i = 0; i < e.spec.nodes.size(); ++i) {
    auto old = old_index.find(e.spec.nodes[i].name);
    const NodeState* known = old == old_index.end() ? nullptr : state.node(old->second);
    if (old != old_index.end() && old->second != i) same_order = false;
    bool same_kind = known && (state.spec->nodes[old->second].kind == NodeKind::kPlanned) ==
                                  (e.spec.nodes[i].kind == NodeKind::kPlanned);
    nodes.put(i + 1, std::make_shared<const NodeState>(
                         same_kind ? *known : initial_state(e.spec.nodes[i], at)));
  }
  if (e.spec.nodes.size() < state.spec->nodes.size()) same_order = false;
  if (!same_order) {
    // Slots name nodes by position: move them along. A node that is gone takes the slot's record of
    // a finished gang with it; the controller refuses to remove a node in use.
    std::vector<std::shared_ptr<const Gang>> moved;
    std::string lost;
    state.gangs.for_each([&](std::uint32_t id, const Gang& gang) {
      if (gang.slots.empty()) return;
      Gang changed = gang;
      std::vector<Slot> slots;
      std::vector<std::optional<std::uint32_t>> slot_at;  // where each slot is afterwards
      for (Slot& slot : changed.slots) {
        slot_at.emplace_back();
        auto at_new = new_index.find(state.spec->nodes[slot.node].name);
        if (at_new == new_index.end()) {
          if (agenda.active.contains(id)) lost = state.spec->nodes[slot.node].name;
          continue;
        }
        slot.node = at_new->second;
        slot_at.back() = static_cast<std::uint32_t>(slots.size());
        slots.push_back(slot);
      }
      for (Step& step : changed.steps) {
        std::erase_if(step.slots, [&](const StepSlot& s) { return !slot_at.at(s.slot); });
        for (StepSlot& s : step.slots) s.slot = *slot_at[s.slot];
      }
      changed.slots = std::move(slots);
      moved.push_back(std::make_shared<const Gang>(std::move(changed)));
    });
    if (!lost.empty())
      return fail(ErrorCode::kCorrupt,
                  fmt::format("configuration without node {}, which is in use", lost));
    for (auto& gang : moved) state.gangs.put(gang->id.value(), gang);
  }
  if (!same_order) {
    std::vector<std::optional<NodeIndex>> now_at;
    for (const NodeSpec& node : state.spec->nodes) {
      auto at_new = new_index.find(node.name);
      now_at.push_back(at_new == new_index.end() ? std::nullopt : std::optional(at_new->second));
    }
    renumber_promises(now_at);
  }
  state.nodes = std::move(nodes);
  state.spec = std::make_shared<const ClusterSpec>(e.spec);
  if (e.spec.priority.reset_period == ResetPeriod::kNow) {
    state.usage = {};
    state.qos_usage = {};
  }
  state.next_id = std::max(state.next_id, e.spec.first_job_id);
  return {};
}

Status Fold::operator()(const WorkloadSubmitted& e) {
  std::uint32_t id = e.workload.id.value();
  if (id == 0 || state.workloads.find(id) || state.gangs.find(id))
    return fail(ErrorCode::kCorrupt, fmt::format("workload number {} is used twice", id));
  WorkloadEntry entry;
  entry.workload = e.workload;
  share_equal_parts(state, entry.workload);
  if (e.workload.is_array()) {
    auto indices = parse_index_set(e.workload.array, kNoLimit - 1);
    if (!indices) return tl::unexpected<Error>(indices.error());
    entry.unstarted = std::move(*indices);
  } else {
    entry.simple_unstarted = true;
  }
  entry.association = associate(e.workload);
  state.next_id = std::max(state.next_id, id + 1);
  put(std::move(entry));
  return {};
}

Status Fold::operator()(const WorkloadChanged& e) {
  const WorkloadEntry* entry = state.workloads.find(e.workload.value());
  if (!entry) return unknown("workload", e.workload.value());
  if (e.gang) {
    const Gang* present = state.gangs.find(e.gang->value());
    if (!present || present->workload != e.workload) return unknown("gang", e.gang->value());
    Gang gang = *present;
    if (e.hold) {
      gang.hold = *e.hold;
      gang.hold_reason = e.hold_reason.value_or("");
      if (*e.hold == Hold::kNone) gang.launch_failures = 0;
    }
    if (e.time_limit && gang.started.is_set() && gang.state == GangState::kRunning)
      gang.limit_end = e.time_limit->is_infinite() ? Instant() : gang.started + *e.time_limit;
    put(std::move(gang));
    if (e.hold && !e.time_limit) return {};
  }
  WorkloadEntry changed = *state.workloads.find(e.workload.value());
  Workload& w = changed.workload;
  if (e.hold && !e.gang) w.hold = *e.hold;
  if (e.priority) w.extras.edit().fixed_priority = *e.priority;
  if (e.clear_priority) w.extras.edit().fixed_priority.reset();
  if (e.nice) w.nice = *e.nice;
  if (e.time_limit) w.time_limit = *e.time_limit;
  if (e.begin) w.begin = *e.begin;
  if (e.name) w.name = *e.name;
  if (e.comment) w.extras.edit().comment = *e.comment;
  if (e.admin_comment) w.extras.edit().admin_comment = *e.admin_comment;
  if (e.account) {
    w.account = *e.account;
    changed.association = associate(w);
  }
  if (e.qos) w.qos = *e.qos;
  if (e.partitions) w.partitions = *e.partitions;
  if (e.array_throttle) w.array_throttle = *e.array_throttle;
  if (e.requeue) w.requeue = *e.requeue;
  if (e.detached) w.detached = *e.detached;
  if (e.ends_with_steps) w.ends_with_steps = *e.ends_with_steps;
  if (e.roles) w.roles = *e.roles;
  // What was promised was room for the old request. Less time needs no other room.
  const bool longer = e.time_limit && entry->workload.time_limit != e.time_limit &&
                      (!entry->workload.time_limit || *e.time_limit > *entry->workload.time_limit);
  if (e.roles || e.partitions || longer) forget_promises(e.workload, Which::kAll);
  if (e.dependencies) w.extras.edit().dependencies = *e.dependencies;
  put(std::move(changed));
  return {};
}

Status Fold::operator()(const ElementsCancelled& e) {
  const WorkloadEntry* entry = state.workloads.find(e.workload.value());
  if (!entry) return unknown("workload", e.workload.value());
  if (!entry->has_unstarted())
    return fail(
        ErrorCode::kCorrupt,
        fmt::format("elements of workload {} are cancelled, but none waits", e.workload.value()));
  WorkloadEntry changed = *entry;
  if (e.indices.empty()) {
    changed.unstarted = IndexSet();
    changed.simple_unstarted = false;
  } else {
    auto indices = parse_index_set(e.indices, kNoLimit - 1);
    if (!indices) return tl::unexpected<Error>(indices.error());
    for (const auto& range : indices->ranges()) changed.unstarted.erase(range.first, range.last);
  }
  changed.outcome = e.outcome;
  changed.ended_by_uid = e.by_uid;
  WorkloadId id = changed.workload.id;
  put(std::move(changed));
  close_if_over(id);
  return {};
}

Status Fold::operator()(const WorkloadForgotten& e) {
  const WorkloadEntry* entry = state.workloads.find(e.workload.value());
  if (!entry) return unknown("workload", e.workload.value());
  if (entry->is_open())
    return fail(ErrorCode::kCorrupt,
                fmt::format("workload {} is forgotten but not over", e.workload.value()));
  for (GangId gang : entry->gangs) state.gangs.erase(gang.value());
  state.workloads.erase(e.workload.value());
  forget_promises(e.workload, Which::kAll);
  agenda.finished.erase(e.workload.value());
  return {};
}

Status Fold::operator()(const NodeChanged& e) {
  for (NodeIndex i = 0; i < state.spec->nodes.size(); ++i) {
    if (state.spec->nodes[i].name != e.node) continue;
    state.nodes.put(i + 1, std::make_shared<const NodeState>(e.state));
    return {};
  }
  return fail(ErrorCode::kCorrupt,
              fmt::format("an event names node {}, which does not exist", e.node));
}

Status Fold::operator()(const PartitionChanged& e) {
  ClusterSpec spec = *state.spec;
  for (PartitionSpec& partition : spec.partitions) {
    if (partition.name != e.partition) continue;
    partition.state = e.state;
    state.spec = std::make_shared<const ClusterSpec>(std::move(spec));
    return {};
  }
  return fail(ErrorCode::kCorrupt,
              fmt::format("an event names partition {}, which does not exist", e.partition));
}

Status Fold::operator()(const QueuesConfigured& e) {
  state.queues = std::make_shared<const QueueTree>(e.tree);
  return {};
}

}  // namespace tutti::state
