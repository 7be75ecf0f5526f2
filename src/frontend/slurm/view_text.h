// The small texts every Slurm renderer is made of: times in a zone, cells of a table, memory sizes.
// Pure: what the clock and the zone say comes in as a value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/civil_time.h"
#include "base/local_time.h"
#include "base/time.h"

namespace tutti::slurm {

// What a command prints and how it ends. `errors` goes to stderr as it is, newlines included.
struct Output {
  std::string text;
  std::string errors;
  int exit_code = 0;
};

// Times as Slurm writes them. `format` is the value of SLURM_TIME_FORMAT (base/local_time.h); one
// that Slurm would refuse counts as "standard". The zone must outlive it. Not thread-safe: it
// remembers the last offset, so that a long table asks the zone seldom.
class TimeText {
 public:
  TimeText() = default;  // UTC, standard
  TimeText(const TimeZone& zone, std::string_view format, Instant now);
  // Unset instants are `unset`: Slurm has N/A, Unknown, None, each in its place.
  std::string text(Instant at, std::string_view unset = "N/A") const;
  void append(std::string& out, Instant at, std::string_view unset = "N/A") const;
  // "Mon Nov 30 20:01:19 2026": the line above long listings, whatever the format is.
  std::string ctime(Instant at) const;
  Instant now() const { return now_; }

 private:
  std::int64_t offset_at(std::int64_t seconds) const;
  const TimeZone* zone_ = nullptr;
  std::optional<TimeFormat> format_;  // none: standard
  Instant now_;
  mutable std::int64_t cached_quarter_ = -1;
  mutable std::int64_t cached_offset_ = 0;
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
