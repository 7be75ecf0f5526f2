// The loop between queues: whose turn it is next. Within a queue candidates come in its own order.
// Between queues: partition tier, queue tier; then gangs within nominal at every level, before
// gangs that would borrow, and of those the one whose queue borrows least for its weight; then
// priority, eligible time, number. Keys are made anew after each start, for starts change what is
// borrowed.
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "scheduler/pass.h"

namespace tutti::scheduler {

class PickNext {
 public:
  // Cost: O(candidates). next(): O(log queues), and once more for each queue whose key got worse.
  explicit PickNext(Pass& pass);
  std::optional<Candidate> next();

 private:
  struct Key {
    std::uint32_t tier = 0, queue_tier = 0;
    QuotaTree::Fit fit = QuotaTree::Fit::kWithinNominal;
    QuotaTree::Borrowing borrowing;
    std::uint64_t priority = 0;
    Instant since;
    std::uint32_t element = 0, rank = 0;
    // Whether `a` comes first.
    friend bool operator<(const Key& a, const Key& b) {
      return std::tie(b.tier, b.queue_tier, a.fit, a.borrowing, b.priority, a.since, a.element,
                      a.rank) < std::tie(a.tier, a.queue_tier, b.fit, b.borrowing, a.priority,
                                         b.since, b.element, b.rank);
    }
  };
  struct Line {                             // of one queue
    std::vector<std::uint32_t> candidates;  // positions in Pass::candidates
    std::size_t at = 0;
  };
  struct Entry {
    Key key;
    std::uint32_t line;
  };
  Key key_of(const Candidate& candidate) const;
  void push(std::uint32_t line);
  static bool comes_later(const Entry& a, const Entry& b) { return b.key < a.key; }

  Pass& pass_;
  std::size_t at_ = 0;  // without queues: the next position
  std::vector<Line> lines_;
  std::optional<std::uint32_t> turn_;  // the line that was served last; not in the heap
  std::vector<Entry> heap_;            // one entry for each line that has candidates left
};

}  // namespace tutti::scheduler
