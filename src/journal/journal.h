// The journal: every change of state as a durable event, with the scripts and environments the
// events name (blobs), the newest snapshot, and the history of finished gangs, in one SQLite
// database (`journal.db` in the state directory; WAL, a full sync per batch).
//
// Promises:
//  * append() returns success only after the whole batch is on disk (one transaction, one sync).
//    A batch is there whole or not at all, after any crash and any torn write.
//  * An error from append() leaves the journal usable and the batch out of it, and the sequence
//    numbers of the failed batch are given to the next one. Only if the process ends before
//    another write succeeds may the failed batch still be found (whole) after the restart: the
//    caller did not learn its fate, as with any commit.
//  * What open() reports is itself durable: a second crash does not take it back.
//  * open() cuts an unfinished transaction at the end and says so; it refuses (kCorrupt) to guess
//    about anything worse: a gap, a changed row, a damaged log or database.
//
// Threads: open and use a Journal on one thread at a time (the writer). Other threads read
// through a HistoryReader each. One process at a time may have the journal open for writing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "journal/blob.h"
#include "journal/history.h"

namespace tutti::journal {

// Number of an event: 1, 2, 3... without gaps; 0 = none.
using Sequence = std::uint64_t;

// The newest format this program reads and writes. A change of the tables raises it.
inline constexpr std::int64_t kFormat = 1;

enum class Check : std::uint8_t {
  kEvents,     // snapshot and events: what recovery needs
  kWholeFile,  // also every page, index and blob; seconds per GB. For `tutti doctor`
};

struct OpenOptions {
  // Created (0700) when it does not exist; files in it are 0600.
  std::string directory;
  // Stored when the journal is created; a different one later is refused. Empty: not compared.
  std::string cluster_id;
  Check check = Check::kEvents;
  // The log is copied into the database file when it exceeds this many pages of 4 KiB. At least 1.
  std::uint32_t checkpoint_pages = 2000;
  // For tests: the name of a registered SQLite VFS (see journal/fault_vfs.h). Empty: the system's.
  std::string vfs;
};

// What one append makes durable together. Order of effect: events, blobs, drops, history.
struct Batch {
  std::vector<std::string> events;
  // Each raises the reference count of its content by one (stored at the first).
  std::vector<Blob> blobs;
  std::vector<HistoryRow> history;
  // Each lowers a count by one; at 0 the content is deleted.
  std::vector<BlobId> drop_blobs;

  bool empty() const {
    return events.empty() && blobs.empty() && history.empty() && drop_blobs.empty();
  }
};

struct Snapshot {
  Sequence sequence = 0;  // the state after this event
  std::string body;
};

// What open() found and did.
struct RecoveryReport {
  bool created = false;
  Sequence snapshot_sequence = 0;
  Sequence last_sequence = 0;
  std::uint64_t events = 0;  // after the snapshot
  // Log frames (pages) of whole commits that were found in the log, and what came after the last
  // of them: a transaction that nobody was told had succeeded.
  std::uint64_t log_frames_kept = 0;
  std::uint64_t log_frames_dropped = 0;
  std::uint64_t log_bytes_dropped = 0;
  // One sentence each, for the log: a torn tail, a loose mode, a checkpoint that failed.
  std::vector<std::string> notes;
};

struct OpenedJournal;

class Journal {
 public:
  struct Impl;
  explicit Journal(std::unique_ptr<Impl> impl);
  Journal(Journal&&) noexcept;
  Journal& operator=(Journal&&) noexcept;
  ~Journal();

  // Makes the batch durable; returns the number of its last event (an empty batch or one without
  // events: the last number so far). Cost: one disk sync (0.2 to 10 ms) and about 2 us an event.
  // Errors: kExhausted (disk full: try again when there is space), kUnavailable (I/O error),
  // kNotFound (drops a blob that is not there), kInvalid (a text above 256 MiB), kCorrupt.
  Result<Sequence> append(const Batch& batch);

  // Stores the state after event `sequence` and deletes the events up to it and older snapshots,
  // in one transaction. `sequence` must lie between the last snapshot and the last event
  // (kInvalid); the body is at most 900 MiB. Cost: about 1 us per event deleted, and the body's
  // size on disk.
  Status write_snapshot(Sequence sequence, std::string_view body);

  // Calls `handle` for each event after `after`, oldest first, checking each; ends early with the
  // error that `handle` returns. Memory stays bounded. Do not write from inside `handle`.
  // `after` must not lie before the snapshot (kInvalid).
  using EventHandler = std::function<Status(Sequence sequence, std::string_view body)>;
  Status for_each_event(Sequence after, const EventHandler& handle);

  // Errors: kNotFound; kCorrupt when the content does not match its name.
  Result<std::string> read_blob(const BlobId& id);

  // As HistoryReader::query, on the writer's connection: sees what was appended last.
  Result<std::vector<std::string>> query_history(const HistoryFilter& filter);
  // Deletes rows of gangs that ended before `before`; returns how many. At most `limit` rows a
  // call, so that the writer is not held for long; call again while it returns `limit`.
  Result<std::uint64_t> purge_history(Instant before, std::uint64_t limit = 10'000);

  // A reader for another thread.
  Result<HistoryReader> open_reader() const;
  // Counts rows: tens of milliseconds per million; a busy controller asks a HistoryReader.
  Result<JournalSizes> sizes();

  Sequence last_sequence() const;
  Sequence snapshot_sequence() const;
  const std::string& cluster_id() const;

 private:
  std::unique_ptr<Impl> impl_;
};

struct OpenedJournal {
  Journal journal;
  std::optional<Snapshot> snapshot;
  // The events after the snapshot: journal.for_each_event(report.snapshot_sequence, ...).
  RecoveryReport report;
};

// Opens or creates the journal and recovers it. Errors: kConflict (another process has it open,
// or it belongs to another cluster), kInvalid with reason "journal_too_new" (written by a newer
// release), kCorrupt (with file, place and advice), kDenied, kExhausted, kUnavailable.
Result<OpenedJournal> open(const OpenOptions& options);

}  // namespace tutti::journal
