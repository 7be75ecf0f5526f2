// A thin owner of SQLite's handles for this module only: RAII, errors as values. Not for
// inclusion outside src/journal.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

struct sqlite3;
struct sqlite3_stmt;

namespace tutti::journal {

// A prepared statement. Parameters count from 1, columns from 0, as in SQLite. Bound texts must
// stay alive until reset().
class Statement {
 public:
  Statement() = default;
  Statement(sqlite3* database, sqlite3_stmt* handle);

  void bind(int index, std::int64_t value);
  void bind(int index, std::string_view text);
  void bind(int index, std::span<const std::uint8_t> bytes);
  void bind_null(int index);

  // True: there is a row. After the last row and after an error the statement is reset.
  Result<bool> step();
  // Runs a statement without result rows to its end.
  Status run();
  void reset();

  std::int64_t integer(int column) const;
  bool is_null(int column) const;
  // Valid until the next step() or reset(). Also for blobs.
  std::string_view text(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* handle) const;
  };
  void note(int code);

  sqlite3* database_ = nullptr;
  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
  int bind_error_ = 0;
};

enum class Access : std::uint8_t { kReadWrite, kReadOnly };

class Database {
 public:
  Database() = default;
  // The file must exist. `vfs`: empty for the system's.
  static Result<Database> open(const std::string& path, Access access, const std::string& vfs);

  Status execute(const std::string& sql);
  Result<Statement> prepare(std::string_view sql);
  // The one integer that `sql` gives.
  Result<std::int64_t> integer(std::string_view sql);
  bool in_transaction() const;
  // Rows changed by the last statement.
  std::int64_t changes() const;
  // Pages in the log after the last commit of this connection.
  std::uint64_t log_pages() const { return *log_pages_; }
  // Forces what the log holds onto the disk.
  Status sync_log();
  // Copies the log into the database file as far as readers allow, without waiting.
  Status checkpoint();
  const std::string& path() const { return path_; }

 private:
  struct Close {
    void operator()(sqlite3* handle) const;
  };
  std::string path_;
  // Written by SQLite's commit hook, so its address must not move with this object.
  std::unique_ptr<std::uint64_t> log_pages_;
  std::unique_ptr<sqlite3, Close> handle_;
};

// An explicit transaction: rolled back unless commit() succeeded.
class Transaction {
 public:
  explicit Transaction(Database& database) : database_(database) {}
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction();
  Status begin();
  Status commit();

 private:
  Database& database_;
};

}  // namespace tutti::journal
