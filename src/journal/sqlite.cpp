#include "journal/sqlite.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <cerrno>

namespace tutti::journal {
namespace {

bool out_of_space(int errno_value) { return errno_value == ENOSPC || errno_value == EDQUOT; }

ErrorCode error_code(int code, int errno_value) {
  switch (code & 0xFF) {
    case SQLITE_FULL:
    case SQLITE_NOMEM:
      return ErrorCode::kExhausted;
    case SQLITE_IOERR:
      if (code == SQLITE_IOERR_CORRUPTFS) return ErrorCode::kCorrupt;
      return out_of_space(errno_value) ? ErrorCode::kExhausted : ErrorCode::kUnavailable;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return ErrorCode::kCorrupt;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_CANTOPEN:
    case SQLITE_PROTOCOL:
      return ErrorCode::kUnavailable;
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_READONLY:
      return ErrorCode::kDenied;
    case SQLITE_TOOBIG:
      return ErrorCode::kInvalid;
    default:
      return ErrorCode::kInternal;
  }
}

tl::unexpected<Error> database_error(sqlite3* database, int code) {
  const char* name = database != nullptr ? sqlite3_db_filename(database, "main") : nullptr;
  const int errno_value = database != nullptr ? sqlite3_system_errno(database) : 0;
  const ErrorCode kind = error_code(code, errno_value);
  std::string detail = database != nullptr && sqlite3_extended_errcode(database) == code
                           ? sqlite3_errmsg(database)
                           : sqlite3_errstr(code);
  if (kind == ErrorCode::kExhausted || kind == ErrorCode::kUnavailable) {
    if (errno_value != 0) detail += fmt::format(" ({})", fmt::system_error(errno_value, "").what());
  }
  std::string_view advice;
  if (kind == ErrorCode::kExhausted && (code & 0xFF) != SQLITE_NOMEM) {
    advice = "; nothing acknowledged is lost, free space on this file system and try again";
  } else if (kind == ErrorCode::kCorrupt) {
    advice = "; restore the state directory from a backup, or ask `tutti doctor` what can be saved";
  }
  return fail(kind, fmt::format("{}: {} [SQLite {}]{}", name != nullptr ? name : "journal", detail,
                                code, advice));
}

}  // namespace

Statement::Statement(sqlite3* database, sqlite3_stmt* handle)
    : database_(database), handle_(handle) {}

void Statement::Finalize::operator()(sqlite3_stmt* handle) const { sqlite3_finalize(handle); }

void Statement::note(int code) {
  if (bind_error_ == SQLITE_OK) bind_error_ = code;
}
void Statement::bind(int index, std::int64_t value) {
  note(sqlite3_bind_int64(handle_.get(), index, value));
}
void Statement::bind(int index, std::string_view text) {
  const char* data = text.data() != nullptr ? text.data() : "";  // a null pointer would bind NULL
  note(sqlite3_bind_text64(handle_.get(), index, data, text.size(), SQLITE_STATIC, SQLITE_UTF8));
}
void Statement::bind(int index, std::span<const std::uint8_t> bytes) {
  note(sqlite3_bind_blob64(handle_.get(), index, bytes.data(), bytes.size(), SQLITE_STATIC));
}
void Statement::bind_null(int index) { note(sqlite3_bind_null(handle_.get(), index)); }

Result<bool> Statement::step() {
  int code = bind_error_ != SQLITE_OK ? bind_error_ : sqlite3_step(handle_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) {
    reset();
    return false;
  }
  auto error = database_error(database_, code);
  reset();
  return error;
}

Status Statement::run() {
  Result<bool> row = step();
  if (!row) return tl::unexpected(std::move(row.error()));
  if (*row) reset();
  return {};
}

void Statement::reset() {
  sqlite3_reset(handle_.get());  // repeats the error of step(), which was reported there
  bind_error_ = SQLITE_OK;
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(handle_.get(), column);
}
bool Statement::is_null(int column) const {
  return sqlite3_column_type(handle_.get(), column) == SQLITE_NULL;
}
std::string_view Statement::text(int column) const {
  const auto* data = static_cast<const char*>(sqlite3_column_blob(handle_.get(), column));
  const int size = sqlite3_column_bytes(handle_.get(), column);
  return data != nullptr ? std::string_view(data, static_cast<std::size_t>(size))
                         : std::string_view();
}

void Database::Close::operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }

Result<Database> Database::open(const std::string& path, Access access, const std::string& vfs) {
  // Each connection is used by one thread at a time: no mutex in it.
  const int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
                    (access == Access::kReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE);
  Database database;
  database.path_ = path;
  database.log_pages_ = std::make_unique<std::uint64_t>(0);
  sqlite3* handle = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &handle, flags, vfs.empty() ? nullptr : vfs.c_str());
  database.handle_.reset(handle);
  if (code != SQLITE_OK) return database_error(handle, code);
  sqlite3_busy_timeout(handle, 5000);
  sqlite3_wal_hook(
      handle,
      [](void* pages, sqlite3*, const char*, int count) {
        *static_cast<std::uint64_t*>(pages) = static_cast<std::uint64_t>(count);
        return SQLITE_OK;
      },
      database.log_pages_.get());
  return database;
}

Status Database::execute(const std::string& sql) {
  const int code = sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return database_error(handle_.get(), code);
  return {};
}

Result<Statement> Database::prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(handle_.get(), sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK) return database_error(handle_.get(), code);
  return Statement(handle_.get(), statement);
}

Result<std::int64_t> Database::integer(std::string_view sql) {
  Result<Statement> statement = prepare(sql);
  if (!statement) return tl::unexpected(std::move(statement.error()));
  Result<bool> row = statement->step();
  if (!row) return tl::unexpected(std::move(row.error()));
  if (!*row) return fail(ErrorCode::kInternal, fmt::format("{}: no row from {}", path_, sql));
  return statement->integer(0);
}

bool Database::in_transaction() const { return sqlite3_get_autocommit(handle_.get()) == 0; }
std::int64_t Database::changes() const { return sqlite3_changes64(handle_.get()); }

Status Database::sync_log() {
  sqlite3_file* file = nullptr;
  int code = sqlite3_file_control(handle_.get(), "main", SQLITE_FCNTL_JOURNAL_POINTER,
                                  static_cast<void*>(&file));
  if (code != SQLITE_OK) return database_error(handle_.get(), code);
  if (file == nullptr || file->pMethods == nullptr) return {};  // no log yet
  code = file->pMethods->xSync(file, SQLITE_SYNC_NORMAL);
  if (code != SQLITE_OK) return database_error(handle_.get(), code);
  return {};
}

Status Database::checkpoint() {
  const int code =
      sqlite3_wal_checkpoint_v2(handle_.get(), "main", SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  if (code != SQLITE_OK && code != SQLITE_BUSY) return database_error(handle_.get(), code);
  return {};
}

Transaction::~Transaction() {
  // Many errors make SQLite roll back by itself; then there is nothing left to end.
  if (database_.in_transaction()) (void)database_.execute("ROLLBACK");
}
Status Transaction::begin() { return database_.execute("BEGIN IMMEDIATE"); }
Status Transaction::commit() { return database_.execute("COMMIT"); }

}  // namespace tutti::journal
