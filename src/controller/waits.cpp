#include "controller/waits.h"

#include <algorithm>

#include "model/reasons.h"

namespace tutti::controller {

Waits::Waits(const Published& picture, Instant now) : picture_(picture), now_(now) {
  promises_.reserve(picture.pass->promises.size());
  for (const scheduler::Promise& promise : picture.pass->promises)
    promises_.push_back({{promise.element.workload, promise.element.gang}, &promise});
  std::stable_sort(promises_.begin(), promises_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
}

const Wait* Waits::told(const Key& key) const {
  const std::vector<scheduler::Waiting>& waiting = picture_.pass->waiting;
  auto key_of = [](const scheduler::Waiting& w) { return Key(w.element.workload, w.element.gang); };
  if (cursor_ >= waiting.size() || key_of(waiting[cursor_]) != key) {
    auto found = std::lower_bound(waiting.begin(), waiting.end(), key, [&](const scheduler::Waiting& w, const Key& k) { return key_of(w) < k; });
    if (found == waiting.end() || key_of(*found) != key) return nullptr;
    cursor_ = static_cast<std::size_t>(found - waiting.begin());
  }
  return waiting[cursor_++].wait.get();
}

Waits::Found Waits::find(const WorkloadEntry& entry, const Gang* gang) const {
  const Key key(entry.workload.id, gang ? gang->id : GangId());
  Found found;
  found.told = told(key);
  if (found.told) {
    found.reason = found.told->reason;
    found.planned_start = found.told->planned_start;
  }
  if (auto why = scheduler::ineligible(picture_.state, entry, gang, now_); why && found.reason != why->reason)
    found = {why->reason, why->until, nullptr, nullptr};
  if (found.reason.empty()) found.reason = reason::kNoneYet;
  auto promise = std::lower_bound(promises_.begin(), promises_.end(), key, [](const auto& p, const Key& k) { return p.first < k; });
  if (promise != promises_.end() && promise->first == key) {
    found.promise = promise->second;
    found.planned_start = found.promise->at;
  }
  return found;
}

}  // namespace tutti::controller
