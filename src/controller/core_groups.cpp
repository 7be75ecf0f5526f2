// Groups of gangs after the planner has started them together: nobody goes before all have
// answered, and if one of them cannot, all give their slots back.
#include <fmt/format.h>

#include "controller/core.h"
#include "model/reasons.h"

namespace tutti::controller {

// The other gangs of its group that are being prepared.
std::vector<GangId> Core::preparing_peers(const Gang& g) const {
  std::vector<GangId> out;
  const WorkloadEntry* own = state_.workloads.find(g.workload.value());
  if (!own || own->workload.extras->terms.group.empty()) return out;
  for (std::uint32_t id : agenda_.active) {
    const Gang* other = state_.gangs.find(id);
    if (!other || other->id == g.id || other->state != GangState::kPreparing) continue;
    const WorkloadEntry* entry = state_.workloads.find(other->workload.value());
    if (entry && entry->workload.uid == own->workload.uid &&
        entry->workload.extras->terms.group == own->workload.extras->terms.group)
      out.push_back(other->id);
  }
  return out;
}

// Once nobody of the group is waited for any more, they go.
void Core::go_together(GangId first) {
  const Gang* g = gang(first);
  if (!g) return;
  std::vector<GangId> ready = preparing_peers(*g);
  if (g->state == GangState::kPreparing) ready.insert(ready.begin(), first);
  for (GangId id : ready) {
    auto call = calls_.gangs().find(id);
    if (call == calls_.gangs().end() || !call->second.missing.empty()) return;
  }
  for (GangId id : ready) {
    calls_.close(id);
    go(*gang(id));
  }
}

// One of them could not start: the others let go as well and are tried again with it.
void Core::release_peers(const Gang& failed, const std::string& reason, Instant retry_at) {
  for (GangId id : preparing_peers(failed)) {
    const Gang& peer = *gang(id);
    const Epoch epoch = peer.epoch;
    const std::vector<NodeIndex> nodes = nodes_of(peer);
    calls_.close(id);
    RollCallFailed event;
    event.gang = id;
    event.reason = fmt::format("job {} of its group could not start: {}", failed.id.value(), reason);
    event.retry_at = retry_at;
    event.avoid_node = false;
    record(std::move(event));
    for (NodeIndex n : nodes) send(n, to_agent::Abort{{id, epoch, kExternStep}});
    tell_gang_changed(*gang(id), false);
  }
}

// A member must be one that the group can be placed with.
Status Core::check_group(const Workload& w) const {
  const Terms& terms = w.extras->terms;
  if (terms.group.empty()) return {};
  auto refuse = [&](std::string text) {
    return fail(ErrorCode::kInvalid, fmt::format("group {}: {}", terms.group, text), std::string(reason::kInvalidGroup));
  };
  if (terms.group_size == 0) return refuse("its size is missing");
  if (w.is_array()) return refuse("an array cannot be in a group: submit its elements as jobs");
  std::uint32_t members = 0;
  Status good;
  state_.workloads.for_each([&](std::uint32_t id, const WorkloadEntry& entry) {
    const Terms& other = entry.workload.extras->terms;
    if (!good || !entry.is_open() || entry.workload.uid != w.uid || other.group != terms.group) return;
    ++members;
    if (other.group_size != terms.group_size)
      good = refuse(fmt::format("its size is {}, as job {} says, not {}", other.group_size, id, terms.group_size));
    else if (*entry.workload.partitions != *w.partitions || other.queue != terms.queue || entry.workload.account != w.account)
      good = refuse(fmt::format("all are in the same partitions, queue and account; job {} is in others", id));
  });
  if (!good) return good;
  if (members >= terms.group_size) return refuse(fmt::format("it is complete with {} jobs", terms.group_size));
  return {};
}

}  // namespace tutti::controller
