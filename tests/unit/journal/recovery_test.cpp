// Damage: what is cut, what is refused, and that the message says where.
#include <gtest/gtest.h>

#include <fstream>

#include "journal/journal.h"
#include "journal/wal.h"
#include "tests/unit/journal/helpers.h"

namespace tutti::journal {
namespace {

constexpr std::uint64_t kFrame = 24 + 4096;
constexpr std::uint64_t kHeader = 32;

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

void flip_byte(const std::string& path, std::uint64_t offset) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  const int byte = file.get();
  ASSERT_GE(byte, 0) << path << " has no byte " << offset;
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(static_cast<char>(byte ^ 0x10));
}

// A journal as a killed process leaves it: the database, and a log with three commits of a few
// frames each that has not been moved into the database.
class Recovery : public testing::Test {
 protected:
  void SetUp() override {
    OpenedJournal opened = must_open({.directory = original_.state()});
    // The log is begun anew by the first write after open(), so all its frames are known here.
    for (const char* letter : {"a", "b", "c"}) {
      std::vector<std::string> events;
      for (int i = 0; i < 3; ++i) {
        std::string body;
        while (body.size() < 3000) body += letter;
        events.push_back(body);
      }
      must_append(opened.journal, {.events = events});
      frames_.push_back(inspect_wal(original_.log())->frames_kept);
    }
    std::filesystem::create_directory(directory_.state());
    std::filesystem::copy(original_.database(), directory_.database());
    std::filesystem::copy(original_.log(), directory_.log());
  }
  // Where frame `number` (from 1) begins in the log.
  static std::uint64_t frame_at(std::uint64_t number) { return kHeader + (number - 1) * kFrame; }
  OpenOptions options() const { return {.directory = directory_.state()}; }
  Error refused() const {
    Result<OpenedJournal> opened = open(options());
    EXPECT_FALSE(opened);
    if (opened) return {};
    EXPECT_EQ(opened.error().code, ErrorCode::kCorrupt);
    return opened.error();
  }

  TemporaryDirectory original_;
  TemporaryDirectory directory_;
  std::vector<std::uint64_t> frames_;  // in the log after each commit
};

TEST_F(Recovery, WholeLogIsReplayed) {
  ASSERT_GT(frames_[0], 1U);
  ASSERT_GT(frames_[2], frames_[1] + 1);
  OpenedJournal opened = must_open(options());
  EXPECT_EQ(opened.journal.last_sequence(), 9U);
  EXPECT_EQ(opened.report.log_frames_kept, frames_[2]);
  EXPECT_EQ(opened.report.log_frames_dropped, 0U);
  EXPECT_TRUE(opened.report.notes.empty());
}

TEST_F(Recovery, TornTailIsCutAndReported) {
  const std::uint64_t size = std::filesystem::file_size(directory_.log());
  std::filesystem::resize_file(directory_.log(), frame_at(frames_[2]) + 100);
  OpenedJournal opened = must_open(options());
  EXPECT_EQ(opened.journal.last_sequence(), 6U);
  EXPECT_EQ(opened.report.log_frames_kept, frames_[1]);
  EXPECT_EQ(opened.report.log_frames_dropped, frames_[2] - frames_[1]);
  EXPECT_EQ(opened.report.log_bytes_dropped, (frames_[2] - frames_[1] - 1) * kFrame + 100);
  EXPECT_LT(opened.report.log_bytes_dropped, size);
  ASSERT_EQ(opened.report.notes.size(), 1U);
  EXPECT_TRUE(contains(opened.report.notes[0], "unfinished transaction"));
  EXPECT_EQ(must_append(opened.journal, {.events = {"goes on"}}), 7U);
}

TEST_F(Recovery, TailWithAHoleIsCut) {
  flip_byte(directory_.log(), frame_at(frames_[1] + 1) + 200);
  OpenedJournal opened = must_open(options());
  EXPECT_EQ(opened.journal.last_sequence(), 6U);
  EXPECT_EQ(opened.report.log_frames_dropped, frames_[2] - frames_[1]);
}

TEST_F(Recovery, DamageBeforeAcknowledgedCommitsIsRefused) {
  // In the content and in the header of a frame of the first commit.
  for (const std::uint64_t offset : {frame_at(1) + 200, frame_at(1) + 17}) {
    flip_byte(directory_.log(), offset);
    const Error error = refused();
    EXPECT_EQ(error.reason, "journal_log_damaged");
    EXPECT_TRUE(contains(error.message, directory_.log())) << error.message;
    EXPECT_TRUE(contains(error.message, "frame 1 ")) << error.message;
    EXPECT_TRUE(contains(error.message, "byte 32")) << error.message;
    EXPECT_TRUE(contains(error.message, "tutti doctor")) << error.message;
    flip_byte(directory_.log(), offset);
  }
  EXPECT_EQ(must_open(options()).journal.last_sequence(), 9U);
}

TEST_F(Recovery, DamagedLogHeaderIsRefused) {
  flip_byte(directory_.log(), 17);
  EXPECT_TRUE(contains(refused().message, "header of the write-ahead log"));
}

TEST_F(Recovery, MissingDatabaseBesideALogIsRefused) {
  std::filesystem::remove(directory_.database());
  EXPECT_EQ(refused().reason, "journal_database_missing");
  EXPECT_FALSE(std::filesystem::exists(directory_.database()));
}

TEST_F(Recovery, ChangedEventIsRefusedWithItsNumber) {
  run_sql(directory_.database(),
          "UPDATE events SET body = replace(body, 'bb', 'bc') WHERE seq = 5");
  const Error error = refused();
  EXPECT_EQ(error.reason, "journal_event_damaged");
  EXPECT_TRUE(contains(error.message, directory_.database())) << error.message;
  EXPECT_TRUE(contains(error.message, "event 5 is damaged")) << error.message;
}

TEST_F(Recovery, MissingEventIsRefusedWithItsNumber) {
  run_sql(directory_.database(), "DELETE FROM events WHERE seq IN (4, 5)");
  const Error error = refused();
  EXPECT_EQ(error.reason, "journal_gap");
  EXPECT_TRUE(contains(error.message, "events 4 to 5 are missing")) << error.message;
}

TEST_F(Recovery, FirstEventMissingIsRefused) {
  run_sql(directory_.database(), "DELETE FROM events WHERE seq = 1");
  EXPECT_TRUE(contains(refused().message, "events 1 to 1 are missing"));
}

TEST_F(Recovery, SwappedEventsAreRefused) {
  run_sql(directory_.database(),
          "UPDATE events SET seq = 100 WHERE seq = 3; UPDATE events SET seq = 3 WHERE seq = 4;"
          "UPDATE events SET seq = 4 WHERE seq = 100");
  EXPECT_TRUE(contains(refused().message, "event 3 is damaged"));
}

TEST_F(Recovery, DamagedSnapshotIsRefused) {
  {
    OpenedJournal opened = must_open(options());
    ASSERT_TRUE(opened.journal.write_snapshot(6, "the state"));
  }
  run_sql(directory_.database(), "UPDATE snapshots SET body = 'the stata'");
  EXPECT_TRUE(contains(refused().message, "snapshot of event 6 is damaged"));
}

TEST_F(Recovery, LostSnapshotIsRefused) {
  {
    OpenedJournal opened = must_open(options());
    ASSERT_TRUE(opened.journal.write_snapshot(6, "the state"));
  }
  run_sql(directory_.database(), "DELETE FROM snapshots");
  EXPECT_TRUE(contains(refused().message, "events 1 to 6 are missing"));
}

// The page on which a table begins.
std::uint64_t root_page(const std::string& path, const std::string& table) {
  sqlite3* database = nullptr;
  EXPECT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  std::uint64_t page = 0;
  const std::string sql = "SELECT rootpage FROM sqlite_master WHERE name = '" + table + "'";
  const auto take = [](void* into, int, char** values, char**) {
    *static_cast<std::uint64_t*>(into) = std::strtoull(values[0], nullptr, 10);
    return 0;
  };
  EXPECT_EQ(sqlite3_exec(database, sql.c_str(), take, &page, nullptr), SQLITE_OK);
  sqlite3_close(database);
  return page;
}

TEST_F(Recovery, MalformedPageIsRefusedWithItsNumber) {
  {
    must_open(options());
  }
  for (const std::string table : {"events", "meta"}) {
    const std::uint64_t page = root_page(directory_.database(), table);
    ASSERT_GT(page, 1U);
    const std::uint64_t head = (page - 1) * 4096;  // the kind of the page
    flip_byte(directory_.database(), head);
    const Error error = refused();
    EXPECT_TRUE(contains(error.message, directory_.database())) << error.message;
    EXPECT_TRUE(contains(error.message, fmt::format("age {}", page))) << error.message;
    flip_byte(directory_.database(), head);
  }
  EXPECT_EQ(must_open(options()).journal.last_sequence(), 9U);
}

TEST_F(Recovery, WhollyMalformedDatabaseIsRefused) {
  {
    must_open(options());
  }
  const std::uint64_t size = std::filesystem::file_size(directory_.database());
  std::fstream file(directory_.database(), std::ios::in | std::ios::out | std::ios::binary);
  for (std::uint64_t page = 4096; page < size; page += 4096) {
    file.seekp(static_cast<std::streamoff>(page));
    file << std::string(64, '\xEE');
  }
  file.close();
  const Error error = refused();
  EXPECT_TRUE(contains(error.message, directory_.database())) << error.message;
  EXPECT_TRUE(contains(error.message, "backup")) << error.message;
}

TEST_F(Recovery, WholeFileCheckFindsWhatEventsDoNotTouch) {
  {
    OpenedJournal opened = must_open(options());
    must_append(opened.journal, {.blobs = {Blob("a script")}});
  }
  OpenOptions whole = options();
  whole.check = Check::kWholeFile;
  EXPECT_TRUE(open(whole));
  run_sql(directory_.database(), "UPDATE blob_data SET data = CAST('a skript' AS BLOB)");
  OpenedJournal opened = must_open(options());
  Result<std::string> data = opened.journal.read_blob(blob_id("a script"));
  ASSERT_FALSE(data);
  EXPECT_EQ(data.error().code, ErrorCode::kCorrupt);
  {
    Journal closed = std::move(opened.journal);
  }
  Result<OpenedJournal> checked = open(whole);
  ASSERT_FALSE(checked);
  EXPECT_TRUE(contains(checked.error().message, to_string(blob_id("a script"))));
}

}  // namespace
}  // namespace tutti::journal
