// A set of array indexes as sorted disjoint ranges, and the grammar of --array. Memory is by
// range: 0-999999 is one, whatever its size.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tutti {

class IndexSet {
 public:
  using Index = std::uint32_t;
  struct Range {
    Index first = 0;
    Index last = 0;  // inclusive
    friend bool operator==(const Range&, const Range&) = default;
  };

  IndexSet() = default;
  // Requires first <= last.
  static IndexSet of(Index first, Index last);

  // Adds first..last (inclusive, first <= last); what is there already stays.
  void insert(Index first, Index last);
  void insert(Index index) { insert(index, index); }
  void erase(Index first, Index last);
  void erase(Index index) { erase(index, index); }

  bool contains(Index index) const;
  bool empty() const { return ranges_.empty(); }
  std::uint64_t count() const;  // cost: the number of ranges
  std::optional<Index> first() const;
  std::optional<Index> last() const;
  // The smallest member that is at least `index`.
  std::optional<Index> next(Index index) const;
  // Increasing, with a gap of at least one index between neighbours.
  const std::vector<Range>& ranges() const { return ranges_; }

  // As squeue folds it: "1,3,5,7,9", "2-7", and "0-20:4" when a set that spans more than ten is
  // one regular progression.
  std::string to_string() const;

  friend bool operator==(const IndexSet&, const IndexSet&) = default;

 private:
  std::vector<Range> ranges_;
};

struct ArraySpec {
  IndexSet indexes;
  std::uint32_t max_at_once = 0;  // after '%'; 0: no limit
};
// "0-99%4", "1,3,5-9:2%1". Indexes run to max_index inclusive (Slurm: MaxArraySize - 1).
// Errors: kInvalid with reason "invalid_array", naming the piece and what was expected.
Result<ArraySpec> parse_array_spec(std::string_view text, IndexSet::Index max_index);
// The same without '%': "3-7", "1,4,9".
Result<IndexSet> parse_index_set(std::string_view text, IndexSet::Index max_index);

}  // namespace tutti
