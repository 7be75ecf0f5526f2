// The small texts every Slurm renderer is made of: times in a zone, cells of a table, memory sizes.
// Pure: what the clock and the zone say comes in as a value.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace tutti::slurm {

// What a command prints and how it ends. `errors` goes to stderr as it is, newlines included.
struct Output {
  std::string text;
  std::string errors;
  int exit_code = 0;
};

// Seconds east of UTC in force at a moment; the composer asks the system, a test gives its own.
using UtcOffset = std::function<std::int32_t(std::int64_t unix_seconds)>;

// Times as Slurm writes them. `format` is the value of SLURM_TIME_FORMAT: "" or "standard" is
// 2026-11-30T20:00:42, "%s" is seconds since 1970, "relative" is Slurm's short form ("20:00:42",
// "Tomorr 20:00", "30 Nov 20:00"), any other text with '%' goes through strftime. Not thread-safe:
// it remembers the last offset.
class TimeText {
 public:
  TimeText() = default;
  TimeText(UtcOffset offset, std::string format, Instant now);
  // Unset instants are `unset`: Slurm has N/A, Unknown, None, each in its place.
  std::string text(Instant at, std::string_view unset = "N/A") const;
  void append(std::string& out, Instant at, std::string_view unset = "N/A") const;
  // "Mon Nov 30 20:01:19 2026": the line above long listings, whatever the format is.
  std::string ctime(Instant at) const;
  Instant now() const { return now_; }

 private:
  enum class Style : std::uint8_t { kIso, kEpoch, kRelative, kCustom };
  std::int32_t offset_at(std::int64_t seconds) const;
  UtcOffset offset_;
  std::string format_;
  Style style_ = Style::kIso;
  Instant now_;
  mutable std::int64_t cached_quarter_ = -1;
  mutable std::int32_t cached_offset_ = 0;
};

// How a cell sits in its column. width 0 = as wide as the value.
struct CellShape {
  std::uint32_t width = 0;
  bool right = false;
};
// Appends `value` cut to the width and padded with blanks. Width counts bytes, as Slurm's does; a
// cut never leaves a part of a UTF-8 character: the bytes that would be broken become blanks.
void append_cell(std::string& out, std::string_view value, CellShape shape);
// The longest prefix of at most `bytes` bytes that ends between characters.
std::string_view cut_utf8(std::string_view text, std::size_t bytes);

// Slurm's size of memory: 1000M, 64G, 1.50G (a half survives), 1000000M; 0 is "0".
std::string memory_text(std::uint64_t mib);
// As squeue/sinfo print it under --noconvert: always M.
enum class Units : std::uint8_t { kConvert, kKeep };
std::string memory_text(std::uint64_t mib, Units units);

// "a,b,c" of names, folded: node[01-02]. Sorted by prefix and number.
std::string fold_nodes(const std::vector<std::string>& names);
// The GPU indices as Slurm lists them: "0-3,6"; "N/A" when none.
std::string index_list(const std::vector<std::uint16_t>& indices, std::string_view none = "N/A");

}  // namespace tutti::slurm
