// Reads a SQLite write-ahead log before SQLite does, to say what SQLite would silently drop.
//
// SQLite replays a log up to the last whole commit and ignores the rest. After a crash the rest
// is the one transaction that was being written. But a damaged frame in the middle looks the same
// to SQLite, and it would drop acknowledged commits behind it without a word; that is told apart
// here. Format: https://www.sqlite.org/fileformat2.html#the_write_ahead_log
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"

namespace tutti::journal {

struct WalReport {
  std::uint64_t frames_kept = 0;     // up to and including the last whole commit
  std::uint64_t frames_dropped = 0;  // begun or whole, after it
  std::uint64_t bytes_dropped = 0;
};

// Inspects the log at `path` (a log that is missing or empty gives zeros). Reads it once.
// Errors: kCorrupt when commits lie behind a damaged frame, or the header is damaged; kDenied,
// kUnavailable when it cannot be read.
Result<WalReport> inspect_wal(const std::string& path);

}  // namespace tutti::journal
