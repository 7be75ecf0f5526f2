// Why each pending element of a published picture waits: what the last pass said, corrected by what
// has changed since (a hold is told at once). Valid while the picture is.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/published.h"

namespace tutti::controller {

class Waits {
 public:
  struct Found {
    std::string_view reason;  // never empty
    Instant planned_start;
    const Wait* told = nullptr;  // the pass's own words, if they still hold
    const scheduler::Promise* promise = nullptr;
  };

  Waits(const Published& picture, Instant now);
  // Of the elements without a gang (null), or of a pending gang. Cheapest in order of workloads.
  Found find(const WorkloadEntry& entry, const Gang* gang) const;
  const Published& picture() const { return picture_; }
  Instant now() const { return now_; }

 private:
  using Key = std::pair<WorkloadId, GangId>;
  const Wait* told(const Key& key) const;

  const Published& picture_;
  Instant now_;
  std::vector<std::pair<Key, const scheduler::Promise*>> promises_;  // by key
  mutable std::size_t cursor_ = 0;  // the waiting element after the last one found
};

}  // namespace tutti::controller
