#include "state/apply.h"

#include <fmt/format.h>

#include <algorithm>

#include "state/fold.h"

namespace tutti::state {

namespace {

// Puts every workload and gang on the lists it belongs on.
void note_workload(Agenda& agenda, const ClusterState& state, std::uint32_t id) {
  const WorkloadEntry* entry = state.workloads.find(id);
  bool pending = false;
  if (entry) {
    pending = entry->has_unstarted();
    if (entry->open_gangs > 0) {
      for (GangId gang : entry->gangs) {
        if (pending) break;
        const Gang* found = state.gangs.find(gang.value());
        pending = found && found->state == GangState::kPending;
      }
    }
  }
  if (pending)
    agenda.pending.insert(id);
  else
    agenda.pending.erase(id);
  if (entry && !entry->is_open())
    agenda.finished.insert(id);
  else
    agenda.finished.erase(id);
}

bool holds_slots(GangState state) {
  return state == GangState::kPreparing || state == GangState::kRunning ||
         state == GangState::kEnding;
}

}  // namespace

void share_equal_parts(const ClusterState& state, Workload& workload) {
  constexpr std::uint32_t kLookBack = 16;
  bool limits = false, roles = false, partitions = false, extras = false;
  const std::uint32_t id = workload.id.value();
  for (std::uint32_t back = 1; back <= kLookBack && back < id; ++back) {
    const WorkloadEntry* entry = state.workloads.find(id - back);
    if (!entry) continue;
    const Workload& other = entry->workload;
    limits = limits || workload.launch.limits.unify(other.launch.limits);
    roles = roles || workload.roles.unify(other.roles);
    partitions = partitions || workload.partitions.unify(other.partitions);
    extras = extras || workload.extras.unify(other.extras);
    if (limits && roles && partitions && extras) return;
  }
}

Status Fold::unknown(std::string_view what, std::uint32_t id) {
  return fail(ErrorCode::kCorrupt,
              fmt::format("an event names {} {}, which does not exist", what, id));
}

Status Fold::wrong_phase(const Gang& gang, std::string_view event) {
  return fail(ErrorCode::kCorrupt, fmt::format("event {} for gang {}, which is {}", event,
                                               gang.id.value(), enum_name(gang.state)));
}

void Fold::put(Gang gang) {
  std::uint32_t id = gang.id.value();
  std::uint32_t workload = gang.workload.value();
  if (holds_slots(gang.state))
    agenda.active.insert(id);
  else
    agenda.active.erase(id);
  state.gangs.put(id, std::make_shared<const Gang>(std::move(gang)));
  touched_workload = workload;
}

void Fold::put(WorkloadEntry entry) {
  std::uint32_t id = entry.workload.id.value();
  state.workloads.put(id, std::make_shared<const WorkloadEntry>(std::move(entry)));
  touched_workload = id;
}

void Fold::close_if_over(WorkloadId id) {
  const WorkloadEntry* entry = state.workloads.find(id.value());
  if (!entry || entry->is_open() || entry->ended.is_set()) return;
  WorkloadEntry changed = *entry;
  changed.ended = at;
  put(std::move(changed));
}

void Fold::gang_is_over(WorkloadId id) {
  WorkloadEntry changed = *state.workloads.find(id.value());
  --changed.open_gangs;
  put(std::move(changed));
  close_if_over(id);
}

Status apply(ClusterState& state, Agenda& agenda, const Event& event) {
  Fold fold{state, agenda, event.at};
  Status status = std::visit([&fold](const auto& body) { return fold(body); }, event.body);
  if (!status) return status;
  if (fold.touched_workload) {
    note_workload(agenda, state, fold.touched_workload);
    fold.forget_promises(WorkloadId(fold.touched_workload), Fold::Which::kObsolete);
  }
  ++state.sequence;
  return {};
}

Agenda derive_agenda(const ClusterState& state) {
  Agenda agenda;
  state.workloads.for_each(
      [&](std::uint32_t id, const WorkloadEntry&) { note_workload(agenda, state, id); });
  state.gangs.for_each([&](std::uint32_t id, const Gang& gang) {
    if (holds_slots(gang.state)) agenda.active.insert(id);
  });
  return agenda;
}

}  // namespace tutti::state
