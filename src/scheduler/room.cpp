#include "scheduler/room.h"

#include <algorithm>
#include <tuple>

namespace tutti::scheduler {

RoomNow::RoomNow(FreeMap& free, const Timeline& timeline, Instant now, Instant until,
                 Promises promises)
    : Room(free.cluster()),
      free_(free),
      timeline_(timeline),
      now_(now),
      until_(until),
      keeps_promises_(promises == Promises::kKept) {}

Capacity RoomNow::at(NodeIndex node) const {
  ++looked_;
  if (!keeps_promises_ || !timeline_.is_promised(node)) return free_.at(node);
  Capacity out;
  if (recalling_.empty()) {
    out = timeline_.throughout(node, now_, until_);
  } else {
    // Where one that may recall it begins, it is gone; where another does, both must have room.
    out = timeline_.at(node, now_);
    for (const Timeline::Promised& promise : timeline_.promises(node))
      if (promise.from > now_ && promise.from < until_ && timeline_.is_seen(promise) &&
          !may_be_recalled_by(promise.owner))
        out = least(out, timeline_.at(node, promise.from));
  }
  // What is to leave this moment has not left yet.
  out = least(out, free_.at(node));
  // A device that a promise will have is not chosen yet: it can't be shared with it now.
  for (PartUse& use : out.parts.edit())
    if (use.device >= kUnchosen) use.slices = 0xFFFF, use.permille = 1000;
  return out;
}

void RoomNow::visit(const NodeSet& nodes, FreeMap::Least least, const Visit& visit) const {
  free_.visit(nodes, least, visit);
}

void RoomThen::visit(const NodeSet& nodes, FreeMap::Least least, const Visit& visit) const {
  if (order_ == Order::kByIndex) {
    bool more = true;
    nodes.for_each([&](NodeIndex node) {
      if (!more || free_[node].gpu_count() < least.gpus || free_[node].cores < least.cores) return;
      more = visit(node);
    });
    return;
  }
  // The order of FreeMap.
  std::vector<std::tuple<std::uint32_t, std::int32_t, bool, std::int32_t, NodeIndex>> order;
  nodes.for_each([&](NodeIndex node) {
    ++looked_;
    const Capacity& free = free_[node];
    std::int32_t gpus = free.gpu_count();
    if (gpus < least.gpus || free.cores < least.cores) return;
    order.emplace_back(cluster_.of(node).weight, gpus, free.vacancy == 0, free.cores, node);
  });
  std::sort(order.begin(), order.end());
  for (const auto& each : order)
    if (!visit(std::get<4>(each))) return;
}

}  // namespace tutti::scheduler
