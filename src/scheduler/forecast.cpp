#include "scheduler/forecast.h"

#include <algorithm>

namespace tutti::scheduler {

Forecaster::Forecaster(const FreeMap& free, Timeline& timeline)
    : free_(free), timeline_(timeline), room_(free.cluster()) {}

// Promises aside: more and more comes back, so this turns from no to yes once.
bool Forecaster::fits_at(const Shape& shape, Instant at) {
  shape.candidates.for_each([&](NodeIndex node) {
    ++looked_;
    if (free_.usable().contains(node)) room_.set(node, timeline_.at_without_promises(node, at));
  });
  // Several roles are not searched completely, so the order must be that of the real thing.
  if (shape.roles.size() == 1) room_.set_order(RoomThen::Order::kByIndex);
  bool fits = place_gang(room_, shape, free_.usable()).has_value();
  room_.set_order(RoomThen::Order::kPreferred);
  return fits;
}

std::optional<Placement> Forecaster::place_throughout(const Shape& shape, Instant from,
                                                      Instant until) {
  shape.candidates.for_each([&](NodeIndex node) {
    ++looked_;
    if (free_.usable().contains(node)) room_.set(node, timeline_.throughout(node, from, until));
  });
  return place_gang(room_, shape, free_.usable());
}

std::optional<Placement> Forecaster::place_on(const Shape& shape, const NodeSet& nodes,
                                              Instant from, Duration duration) {
  nodes.for_each([&](NodeIndex node) {
    ++looked_;
    if (shape.candidates.contains(node))
      room_.set(node, timeline_.throughout(node, from, from + duration));
  });
  return place_gang(room_, shape, nodes);
}

std::optional<Forecast> Forecaster::earliest(const Shape& shape, Instant now, Duration duration) {
  const std::vector<Instant>& times = timeline_.release_times();
  // The first release after which it would fit if nothing were promised. Position -1 stands for
  // now: then only promises are in the way.
  std::size_t low = 0, high = times.size();
  bool fits_now = fits_at(shape, now);
  if (!fits_now) {
    if (times.empty() || !fits_at(shape, times.back())) return std::nullopt;
    --high;
    while (low < high) {
      std::size_t middle = (low + high) / 2;
      if (fits_at(shape, times[middle]))
        high = middle;
      else
        low = middle + 1;
    }
  }
  std::vector<Instant> ends = timeline_.promise_ends(shape.candidates, now);
  Instant first = fits_now ? now : times[low];
  auto release = std::lower_bound(times.begin(), times.end(), first);
  auto end = std::lower_bound(ends.begin(), ends.end(), first);
  Instant at = first;
  for (std::uint32_t i = 0; i < kMostTries; ++i) {
    if (auto placement = place_throughout(shape, at, at + duration))
      return Forecast{at, std::move(*placement), fits_now};
    while (release != times.end() && *release <= at) ++release;
    while (end != ends.end() && *end <= at) ++end;
    if (release == times.end() && end == ends.end()) return std::nullopt;
    if (end == ends.end() || (release != times.end() && *release < *end))
      at = *release;
    else
      at = *end;
  }
  return std::nullopt;
}

// Without placing anything: enough nodes of suitable classes that will be free as a whole. Says no
// where it cannot tell.
bool Forecaster::surely_fits_later(const Shape& shape) {
  if (shape.roles.size() != 1 || shape.topology.is_bound()) return false;
  const RoleNeed& need = shape.roles[0];
  if (!need.required.empty() || need.contiguous || need.gpus_total > 0) return false;
  if (!ending_nodes_) {
    ending_nodes_ = free_.usable();
    free_.usable().for_each([&](NodeIndex node) {
      for (const Timeline::Release& release : timeline_.releases(node))
        if (release.at >= Instant::never()) ending_nodes_->remove(node);
    });
  }
  std::uint32_t least_tasks = need.tasks_follow_nodes ? std::max(need.tasks_per_node, 1u) : 1u;
  for (const NodeChoice& choice : need.choices) {
    if (!choice.counted.empty()) continue;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> sizes;  // tasks, nodes
    for (const NodeClass& kind : free_.cluster().classes()) {
      NodeSet nodes = choice.nodes;
      nodes &= kind.members;
      nodes &= *ending_nodes_;
      std::uint32_t tasks = most_tasks(need, kind, kind.full, std::max(need.tasks, least_tasks));
      if (tasks >= least_tasks) sizes.emplace_back(tasks, nodes.count());
    }
    std::sort(sizes.rbegin(), sizes.rend());
    std::uint64_t tasks = 0, nodes = 0;
    for (const auto& [each, count] : sizes) {
      std::uint64_t some = std::min<std::uint64_t>(count, need.nodes_max - nodes);
      tasks += each * some;
      nodes += some;
    }
    if (nodes >= need.nodes_min && (need.tasks_follow_nodes || tasks >= need.tasks)) return true;
  }
  return false;
}

std::optional<Placement> Forecaster::place_when_empty(const Shape& shape, const NodeSet& nodes) {
  shape.candidates.for_each([&](NodeIndex node) {
    ++looked_;
    room_.set(node, free_.cluster().of(node).full);
  });
  return place_gang(room_, shape, nodes);
}

Judgement Forecaster::judge(const Shape& shape) {
  if (shape.never) return {Outlook::kNever, {}};
  if (surely_fits_later(shape)) return {};
  const std::vector<Instant>& times = timeline_.release_times();
  if (fits_at(shape, times.empty() ? Instant() : times.back())) return {};
  if (auto found = place_when_empty(shape, free_.usable()))
    return {Outlook::kEndless, std::move(*found)};
  // As if nothing had been left out.
  Shape whole = shape;
  bool left_out = false;
  for (RoleNeed& need : whole.roles) {
    left_out = left_out || !need.left_out.empty();
    need.candidates |= need.left_out;
    whole.candidates |= need.left_out;
    for (NodeChoice& choice : need.choices) choice.nodes |= need.left_out;
  }
  if (left_out)
    if (auto found = place_when_empty(whole, free_.usable()))
      return {Outlook::kAvoided, std::move(*found)};
  NodeSet all(free_.cluster().size());
  for (const NodeClass& kind : free_.cluster().classes()) all |= kind.members;
  if (auto found = place_when_empty(whole, all)) return {Outlook::kNoNodes, std::move(*found)};
  return {Outlook::kNever, {}};
}

}  // namespace tutti::scheduler
