// journal::open: makes or recovers the database. The order matters and is that of open() at the
// end of this file.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "journal/checksum.h"
#include "journal/journal.h"
#include "journal/journal_impl.h"
#include "journal/schema.h"
#include "journal/tables.h"
#include "journal/wal.h"

namespace tutti::journal {
namespace {

Status sync_directory(const std::string& directory) {
  const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return fail_errno(errno, directory);
  const int result = fsync(descriptor);
  const int errno_value = errno;
  ::close(descriptor);
  if (result != 0) return fail_errno(errno_value, directory);
  return {};
}

Status make_directory(const std::string& directory, std::vector<std::string>& notes) {
  const std::filesystem::path path(directory);
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  if (error) return fail_errno(error.value(), path.parent_path().string());
  if (mkdir(directory.c_str(), 0700) == 0) {
    const std::string parent = path.has_parent_path() ? path.parent_path().string() : ".";
    return sync_directory(parent);
  }
  if (errno != EEXIST) return fail_errno(errno, directory);
  struct stat status{};
  if (stat(directory.c_str(), &status) != 0) return fail_errno(errno, directory);
  if (!S_ISDIR(status.st_mode)) return fail_errno(ENOTDIR, directory);
  if ((status.st_mode & 022) != 0) {
    notes.push_back(
        fmt::format("{}: others may write to the state directory (mode {:o}); expected "
                    "700",
                    directory, status.st_mode & 07777));
  }
  return {};
}

// SQLite gives the log the mode of the database, so the database is made here, with ours. An
// existing one is not opened: closing it again would drop the locks of a reader in this process.
Status make_file(const std::string& directory, const std::string& path) {
  if (chmod(path.c_str(), 0600) == 0) return {};
  if (errno != ENOENT) return fail_errno(errno, path);
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) return fail_errno(errno, path);
  ::close(descriptor);
  return sync_directory(directory);
}

Status inspect_log(const std::string& path, RecoveryReport& report) {
  Result<WalReport> log = inspect_wal(path + "-wal");
  if (!log) return tl::unexpected(std::move(log.error()));
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if ((error || size == 0) && log->frames_kept != 0) {
    return fail(ErrorCode::kCorrupt,
                fmt::format("{}: the database is missing or empty, but its log {}-wal holds "
                            "transactions; restore both files from a backup",
                            path, path),
                "journal_database_missing");
  }
  report.log_frames_kept = log->frames_kept;
  report.log_frames_dropped = log->frames_dropped;
  report.log_bytes_dropped = log->bytes_dropped;
  if (log->bytes_dropped != 0) {
    report.notes.push_back(
        fmt::format("{}-wal: dropped {} bytes ({} frames) of an unfinished transaction after the "
                    "last whole commit at frame {}",
                    path, log->bytes_dropped, log->frames_dropped, log->frames_kept));
  }
  return {};
}

Result<std::optional<Snapshot>> load_snapshot(Database& database, Tail& at) {
  Result<Statement> select = database.prepare(
      "SELECT seq, event_checksum, body_checksum, body FROM snapshots ORDER BY seq DESC");
  if (!select) return tl::unexpected(std::move(select.error()));
  Result<bool> row = select->step();
  if (!row) return tl::unexpected(std::move(row.error()));
  if (!*row) return std::optional<Snapshot>();
  Snapshot snapshot{static_cast<Sequence>(select->integer(0)), std::string(select->text(3))};
  const std::uint32_t checksum = crc32c(0, snapshot.body);
  if (static_cast<std::int64_t>(checksum) != select->integer(2)) {
    return fail(ErrorCode::kCorrupt,
                fmt::format("{}: the snapshot of event {} is damaged (checksum {:#x}, expected "
                            "{:#x}); restore the state directory from a backup",
                            database.path(), snapshot.sequence, select->integer(2), checksum),
                "journal_snapshot_damaged");
  }
  at = Tail{snapshot.sequence, static_cast<std::uint32_t>(select->integer(1))};
  return std::optional<Snapshot>(std::move(snapshot));
}

Status check_pages(Database& database) {
  Result<Statement> check = database.prepare("PRAGMA integrity_check(3)");
  if (!check) return tl::unexpected(std::move(check.error()));
  Result<bool> row = check->step();
  if (!row) return tl::unexpected(std::move(row.error()));
  if (*row && check->text(0) == "ok") return {};
  return fail(ErrorCode::kCorrupt,
              fmt::format("{}: the database is malformed: {}; restore the state directory from a "
                          "backup",
                          database.path(), *row ? check->text(0) : "no answer"),
              "journal_database_damaged");
}

// SQLite does not say where its file is malformed; a check of all pages does, where it can be made.
tl::unexpected<Error> located(Database& database, Error error) {
  if (error.code == ErrorCode::kCorrupt && error.reason.empty()) {
    Status pages = check_pages(database);
    if (!pages && pages.error().reason == "journal_database_damaged") {
      error = std::move(pages.error());
    }
  }
  return tl::unexpected(std::move(error));
}

Status check_blobs(Database& database) {
  Result<Statement> select = database.prepare("SELECT id FROM blobs");
  if (!select) return tl::unexpected(std::move(select.error()));
  while (true) {
    Result<bool> row = select->step();
    if (!row) return tl::unexpected(std::move(row.error()));
    if (!*row) return {};
    BlobId id;
    const std::string_view bytes = select->text(0);
    std::copy_n(bytes.begin(), std::min(bytes.size(), id.bytes.size()), id.bytes.begin());
    if (Result<std::string> data = read_blob(database, id); !data) {
      return tl::unexpected(std::move(data.error()));
    }
  }
}

// Everything that may be read must be on the disk first: after a mere kill the log can hold a
// commit that was never synced, and a later power failure must not take back what was acted on.
Status settle(Database& database, RecoveryReport& report) {
  if (Status s = database.sync_log(); !s) return s;
  if (Status s = database.checkpoint(); !s) {
    report.notes.push_back(
        fmt::format("the log could not be moved into the database: {}", s.error().message));
  }
  return {};
}

Status recover(Journal::Impl& impl, std::optional<Snapshot>& snapshot, RecoveryReport& report) {
  Database& database = impl.database;
  if (impl.options.check == Check::kWholeFile) {
    if (Status s = check_pages(database); !s) return s;
    if (Status s = check_blobs(database); !s) return s;
  }
  Result<std::optional<Snapshot>> newest = load_snapshot(database, impl.snapshot);
  if (!newest) return tl::unexpected(std::move(newest.error()));
  snapshot = std::move(*newest);
  Result<std::int64_t> first = database.integer("SELECT coalesce(min(seq), 0) FROM events");
  if (!first) return tl::unexpected(std::move(first.error()));
  if (*first != 0 && static_cast<Sequence>(*first) <= impl.snapshot.sequence) {
    return fail(ErrorCode::kCorrupt,
                fmt::format("{}: event {} is still there though the snapshot of event {} replaced "
                            "it; restore the state directory from a backup",
                            database.path(), *first, impl.snapshot.sequence),
                "journal_gap");
  }
  Result<Tail> tail = impl.scan(impl.snapshot, [](Sequence, std::string_view) { return Status(); });
  if (!tail) return tl::unexpected(std::move(tail.error()));
  impl.tail = *tail;
  report.snapshot_sequence = impl.snapshot.sequence;
  report.last_sequence = impl.tail.sequence;
  report.events = impl.tail.sequence - impl.snapshot.sequence;
  return {};
}

}  // namespace

Result<OpenedJournal> open(const OpenOptions& options) {
  RecoveryReport report;
  std::optional<Snapshot> snapshot;
  const std::string path = options.directory + "/journal.db";
  if (Status s = make_directory(options.directory, report.notes); !s) {
    return tl::unexpected(std::move(s.error()));
  }
  Result<DirectoryLock> lock = DirectoryLock::take(options.directory);
  if (!lock) return tl::unexpected(std::move(lock.error()));
  if (Status s = inspect_log(path, report); !s) return tl::unexpected(std::move(s.error()));
  if (Status s = make_file(options.directory, path); !s) {
    return tl::unexpected(std::move(s.error()));
  }
  auto impl = std::make_unique<Journal::Impl>(std::move(*lock));
  impl->options = options;
  Result<Database> database = Database::open(path, Access::kReadWrite, options.vfs);
  if (!database) return tl::unexpected(std::move(database.error()));
  impl->database = std::move(*database);
  Result<SchemaReport> schema = prepare_schema(impl->database, options.cluster_id);
  if (!schema) return located(impl->database, std::move(schema.error()));
  report.created = schema->created;
  impl->cluster_id = std::move(schema->cluster_id);
  if (Status s = settle(impl->database, report); !s) return tl::unexpected(std::move(s.error()));
  if (Status s = recover(*impl, snapshot, report); !s) {
    return located(impl->database, std::move(s.error()));
  }
  if (Status s = impl->prepare_statements(); !s) return tl::unexpected(std::move(s.error()));
  return OpenedJournal{Journal(std::move(impl)), std::move(snapshot), std::move(report)};
}

}  // namespace tutti::journal
