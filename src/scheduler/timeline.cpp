#include "scheduler/timeline.h"

#include <algorithm>
#include <utility>

namespace tutti::scheduler {

Timeline::Timeline(const FreeMap& free)
    : free_(free), releases_(free.cluster().size()), promises_(free.cluster().size()) {}

void Timeline::add_release(NodeIndex node, const Release& release) {
  releases_[node].push_back(release);
  if (release.at >= Instant::never()) return;
  times_.push_back(release.at);
  times_sorted_ = false;
}

Instant Timeline::set_release(NodeIndex node, Owner owner, Instant at) {
  Instant before = at;
  for (Release& release : releases_[node])
    if (release.owner == owner) before = std::exchange(release.at, at);
  return before;
}

void Timeline::note_time(Instant at) {
  if (at >= Instant::never()) return;
  times_.push_back(at);
  times_sorted_ = false;
}

void Timeline::add_promise(NodeIndex node, const Promised& promise) {
  if (promises_[node].empty()) ++promised_nodes_;
  promises_[node].push_back(promise);
}

void Timeline::remove_promise(NodeIndex node, Owner owner) {
  std::size_t erased = std::erase_if(
      promises_[node], [owner](const Promised& promise) { return promise.owner == owner; });
  if (erased > 0 && promises_[node].empty()) --promised_nodes_;
}

Capacity Timeline::at_without_promises(NodeIndex node, Instant at) const {
  Capacity out = free_.at(node);
  for (const Release& release : releases_[node])
    if (release.at <= at && release.at < Instant::never()) out += release.amount;
  return out;
}

Capacity Timeline::at(NodeIndex node, Instant at) const {
  Capacity out = at_without_promises(node, at);
  for (const Promised& promise : promises_[node])
    if (promise.from <= at && at < promise.until && is_seen(promise)) out -= promise.amount;
  return out;
}

Capacity Timeline::throughout(NodeIndex node, Instant from, Instant until) const {
  Capacity out = at(node, from);
  // Between two moments room only comes back, except where a promise begins.
  for (const Promised& promise : promises_[node])
    if (promise.from > from && promise.from < until && is_seen(promise))
      out = least(out, at(node, promise.from));
  return out;
}

const std::vector<Instant>& Timeline::release_times() {
  if (!times_sorted_) {
    std::sort(times_.begin(), times_.end());
    times_.erase(std::unique(times_.begin(), times_.end()), times_.end());
    times_sorted_ = true;
  }
  return times_;
}

std::vector<Instant> Timeline::promise_ends(const NodeSet& nodes, Instant after) const {
  std::vector<Instant> out;
  nodes.for_each([&](NodeIndex node) {
    for (const Promised& promise : promises_[node])
      if (promise.until > after && promise.until < Instant::never() && is_seen(promise))
        out.push_back(promise.until);
  });
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace tutti::scheduler
