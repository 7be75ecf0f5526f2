#include "journal/schema.h"

#include <fmt/format.h>

#include "journal/journal.h"

namespace tutti::journal {
namespace {

// "Tutt" in the file's header: file(1) and the check below know the file by it.
constexpr std::int64_t kApplicationId = 0x54757474;

// blob_data is apart from blobs because raising a count would otherwise rewrite the content.
// The indexes of history are those that sacct asks by most: one job, one user, a window.
constexpr const char* kTables = R"sql(
CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE events(seq INTEGER PRIMARY KEY, checksum INTEGER NOT NULL, body TEXT NOT NULL);
CREATE TABLE snapshots(seq INTEGER PRIMARY KEY, event_checksum INTEGER NOT NULL,
                       body_checksum INTEGER NOT NULL, body TEXT NOT NULL);
CREATE TABLE blobs(id BLOB PRIMARY KEY, refs INTEGER NOT NULL, data_row INTEGER NOT NULL)
  WITHOUT ROWID;
CREATE TABLE blob_data(row INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE history(row INTEGER PRIMARY KEY, job_id INTEGER NOT NULL,
                     array_job_id INTEGER NOT NULL, array_index INTEGER, user TEXT NOT NULL,
                     uid INTEGER NOT NULL, account TEXT NOT NULL, partition TEXT NOT NULL,
                     name TEXT NOT NULL, state TEXT NOT NULL, submit_ms INTEGER NOT NULL,
                     start_ms INTEGER NOT NULL, end_ms INTEGER NOT NULL, record TEXT NOT NULL);
CREATE INDEX history_job ON history(job_id);
CREATE INDEX history_array ON history(array_job_id) WHERE array_job_id <> 0;
CREATE INDEX history_user ON history(user, end_ms);
CREATE INDEX history_end ON history(end_ms);
)sql";

Result<std::string> meta_text(Database& database, std::string_view key) {
  Result<Statement> select = database.prepare("SELECT value FROM meta WHERE key = ?");
  if (!select) return tl::unexpected(std::move(select.error()));
  select->bind(1, key);
  Result<bool> row = select->step();
  if (!row) return tl::unexpected(std::move(row.error()));
  if (!*row) {
    return fail(ErrorCode::kCorrupt,
                fmt::format("{}: table meta lacks the row \"{}\"; restore the state directory from "
                            "a backup",
                            database.path(), key));
  }
  return std::string(select->text(0));
}

Status set_meta(Database& database, std::string_view key, std::string_view value) {
  Result<Statement> insert = database.prepare("INSERT INTO meta(key, value) VALUES(?, ?)");
  if (!insert) return tl::unexpected(std::move(insert.error()));
  insert->bind(1, key);
  insert->bind(2, value);
  return insert->run();
}

Status create(Database& database, const std::string& cluster_id) {
  Transaction transaction(database);
  if (Status s = transaction.begin(); !s) return s;
  if (Status s = database.execute(kTables); !s) return s;
  if (Status s = database.execute(fmt::format("PRAGMA application_id = {}", kApplicationId)); !s) {
    return s;
  }
  if (Status s = set_meta(database, "format", fmt::format("{}", kFormat)); !s) return s;
  if (Status s = set_meta(database, "cluster_id", cluster_id); !s) return s;
  return transaction.commit();
}

// Settings of a connection, none of which writes to the file.
Status configure_writer(Database& database) {
  // secure_delete FAST wipes what costs no extra write. (Not wal_autocheckpoint: Database has
  // already taken the hook's place, and the pragma would remove it.)
  for (const char* sql : {"PRAGMA synchronous = FULL", "PRAGMA secure_delete = FAST",
                          "PRAGMA journal_size_limit = 67108864", "PRAGMA cache_size = -512",
                          "PRAGMA temp_store = MEMORY"}) {
    if (Status s = database.execute(sql); !s) return s;
  }
  return {};
}

// The file's own settings, before its first page is written. auto_vacuum writes even when it
// changes nothing, and must not: an open on a full disk would fail.
Status configure_file(Database& database) {
  if (Status s = database.execute("PRAGMA auto_vacuum = INCREMENTAL"); !s) return s;
  return database.execute("PRAGMA journal_mode = WAL");
}

}  // namespace

Status check_format(Database& database) {
  Result<std::int64_t> application = database.integer("PRAGMA application_id");
  if (!application) return tl::unexpected(std::move(application.error()));
  if (*application != kApplicationId) {
    return fail(ErrorCode::kCorrupt,
                fmt::format("{}: this SQLite file is not a Tutti journal (application id {:#x}, "
                            "expected {:#x}); move it away or choose another state directory",
                            database.path(), *application, kApplicationId),
                "journal_foreign");
  }
  Result<std::string> text = meta_text(database, "format");
  if (!text) return tl::unexpected(std::move(text.error()));
  const std::int64_t format = std::strtoll(text->c_str(), nullptr, 10);
  if (format > kFormat) {
    return invalid(
        fmt::format("{}: the journal has format {}, this program knows formats up to {}; start the "
                    "release that wrote it (or a newer one), or restore the backup made before the "
                    "upgrade",
                    database.path(), format, kFormat),
        "journal_too_new");
  }
  if (format < 1) {
    return fail(ErrorCode::kCorrupt,
                fmt::format("{}: table meta has format \"{}\", expected a number from 1 to {}; "
                            "restore the state directory from a backup",
                            database.path(), *text, kFormat));
  }
  return {};
}

Result<SchemaReport> prepare_schema(Database& database, const std::string& cluster_id) {
  Result<std::int64_t> tables = database.integer("SELECT count(*) FROM sqlite_master");
  if (!tables) return tl::unexpected(std::move(tables.error()));
  if (*tables == 0) {
    if (Status s = configure_writer(database); !s) return tl::unexpected(std::move(s.error()));
    if (Status s = configure_file(database); !s) return tl::unexpected(std::move(s.error()));
    if (Status s = create(database, cluster_id); !s) return tl::unexpected(std::move(s.error()));
    return SchemaReport{true, cluster_id};
  }
  // Nothing of a file that may not be ours is changed before this check.
  if (Status s = check_format(database); !s) return tl::unexpected(std::move(s.error()));
  Result<std::string> stored = meta_text(database, "cluster_id");
  if (!stored) return tl::unexpected(std::move(stored.error()));
  if (!cluster_id.empty() && *stored != cluster_id) {
    return fail(ErrorCode::kConflict,
                fmt::format("{}: the journal belongs to cluster \"{}\", not to \"{}\"; choose "
                            "another state directory or correct the cluster's name",
                            database.path(), *stored, cluster_id),
                "journal_other_cluster");
  }
  if (Status s = configure_writer(database); !s) return tl::unexpected(std::move(s.error()));
  return SchemaReport{false, std::move(*stored)};
}

}  // namespace tutti::journal
