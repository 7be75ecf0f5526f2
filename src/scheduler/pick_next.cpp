#include "scheduler/pick_next.h"

#include <algorithm>

namespace tutti::scheduler {

PickNext::PickNext(Pass& pass) : pass_(pass) {
  if (pass.quota.empty()) return;
  lines_.resize(pass.quota.size() + 1);  // the last: of workloads that no quota applies to
  for (std::uint32_t i = 0; i < pass.candidates.size(); ++i) {
    const QueueId queue = pass.candidates[i].queue;
    lines_[queue == kNoQueue ? pass.quota.size() : queue].candidates.push_back(i);
  }
  for (std::uint32_t line = 0; line < lines_.size(); ++line) push(line);
}

PickNext::Key PickNext::key_of(const Candidate& candidate) const {
  Key key;
  key.tier = candidate.tier;
  key.priority = candidate.key;
  key.since = candidate.since;
  key.element = candidate.element;
  key.rank = candidate.rank;
  if (candidate.queue == kNoQueue) return key;
  key.queue_tier = pass_.quota.spec(candidate.queue).tier;
  key.fit = QuotaTree::Fit::kOver;
  auto consider = [&](std::uint32_t shape) {
    const Charge& charge = pass_.charge_of_shape(shape);
    const QuotaTree::Fit fit = pass_.quota.judge(candidate.queue, charge);
    const QuotaTree::Borrowing borrowing = fit == QuotaTree::Fit::kWithinNominal
                                               ? QuotaTree::Borrowing{}
                                               : pass_.quota.borrowing(candidate.queue, charge);
    if (std::tie(fit, borrowing) >= std::tie(key.fit, key.borrowing) &&
        key.fit != QuotaTree::Fit::kOver)
      return;
    key.fit = fit;
    key.borrowing = borrowing;
  };
  const std::vector<std::uint32_t>& flavours = pass_.shape_states[candidate.shape].flavours;
  if (flavours.empty()) consider(candidate.shape);
  for (std::uint32_t flavour : flavours) consider(flavour);
  return key;
}

void PickNext::push(std::uint32_t line) {
  Line& of_queue = lines_[line];
  while (of_queue.at < of_queue.candidates.size()) {
    const Candidate& candidate = pass_.candidates[of_queue.candidates[of_queue.at]];
    if (!pass_.elements[candidate.element].settled) {
      heap_.push_back({key_of(candidate), line});
      std::push_heap(heap_.begin(), heap_.end(), comes_later);
      return;
    }
    ++of_queue.at;
  }
}

std::optional<Candidate> PickNext::next() {
  if (lines_.empty()) {
    if (at_ == pass_.candidates.size()) return std::nullopt;
    return pass_.candidates[at_++];
  }
  // The queue that had its turn comes back with what its start has made of its key.
  if (turn_) {
    if (pass_.same_again) --lines_[*turn_].at;
    push(*turn_);
  }
  pass_.same_again = false;
  turn_.reset();
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), comes_later);
    const Entry entry = heap_.back();
    heap_.pop_back();
    Line& line = lines_[entry.line];
    const Candidate& candidate = pass_.candidates[line.candidates[line.at]];
    if (pass_.elements[candidate.element].settled) {
      push(entry.line);
      continue;
    }
    // Since it was pushed others have started; keys only get worse, so the first that is still
    // what it was is the best.
    const Key now = key_of(candidate);
    if (entry.key < now) {
      heap_.push_back({now, entry.line});
      std::push_heap(heap_.begin(), heap_.end(), comes_later);
      continue;
    }
    const Candidate chosen = candidate;
    ++line.at;
    turn_ = entry.line;
    return chosen;
  }
  return std::nullopt;
}

}  // namespace tutti::scheduler
