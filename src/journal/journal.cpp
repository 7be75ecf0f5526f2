#include "journal/journal.h"

#include <fmt/format.h>

#include "journal/checksum.h"
#include "journal/journal_impl.h"
#include "journal/tables.h"

namespace tutti::journal {
namespace {

// SQLite stops at 1 GB for a row. A snapshot may come near that; an event near it is a mistake.
constexpr std::size_t kMaxTextBytes = std::size_t{256} << 20;
constexpr std::size_t kMaxSnapshotBytes = std::size_t{900} << 20;

Status check_size(std::string_view what, std::size_t size, std::size_t most = kMaxTextBytes) {
  if (size <= most) return {};
  return invalid(fmt::format("journal: {} of {} bytes; at most {} are allowed", what, size, most));
}

Status check_batch(const Batch& batch) {
  for (const std::string& event : batch.events) {
    if (Status s = check_size("an event", event.size()); !s) return s;
  }
  for (const Blob& blob : batch.blobs) {
    if (Status s = check_size("a blob", blob.data().size()); !s) return s;
  }
  for (const HistoryRow& row : batch.history) {
    if (Status s = check_size("a history record", row.record.size()); !s) return s;
  }
  return {};
}

std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

}  // namespace

Journal::Journal(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Journal::Journal(Journal&&) noexcept = default;
Journal& Journal::operator=(Journal&&) noexcept = default;
Journal::~Journal() = default;

Sequence Journal::last_sequence() const { return impl_->tail.sequence; }
Sequence Journal::snapshot_sequence() const { return impl_->snapshot.sequence; }
const std::string& Journal::cluster_id() const { return impl_->cluster_id; }

Status Journal::Impl::prepare_statements() {
  struct Entry {
    Statement* statement;
    std::string_view sql;
  };
  for (const Entry& entry : {
           Entry{&insert_event, "INSERT INTO events(seq, checksum, body) VALUES(?, ?, ?)"},
           Entry{&raise_blob, "UPDATE blobs SET refs = refs + 1 WHERE id = ?"},
           Entry{&insert_blob_data, "INSERT INTO blob_data(data) VALUES(?)"},
           Entry{&insert_blob,
                 "INSERT INTO blobs(id, refs, data_row) VALUES(?, 1, last_insert_rowid())"},
           Entry{&find_blob, "SELECT refs, data_row FROM blobs WHERE id = ?"},
           Entry{&lower_blob, "UPDATE blobs SET refs = refs - 1 WHERE id = ?"},
           Entry{&delete_blob, "DELETE FROM blobs WHERE id = ?"},
           Entry{&delete_blob_data, "DELETE FROM blob_data WHERE row = ?"},
           Entry{&insert_history,
                 "INSERT INTO history(job_id, array_job_id, array_index, user, uid, account, "
                 "partition, name, state, submit_ms, start_ms, end_ms, record) VALUES(?, ?, ?, ?, "
                 "?, ?, ?, ?, ?, ?, ?, ?, ?)"},
       }) {
    Result<Statement> prepared = database.prepare(entry.sql);
    if (!prepared) return tl::unexpected(std::move(prepared.error()));
    *entry.statement = std::move(*prepared);
  }
  return {};
}

Status Journal::Impl::put_blob(const Blob& blob) {
  const std::span<const std::uint8_t> id(blob.id().bytes);
  raise_blob.bind(1, id);
  if (Status s = raise_blob.run(); !s) return s;
  if (database.changes() != 0) return {};
  insert_blob_data.bind(1, bytes_of(blob.data()));
  if (Status s = insert_blob_data.run(); !s) return s;
  insert_blob.bind(1, id);
  return insert_blob.run();
}

Status Journal::Impl::drop_blob(const BlobId& id) {
  const std::span<const std::uint8_t> bytes(id.bytes);
  find_blob.bind(1, bytes);
  Result<bool> row = find_blob.step();
  if (!row) return tl::unexpected(std::move(row.error()));
  if (!*row) {
    return fail(ErrorCode::kNotFound, fmt::format("{}: cannot drop blob {}: it is not there",
                                                  database.path(), to_string(id)));
  }
  const std::int64_t refs = find_blob.integer(0);
  const std::int64_t data_row = find_blob.integer(1);
  find_blob.reset();
  if (refs > 1) {
    lower_blob.bind(1, bytes);
    return lower_blob.run();
  }
  delete_blob.bind(1, bytes);
  if (Status s = delete_blob.run(); !s) return s;
  delete_blob_data.bind(1, data_row);
  return delete_blob_data.run();
}

Status Journal::Impl::add_history(const HistoryRow& row) {
  Statement& insert = insert_history;
  insert.bind(1, static_cast<std::int64_t>(row.job_id));
  insert.bind(2, static_cast<std::int64_t>(row.array_job_id));
  if (row.array_index) {
    insert.bind(3, static_cast<std::int64_t>(*row.array_index));
  } else {
    insert.bind_null(3);
  }
  insert.bind(4, std::string_view(row.user));
  insert.bind(5, static_cast<std::int64_t>(row.uid));
  insert.bind(6, std::string_view(row.account));
  insert.bind(7, std::string_view(row.partition));
  insert.bind(8, std::string_view(row.name));
  insert.bind(9, std::string_view(row.state));
  insert.bind(10, row.submit.ms());
  insert.bind(11, row.start.ms());
  insert.bind(12, row.end.ms());
  insert.bind(13, std::string_view(row.record));
  return insert.run();
}

Result<Tail> Journal::Impl::write(const Batch& batch) {
  Tail end = tail;
  for (const std::string& event : batch.events) {
    ++end.sequence;
    end.checksum = chain_checksum(end.checksum, end.sequence, event);
    insert_event.bind(1, static_cast<std::int64_t>(end.sequence));
    insert_event.bind(2, static_cast<std::int64_t>(end.checksum));
    insert_event.bind(3, std::string_view(event));
    if (Status s = insert_event.run(); !s) return tl::unexpected(std::move(s.error()));
  }
  for (const Blob& blob : batch.blobs) {
    if (Status s = put_blob(blob); !s) return tl::unexpected(std::move(s.error()));
  }
  for (const BlobId& id : batch.drop_blobs) {
    if (Status s = drop_blob(id); !s) return tl::unexpected(std::move(s.error()));
  }
  for (const HistoryRow& row : batch.history) {
    if (Status s = add_history(row); !s) return tl::unexpected(std::move(s.error()));
  }
  return end;
}

void Journal::Impl::checkpoint_if_due() {
  if (database.log_pages() < options.checkpoint_pages) return;
  // A failure costs nothing but space in the log: the next commit tries again, and a disk that
  // stays full fails that commit with the reason.
  (void)database.checkpoint();
}

Result<Sequence> Journal::append(const Batch& batch) {
  if (batch.empty()) return impl_->tail.sequence;
  if (Status s = check_batch(batch); !s) return tl::unexpected(std::move(s.error()));
  {
    Transaction transaction(impl_->database);
    if (Status s = transaction.begin(); !s) return tl::unexpected(std::move(s.error()));
    Result<Tail> end = impl_->write(batch);
    if (!end) return tl::unexpected(std::move(end.error()));
    if (Status s = transaction.commit(); !s) return tl::unexpected(std::move(s.error()));
    impl_->tail = *end;
  }
  impl_->checkpoint_if_due();
  return impl_->tail.sequence;
}

Result<Tail> Journal::Impl::tail_at(Sequence sequence) {
  if (sequence == tail.sequence) return tail;
  if (sequence == snapshot.sequence) return snapshot;
  if (sequence < snapshot.sequence || sequence > tail.sequence) {
    return invalid(fmt::format("journal: event {} is not kept; expected one from {} to {}",
                               sequence, snapshot.sequence, tail.sequence));
  }
  Result<Statement> select = database.prepare("SELECT checksum FROM events WHERE seq = ?");
  if (!select) return tl::unexpected(std::move(select.error()));
  select->bind(1, static_cast<std::int64_t>(sequence));
  Result<bool> row = select->step();
  if (!row) return tl::unexpected(std::move(row.error()));
  if (!*row) {
    return fail(ErrorCode::kCorrupt,
                fmt::format("{}: event {} is missing; restore the state directory from a backup",
                            database.path(), sequence));
  }
  return Tail{sequence, static_cast<std::uint32_t>(select->integer(0))};
}

Status Journal::write_snapshot(Sequence sequence, std::string_view body) {
  Database& database = impl_->database;
  if (Status s = check_size("a snapshot", body.size(), kMaxSnapshotBytes); !s) return s;
  Result<Tail> at = impl_->tail_at(sequence);
  if (!at) return tl::unexpected(std::move(at.error()));
  Result<Statement> insert = database.prepare(
      "INSERT OR REPLACE INTO snapshots(seq, event_checksum, body_checksum, body) VALUES(?, ?, ?, "
      "?)");
  if (!insert) return tl::unexpected(std::move(insert.error()));
  const auto number = static_cast<std::int64_t>(sequence);
  {
    Transaction transaction(database);
    if (Status s = transaction.begin(); !s) return s;
    insert->bind(1, number);
    insert->bind(2, static_cast<std::int64_t>(at->checksum));
    insert->bind(3, static_cast<std::int64_t>(crc32c(0, body)));
    insert->bind(4, body);
    if (Status s = insert->run(); !s) return s;
    const std::string compact = fmt::format(
        "DELETE FROM snapshots WHERE seq <> {0}; DELETE FROM events WHERE seq <= {0}", number);
    if (Status s = database.execute(compact); !s) return s;
    if (Status s = transaction.commit(); !s) return s;
    impl_->snapshot = *at;
  }
  // Free pages are used again by the next events; only a file that is mostly empty is shortened.
  // The snapshot is already safe, so a failure here is none of the caller's concern.
  Result<std::int64_t> free_pages = database.integer("PRAGMA freelist_count");
  Result<std::int64_t> pages = database.integer("PRAGMA page_count");
  if (free_pages && pages && *free_pages > 4096 && *free_pages > *pages / 2) {
    (void)database.execute(fmt::format("PRAGMA incremental_vacuum({})", *free_pages / 2));
  }
  impl_->checkpoint_if_due();
  return {};
}

Result<Tail> Journal::Impl::scan(const Tail& start, const Journal::EventHandler& handle) {
  Result<Statement> select =
      database.prepare("SELECT seq, checksum, body FROM events WHERE seq > ? ORDER BY seq");
  if (!select) return tl::unexpected(std::move(select.error()));
  select->bind(1, static_cast<std::int64_t>(start.sequence));
  Tail at = start;
  constexpr std::string_view kAdvice =
      "restore the state directory from a backup, or ask `tutti doctor` what can be saved";
  while (true) {
    Result<bool> row = select->step();
    if (!row) {
      row.error().message = fmt::format("{} (after event {})", row.error().message, at.sequence);
      return tl::unexpected(std::move(row.error()));
    }
    if (!*row) return at;
    const auto sequence = static_cast<Sequence>(select->integer(0));
    if (sequence != at.sequence + 1) {
      return fail(ErrorCode::kCorrupt,
                  fmt::format("{}: events {} to {} are missing; {}", database.path(),
                              at.sequence + 1, sequence - 1, kAdvice),
                  "journal_gap");
    }
    const std::string_view body = select->text(2);
    const std::uint32_t expected = chain_checksum(at.checksum, sequence, body);
    if (static_cast<std::int64_t>(expected) != select->integer(1)) {
      return fail(ErrorCode::kCorrupt,
                  fmt::format("{}: event {} is damaged (checksum {:#x}, expected {:#x}); {}",
                              database.path(), sequence, select->integer(1), expected, kAdvice),
                  "journal_event_damaged");
    }
    at = Tail{sequence, expected};
    if (Status s = handle(sequence, body); !s) return tl::unexpected(std::move(s.error()));
  }
}

Status Journal::for_each_event(Sequence after, const EventHandler& handle) {
  Result<Tail> start = impl_->tail_at(after);
  if (!start) return tl::unexpected(std::move(start.error()));
  Result<Tail> end = impl_->scan(*start, handle);
  if (!end) return tl::unexpected(std::move(end.error()));
  return {};
}

Result<std::string> Journal::read_blob(const BlobId& id) {
  return journal::read_blob(impl_->database, id);
}

Result<std::vector<std::string>> Journal::query_history(const HistoryFilter& filter) {
  return journal::query_history(impl_->database, filter);
}

Result<std::uint64_t> Journal::purge_history(Instant before, std::uint64_t limit) {
  Result<Statement> purge = impl_->database.prepare(
      "DELETE FROM history WHERE row IN (SELECT row FROM history WHERE end_ms < ? ORDER BY end_ms "
      "LIMIT ?)");
  if (!purge) return tl::unexpected(std::move(purge.error()));
  purge->bind(1, before.ms());
  purge->bind(2, static_cast<std::int64_t>(std::min<std::uint64_t>(limit, INT64_MAX)));
  if (Status s = purge->run(); !s) return tl::unexpected(std::move(s.error()));
  const auto purged = static_cast<std::uint64_t>(impl_->database.changes());
  impl_->checkpoint_if_due();
  return purged;
}

Result<HistoryReader> Journal::open_reader() const {
  return open_history_reader(impl_->options.directory, impl_->options.vfs);
}

Result<JournalSizes> Journal::sizes() { return read_sizes(impl_->database); }

}  // namespace tutti::journal
