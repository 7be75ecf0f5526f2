// What the journal's tests share: a directory that goes away, and short forms.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "journal/journal.h"

namespace tutti::journal {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "tutti-journal-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  const std::string& path() const { return path_; }
  // The state directory: below, so that journal::open makes it.
  std::string state() const { return path_ + "/state"; }
  std::string database() const { return state() + "/journal.db"; }
  std::string log() const { return state() + "/journal.db-wal"; }

 private:
  std::string path_;
};

using NumberedEvents = std::vector<std::pair<Sequence, std::string>>;

inline NumberedEvents events_after(Journal& journal, Sequence after) {
  NumberedEvents events;
  Status status = journal.for_each_event(after, [&](Sequence sequence, std::string_view body) {
    events.emplace_back(sequence, std::string(body));
    return Status();
  });
  EXPECT_TRUE(status) << status.error().message;
  return events;
}

// Opens a journal that must open.
inline OpenedJournal must_open(const OpenOptions& options) {
  Result<OpenedJournal> opened = open(options);
  if (!opened) {
    ADD_FAILURE() << to_string(opened.error());
    std::abort();
  }
  return std::move(*opened);
}

inline Sequence must_append(Journal& journal, const Batch& batch) {
  Result<Sequence> sequence = journal.append(batch);
  EXPECT_TRUE(sequence) << sequence.error().message;
  return sequence ? *sequence : 0;
}

// Changes a closed journal behind its back.
inline void run_sql(const std::string& path, const std::string& sql) {
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  char* message = nullptr;
  EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, &message), SQLITE_OK)
      << (message != nullptr ? message : "");
  sqlite3_free(message);
  sqlite3_close(database);
}

}  // namespace tutti::journal
