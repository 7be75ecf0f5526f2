// Events of evictions, checkpoints, suspension and size.
#include <fmt/format.h>

#include <algorithm>

#include "state/fold.h"

namespace tutti::state {

namespace {
constexpr Duration kLossKept = Duration::seconds(3600);

bool is_leaving(const Gang& gang) {
  return gang.eviction && gang.eviction->deadline < Instant::never();
}

bool is_alive(const Gang& gang) {
  return gang.state == GangState::kPreparing || gang.state == GangState::kRunning;
}
}  // namespace

Status Fold::operator()(const EvictionDecided& e) {
  const Gang* present = state.gangs.find(e.gang.value());
  if (!present) return unknown("gang", e.gang.value());
  const bool slots_exist =
      std::all_of(e.eviction.slots.begin(), e.eviction.slots.end(),
                  [&](std::uint32_t slot) { return slot < present->slots.size(); });
  if (!is_alive(*present) || is_leaving(*present) || !slots_exist)
    return wrong_phase(*present, e.kName);
  Gang gang = *present;
  gang.eviction = e.eviction;
  put(std::move(gang));
  LossBook book;
  for (const LossEntry& entry : state.losses->entries)
    if (entry.at + kLossKept > at) book.entries.push_back(entry);
  book.entries.push_back({at, e.queue, e.eviction.cost_gpu_seconds});
  state.losses = std::make_shared<const LossBook>(std::move(book));
  return {};
}

Status Fold::operator()(const EvictionWithdrawn& e) {
  const Gang* present = state.gangs.find(e.gang.value());
  if (!present) return unknown("gang", e.gang.value());
  if (!is_leaving(*present)) return wrong_phase(*present, e.kName);
  Gang gang = *present;
  // Its ranks may have heard of it and be ending: that is remembered, without force.
  gang.eviction->decided = at;
  gang.eviction->deadline = Instant::never();
  gang.eviction->slots.clear();
  put(std::move(gang));
  return {};
}

Status Fold::operator()(const EvictionTakenOver& e) {
  const Gang* present = state.gangs.find(e.gang.value());
  if (!present) return unknown("gang", e.gang.value());
  if (!present->eviction) return wrong_phase(*present, e.kName);
  Gang gang = *present;
  gang.eviction->beneficiary = e.beneficiary;
  gang.eviction->beneficiary_index = e.beneficiary_index;
  gang.eviction->beneficiary_gang = e.beneficiary_gang;
  put(std::move(gang));
  return {};
}

Status Fold::operator()(const CheckpointReported& e) {
  const Gang* present = state.gangs.find(e.gang.value());
  if (!present) return unknown("gang", e.gang.value());
  if (present->state != GangState::kRunning) return wrong_phase(*present, e.kName);
  Gang gang = *present;
  gang.checkpointed = at;
  if (e.step > 0) gang.checkpoint_step = e.step;
  if (gang.eviction) gang.eviction->saved = at;
  put(std::move(gang));
  return {};
}

Status Fold::operator()(const RanksMet& e) {
  const Gang* present = state.gangs.find(e.gang.value());
  if (!present) return unknown("gang", e.gang.value());
  if (present->state != GangState::kRunning) return wrong_phase(*present, e.kName);
  Gang gang = *present;
  gang.ranks_met = at;
  put(std::move(gang));
  return {};
}

Status Fold::operator()(const GangSuspended& e) {
  const Gang* present = state.gangs.find(e.gang.value());
  if (!present) return unknown("gang", e.gang.value());
  if (present->state != GangState::kRunning || present->suspended.is_set())
    return wrong_phase(*present, e.kName);
  Gang gang = *present;
  charge_gang(gang);
  gang.charged_from = Instant();
  gang.suspended = at;
  gang.eviction.reset();
  put(std::move(gang));
  return {};
}

Status Fold::operator()(const GangResumed& e) {
  const Gang* present = state.gangs.find(e.gang.value());
  if (!present) return unknown("gang", e.gang.value());
  if (present->state != GangState::kRunning || !present->suspended.is_set())
    return wrong_phase(*present, e.kName);
  Gang gang = *present;
  // Its limit counts the time in which it ran.
  if (gang.limit_end.is_set()) gang.limit_end = gang.limit_end + (at - gang.suspended);
  gang.suspended = Instant();
  gang.charged_from = at;
  put(std::move(gang));
  return {};
}

Status Fold::operator()(const GangResized& e) {
  const Gang* present = state.gangs.find(e.gang.value());
  if (!present) return unknown("gang", e.gang.value());
  const bool dropped_exist = std::all_of(e.dropped.begin(), e.dropped.end(), [&](std::uint32_t s) {
    return s < present->slots.size();
  });
  const bool nodes_exist = std::all_of(e.added.begin(), e.added.end(), [&](const Slot& slot) {
    return slot.node < state.spec->nodes.size();
  });
  const bool leaves_some = present->slots.size() + e.added.size() > e.dropped.size();
  if (present->state != GangState::kRunning || !dropped_exist || !nodes_exist || !leaves_some ||
      !std::is_sorted(e.dropped.begin(), e.dropped.end()))
    return wrong_phase(*present, e.kName);
  Gang gang = *present;
  charge_gang(gang);
  std::vector<Slot> slots;
  std::vector<std::optional<std::uint32_t>> slot_at;  // where each slot is afterwards
  for (std::uint32_t i = 0; i < gang.slots.size(); ++i) {
    slot_at.emplace_back();
    if (std::binary_search(e.dropped.begin(), e.dropped.end(), i)) continue;
    slot_at.back() = static_cast<std::uint32_t>(slots.size());
    slots.push_back(std::move(gang.slots[i]));
  }
  for (const Slot& slot : e.added) slots.push_back(slot);
  for (Step& step : gang.steps) {
    std::erase_if(step.slots, [&](const StepSlot& s) { return !slot_at[s.slot]; });
    for (StepSlot& s : step.slots) s.slot = *slot_at[s.slot];
  }
  gang.slots = std::move(slots);
  if (!e.dropped.empty()) gang.eviction.reset();
  put(std::move(gang));
  return {};
}

}  // namespace tutti::state
