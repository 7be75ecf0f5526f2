#include "journal/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <variant>

#include "journal/schema.h"
#include "journal/sqlite.h"
#include "journal/tables.h"

namespace tutti::journal {
namespace {

constexpr std::size_t kMaxElements = 20'000;

// Rows of one job. A row of elements that never started has its array's number and stands alone:
// other elements of the array may have one, and the element with that number too.
constexpr std::string_view kOneJob =
    "CASE WHEN array_job_id <> 0 AND array_index IS NULL THEN -row ELSE job_id END";

// Collects the WHERE clause and its parameters; texts point into the filter.
class Conditions {
 public:
  void add(const std::string& sql) {
    where_ += where_.empty() ? " WHERE " : " AND ";
    where_ += sql;
  }
  void value(std::int64_t number) { values_.emplace_back(number); }
  void value(std::string_view text) { values_.emplace_back(text); }

  template <class T>
  void one_of(std::string_view column, const std::vector<T>& list) {
    if (list.empty()) return;
    std::string marks = "?";
    for (std::size_t i = 1; i < list.size(); ++i) marks += ",?";
    add(fmt::format("{} IN ({})", column, marks));
    for (const T& element : list) value(element);
  }

  void bind(Statement& statement) const {
    int index = 0;
    for (const auto& value : values_) {
      ++index;
      std::visit([&](auto v) { statement.bind(index, v); }, value);
    }
  }
  const std::string& where() const { return where_; }

 private:
  std::string where_;
  std::vector<std::variant<std::int64_t, std::string_view>> values_;
};

// Array elements are found by their array's id, whole jobs by either id.
void select_ids(Conditions& conditions, const std::vector<JobSelector>& ids) {
  if (ids.empty()) return;
  std::string any;
  std::string whole;
  std::vector<std::int64_t> whole_ids;
  for (const JobSelector& selector : ids) {
    if (selector.array_index) continue;
    whole += whole.empty() ? "?" : ",?";
    whole_ids.push_back(static_cast<std::int64_t>(selector.id));
  }
  if (!whole_ids.empty()) {
    // The second half repeats the condition of the partial index, so that the index is used.
    any = fmt::format("job_id IN ({0}) OR (array_job_id IN ({0}) AND array_job_id <> 0)", whole);
  }
  for (const JobSelector& selector : ids) {
    if (!selector.array_index) continue;
    if (!any.empty()) any += " OR ";
    any += "(array_job_id = ? AND array_job_id <> 0 AND (array_index = ? OR array_index IS NULL))";
  }
  conditions.add("(" + any + ")");
  for (int half = 0; half < 2; ++half) {
    for (std::int64_t id : whole_ids) conditions.value(id);
  }
  for (const JobSelector& selector : ids) {
    if (!selector.array_index) continue;
    conditions.value(static_cast<std::int64_t>(selector.id));
    conditions.value(static_cast<std::int64_t>(*selector.array_index));
  }
}

void select_window(Conditions& conditions, const HistoryFilter& filter) {
  if (filter.from) {
    conditions.add("end_ms >= ?");
    conditions.value(filter.from->ms());
  }
  if (filter.to) {
    conditions.add(filter.states.empty() ? "submit_ms <= ?" : "end_ms <= ?");
    conditions.value(filter.to->ms());
  }
}

}  // namespace

Result<std::vector<std::string>> query_history(Database& database, const HistoryFilter& filter) {
  const std::size_t elements = filter.ids.size() + filter.users.size() + filter.uids.size() +
                               filter.accounts.size() + filter.partitions.size() +
                               filter.names.size() + filter.states.size();
  if (elements > kMaxElements) {
    return invalid(fmt::format("history filter: {} elements in its lists, at most {} are allowed",
                               elements, kMaxElements));
  }
  Conditions conditions;
  select_ids(conditions, filter.ids);
  conditions.one_of("user", filter.users);
  conditions.one_of("uid", std::vector<std::int64_t>(filter.uids.begin(), filter.uids.end()));
  conditions.one_of("account", filter.accounts);
  conditions.one_of("partition", filter.partitions);
  conditions.one_of("name", filter.names);
  conditions.one_of("state", filter.states);
  select_window(conditions, filter);
  std::string sql = "SELECT record FROM history" + conditions.where();
  if (filter.duplicates == Duplicates::kNewestOnly) {
    sql = "SELECT record FROM history WHERE row IN (SELECT max(row) FROM history" +
          conditions.where() + " GROUP BY " + std::string(kOneJob) + ")";
  }
  sql += " ORDER BY row DESC";
  if (filter.limit != 0) {
    sql += fmt::format(" LIMIT {}", std::min<std::uint64_t>(filter.limit, INT64_MAX));
  }
  Result<Statement> select = database.prepare(sql);
  if (!select) return tl::unexpected(std::move(select.error()));
  conditions.bind(*select);
  std::vector<std::string> records;
  while (true) {
    Result<bool> row = select->step();
    if (!row) return tl::unexpected(std::move(row.error()));
    if (!*row) break;
    records.emplace_back(select->text(0));
  }
  std::reverse(records.begin(), records.end());
  return records;
}

Result<std::string> read_blob(Database& database, const BlobId& id) {
  Result<Statement> select = database.prepare(
      "SELECT blob_data.data FROM blobs JOIN blob_data ON blob_data.row = blobs.data_row WHERE "
      "blobs.id = ?");
  if (!select) return tl::unexpected(std::move(select.error()));
  select->bind(1, std::span<const std::uint8_t>(id.bytes));
  Result<bool> row = select->step();
  if (!row) return tl::unexpected(std::move(row.error()));
  if (!*row) {
    return fail(ErrorCode::kNotFound,
                fmt::format("{}: no blob {}", database.path(), to_string(id)));
  }
  std::string data(select->text(0));
  if (blob_id(data) != id) {
    return fail(ErrorCode::kCorrupt,
                fmt::format("{}: the content of blob {} does not match its name; restore the state "
                            "directory from a backup",
                            database.path(), to_string(id)));
  }
  return data;
}

Result<JournalSizes> read_sizes(Database& database) {
  JournalSizes sizes;
  std::int64_t page_size = 0;
  std::int64_t pages = 0;
  std::int64_t free_pages = 0;
  std::int64_t events = 0;
  std::int64_t snapshot_bytes = 0;
  std::int64_t blobs = 0;
  std::int64_t rows = 0;
  struct Query {
    std::string_view sql;
    std::int64_t* into;
  };
  for (const Query& query :
       {Query{"PRAGMA page_size", &page_size}, Query{"PRAGMA page_count", &pages},
        Query{"PRAGMA freelist_count", &free_pages},
        Query{"SELECT coalesce(max(seq) - min(seq) + 1, 0) FROM events", &events},
        Query{"SELECT coalesce(sum(length(body)), 0) FROM snapshots", &snapshot_bytes},
        Query{"SELECT count(*) FROM blobs", &blobs},
        Query{"SELECT count(*) FROM history", &rows}}) {
    Result<std::int64_t> value = database.integer(query.sql);
    if (!value) return tl::unexpected(std::move(value.error()));
    *query.into = *value;
  }
  sizes.database_bytes = static_cast<std::uint64_t>(pages * page_size);
  sizes.free_bytes = static_cast<std::uint64_t>(free_pages * page_size);
  sizes.events_since_snapshot = static_cast<std::uint64_t>(events);
  sizes.snapshot_bytes = static_cast<std::uint64_t>(snapshot_bytes);
  sizes.blobs = static_cast<std::uint64_t>(blobs);
  sizes.history_rows = static_cast<std::uint64_t>(rows);
  std::error_code error;
  const std::uintmax_t wal_bytes = std::filesystem::file_size(database.path() + "-wal", error);
  sizes.wal_bytes = error ? 0 : wal_bytes;
  return sizes;
}

struct HistoryReader::Impl {
  Database database;
};

HistoryReader::HistoryReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HistoryReader::HistoryReader(HistoryReader&&) noexcept = default;
HistoryReader& HistoryReader::operator=(HistoryReader&&) noexcept = default;
HistoryReader::~HistoryReader() = default;

Result<std::vector<std::string>> HistoryReader::query(const HistoryFilter& filter) {
  return query_history(impl_->database, filter);
}
Result<std::string> HistoryReader::read_blob(const BlobId& id) {
  return journal::read_blob(impl_->database, id);
}
Result<JournalSizes> HistoryReader::sizes() { return read_sizes(impl_->database); }

Result<HistoryReader> open_history_reader(const std::string& directory, const std::string& vfs) {
  const std::string path = directory + "/journal.db";
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return fail(ErrorCode::kNotFound, fmt::format("{}: there is no journal here", path));
  }
  Result<Database> database = Database::open(path, Access::kReadOnly, vfs);
  if (!database) return tl::unexpected(std::move(database.error()));
  if (Status s = check_format(*database); !s) return tl::unexpected(std::move(s.error()));
  auto impl = std::make_unique<HistoryReader::Impl>();
  impl->database = std::move(*database);
  return HistoryReader(std::move(impl));
}

}  // namespace tutti::journal
