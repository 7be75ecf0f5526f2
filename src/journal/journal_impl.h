// The inside of Journal, shared by recovery and writing. Internal to this module.
#pragma once

#include <string>

#include "journal/journal.h"
#include "journal/lock.h"
#include "journal/sqlite.h"

namespace tutti::journal {

// The last event: its number and the checksum that the next one continues.
struct Tail {
  Sequence sequence = 0;
  std::uint32_t checksum = 0;
};

struct Journal::Impl {
  // Declared first, so given back last: after SQLite has closed the files.
  DirectoryLock lock;
  OpenOptions options;
  std::string cluster_id;
  Database database;
  Tail tail;
  Tail snapshot;

  Statement insert_event;
  Statement raise_blob;
  Statement insert_blob_data;
  Statement insert_blob;
  Statement find_blob;
  Statement lower_blob;
  Statement delete_blob;
  Statement delete_blob_data;
  Statement insert_history;

  explicit Impl(DirectoryLock held) : lock(std::move(held)) {}

  Status prepare_statements();
  Result<Tail> write(const Batch& batch);
  Status put_blob(const Blob& blob);
  Status drop_blob(const BlobId& id);
  Status add_history(const HistoryRow& row);
  // Reads and checks the events after `start`, without gaps.
  Result<Tail> scan(const Tail& start, const Journal::EventHandler& handle);
  Result<Tail> tail_at(Sequence sequence);
  // After a commit: moves the log into the database file when it has grown enough.
  void checkpoint_if_due();
};

}  // namespace tutti::journal
