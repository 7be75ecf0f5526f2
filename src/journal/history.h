// The history of finished gangs (sacct, reports): one row each time a gang ends, written in the
// transaction of the event that ended it, read by other threads without waiting for the writer.
//
// A row's columns exist for filtering only; what a reader gets is the `record` as it was given.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "journal/blob.h"

namespace tutti::journal {

struct HistoryRow {
  std::uint64_t job_id = 0;
  std::uint64_t array_job_id = 0;  // 0 = not an element of an array
  std::optional<std::uint64_t> array_index;
  std::string user;
  std::uint32_t uid = 0;
  std::string account;
  std::string partition;
  std::string name;
  std::string state;  // "COMPLETED", "FAILED"...
  Instant submit;
  Instant start;  // not set: never started
  Instant end;
  std::string record;  // JSON
};

// One job (`-j 100`: also every element of array 100) or one array element (`-j 100_5`: also the rows
// of array 100 that have no index, which stand for elements that never started; who asks looks into
// their records).
struct JobSelector {
  std::uint64_t id = 0;
  std::optional<std::uint64_t> array_index;
};

// A job restarted or requeued has several rows: which of those that pass the filter to give.
enum class Duplicates : std::uint8_t { kNewestOnly, kAll };

// A row passes when it passes every list that is not empty (an element of a list is an exact
// match) and the window. The window follows sacct(1): without `states`, a job that existed at any
// time in it (end >= from, submit <= to); with `states`, a job that ended in it.
struct HistoryFilter {
  std::vector<JobSelector> ids;
  std::vector<std::string> users;
  std::vector<std::uint32_t> uids;
  std::vector<std::string> accounts;
  std::vector<std::string> partitions;
  std::vector<std::string> names;
  std::vector<std::string> states;
  std::optional<Instant> from;
  std::optional<Instant> to;
  Duplicates duplicates = Duplicates::kNewestOnly;
  // The newest so many rows; 0 = all. Callers that serve users should bound it.
  std::uint64_t limit = 0;
};

// Sizes for `tutti doctor`.
struct JournalSizes {
  std::uint64_t database_bytes = 0;
  std::uint64_t free_bytes = 0;  // inside database_bytes, reused before the file grows
  std::uint64_t wal_bytes = 0;
  std::uint64_t events_since_snapshot = 0;
  std::uint64_t snapshot_bytes = 0;
  std::uint64_t blobs = 0;
  std::uint64_t history_rows = 0;
};

// A read-only view of the journal's database, with a connection of its own. Use one object per
// thread (it may be moved between threads, not shared); it never waits for the writer and sees
// each batch whole or not at all. It keeps working while the Journal lives in the same or in
// another process; close it before the Journal.
class HistoryReader {
 public:
  struct Impl;
  explicit HistoryReader(std::unique_ptr<Impl> impl);
  HistoryReader(HistoryReader&&) noexcept;
  HistoryReader& operator=(HistoryReader&&) noexcept;
  ~HistoryReader();

  // The records that pass, in the order in which they were written. Errors: kInvalid (more than
  // 20,000 elements in the lists), kUnavailable, kCorrupt.
  Result<std::vector<std::string>> query(const HistoryFilter& filter);
  // Errors: kNotFound; kCorrupt when the content does not match its name.
  Result<std::string> read_blob(const BlobId& id);
  // Counts rows: tens of milliseconds per million of them.
  Result<JournalSizes> sizes();

 private:
  std::unique_ptr<Impl> impl_;
};

// Opens the journal in `directory` for reading only. Errors: kNotFound (no journal there),
// kDenied, kUnavailable, kCorrupt.
Result<HistoryReader> open_history_reader(const std::string& directory,
                                          const std::string& vfs = {});

}  // namespace tutti::journal
