#include "base/index_set.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/text.h"

namespace tutti {

IndexSet IndexSet::of(Index first, Index last) {
  IndexSet set;
  set.insert(first, last);
  return set;
}

void IndexSet::insert(Index first, Index last) {
  TUTTI_CHECK(first <= last);
  // The ranges that overlap or touch the new one become one with it.
  auto from = std::partition_point(ranges_.begin(), ranges_.end(), [&](const Range& r) {
    return r.last < first && first - r.last > 1;
  });
  auto to = std::partition_point(
      from, ranges_.end(), [&](const Range& r) { return r.first <= last || r.first - last == 1; });
  if (from == to) {
    ranges_.insert(from, Range{first, last});
    return;
  }
  from->first = std::min(from->first, first);
  from->last = std::max(std::prev(to)->last, last);
  ranges_.erase(std::next(from), to);
}

void IndexSet::erase(Index first, Index last) {
  TUTTI_CHECK(first <= last);
  auto from = std::partition_point(ranges_.begin(), ranges_.end(),
                                   [&](const Range& r) { return r.last < first; });
  auto to =
      std::partition_point(from, ranges_.end(), [&](const Range& r) { return r.first <= last; });
  if (from == to) return;
  Range kept[2];
  std::size_t count = 0;
  if (from->first < first) kept[count++] = {from->first, first - 1};
  if (std::prev(to)->last > last) kept[count++] = {last + 1, std::prev(to)->last};
  auto at = ranges_.erase(from, to);
  ranges_.insert(at, kept, kept + count);
}

bool IndexSet::contains(Index index) const { return next(index) == index; }

std::uint64_t IndexSet::count() const {
  std::uint64_t sum = 0;
  for (const Range& r : ranges_) sum += std::uint64_t{r.last} - r.first + 1;
  return sum;
}

std::optional<IndexSet::Index> IndexSet::first() const {
  if (ranges_.empty()) return std::nullopt;
  return ranges_.front().first;
}

std::optional<IndexSet::Index> IndexSet::last() const {
  if (ranges_.empty()) return std::nullopt;
  return ranges_.back().last;
}

std::optional<IndexSet::Index> IndexSet::next(Index index) const {
  auto it = std::partition_point(ranges_.begin(), ranges_.end(),
                                 [&](const Range& r) { return r.last < index; });
  if (it == ranges_.end()) return std::nullopt;
  return std::max(it->first, index);
}

namespace {
// The distance between neighbours if all members stand alone and equally far apart, else 0.
IndexSet::Index regular_step(const std::vector<IndexSet::Range>& ranges) {
  if (ranges.size() < 2) return 0;
  IndexSet::Index step = ranges[1].first - ranges[0].first;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].first != ranges[i].last) return 0;
    if (i > 0 && ranges[i].first - ranges[i - 1].first != step) return 0;
  }
  return step;
}
}  // namespace

std::string IndexSet::to_string() const {
  // Slurm looks for a step only in sets that span more than ten.
  if (!ranges_.empty() && ranges_.back().last - ranges_.front().first > 10) {
    if (Index step = regular_step(ranges_))
      return fmt::format("{}-{}:{}", ranges_.front().first, ranges_.back().last, step);
  }
  std::string out;
  for (const Range& r : ranges_) {
    if (!out.empty()) out += ',';
    out += fmt::to_string(r.first);
    if (r.last != r.first) out += fmt::format("-{}", r.last);
  }
  return out;
}

namespace {
tl::unexpected<Error> bad_array(std::string_view text, std::string_view why) {
  return invalid(fmt::format("array {}: {}", quote(text), why), "invalid_array");
}

Status add_piece(std::string_view text, std::string_view piece, IndexSet::Index max_index,
                 IndexSet& set) {
  auto stepped = split_once(piece, ':');
  std::string_view body = stepped ? stepped->first : piece;
  auto bounds = split_once(body, '-');
  auto first = parse_integer<std::uint64_t>(bounds ? bounds->first : body);
  auto last = bounds ? parse_integer<std::uint64_t>(bounds->second) : first;
  auto step = stepped ? parse_integer<std::uint64_t>(stepped->second) : std::uint64_t{1};
  if (!first || !last || !step || (stepped && !bounds))
    return bad_array(text, fmt::format("expected N, N-M or N-M:STEP, not {}", quote(piece)));
  if (*last < *first) return bad_array(text, fmt::format("{} runs backwards", quote(piece)));
  if (*step == 0) return bad_array(text, fmt::format("the step of {} is 0", quote(piece)));
  if (*last > max_index)
    return bad_array(text,
                     fmt::format("index {} is over the greatest allowed, {}", *last, max_index));
  if (*step == 1) {
    set.insert(static_cast<IndexSet::Index>(*first), static_cast<IndexSet::Index>(*last));
    return {};
  }
  for (std::uint64_t i = *first; i <= *last; i += *step) {
    set.insert(static_cast<IndexSet::Index>(i));
    if (*step > *last) break;  // one member; adding the step could overflow
  }
  return {};
}
}  // namespace

Result<IndexSet> parse_index_set(std::string_view text, IndexSet::Index max_index) {
  IndexSet set;
  for (std::string_view piece : split(text, ',')) {
    if (auto added = add_piece(text, piece, max_index, set); !added)
      return tl::unexpected<Error>(added.error());
  }
  return set;
}

Result<ArraySpec> parse_array_spec(std::string_view text, IndexSet::Index max_index) {
  ArraySpec spec;
  std::string_view body = text;
  if (auto limited = split_once(text, '%')) {
    body = limited->first;
    auto limit = parse_integer<std::uint32_t>(limited->second);
    if (!limit)
      return bad_array(
          text, fmt::format("expected a number of tasks after %, not {}", quote(limited->second)));
    spec.max_at_once = *limit;
  }
  auto indexes = parse_index_set(body, max_index);
  if (!indexes) return tl::unexpected<Error>(indexes.error());
  spec.indexes = std::move(*indexes);
  return spec;
}

}  // namespace tutti
