// History: filters as sacct has them, duplicates, and readers beside the writer.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "journal/journal.h"
#include "tests/unit/journal/helpers.h"

namespace tutti::journal {
namespace {

using Records = std::vector<std::string>;

class History : public testing::Test {
 protected:
  void SetUp() override {
    Batch batch;
    const auto add = [&](HistoryRow row, std::int64_t submit, std::int64_t end) {
      row.submit = Instant::from_ms(submit);
      row.start = Instant::from_ms(submit + 1);
      row.end = Instant::from_ms(end);
      batch.history.push_back(std::move(row));
    };
    add({.job_id = 1,
         .user = "ada",
         .uid = 1001,
         .account = "physics",
         .partition = "gpu",
         .name = "train",
         .state = "FAILED",
         .record = "1 first"},
        100, 200);
    add({.job_id = 2,
         .user = "bob",
         .uid = 1002,
         .account = "physics",
         .partition = "cpu",
         .name = "prepare",
         .state = "COMPLETED",
         .record = "2"},
        150, 250);
    add({.job_id = 1,
         .user = "ada",
         .uid = 1001,
         .account = "physics",
         .partition = "gpu",
         .name = "train",
         .state = "COMPLETED",
         .record = "1 again"},
        300, 400);
    add({.job_id = 10,
         .array_job_id = 10,
         .array_index = 0,
         .user = "ada",
         .uid = 1001,
         .account = "art",
         .partition = "gpu",
         .name = "sweep",
         .state = "COMPLETED",
         .record = "10_0"},
        310, 500);
    add({.job_id = 11,
         .array_job_id = 10,
         .array_index = 7,
         .user = "ada",
         .uid = 1001,
         .account = "art",
         .partition = "gpu",
         .name = "sweep",
         .state = "TIMEOUT",
         .record = "10_7"},
        310, 600);
    must_append(opened_.journal, batch);
  }
  Records query(const HistoryFilter& filter) {
    Result<Records> records = opened_.journal.query_history(filter);
    EXPECT_TRUE(records) << records.error().message;
    return records ? *records : Records();
  }

  TemporaryDirectory directory_;
  OpenedJournal opened_ = must_open({.directory = directory_.state()});
};

TEST_F(History, NewestOfEachJobUnlessDuplicatesAreAsked) {
  EXPECT_EQ(query({}), (Records{"2", "1 again", "10_0", "10_7"}));
  EXPECT_EQ(query({.duplicates = Duplicates::kAll}),
            (Records{"1 first", "2", "1 again", "10_0", "10_7"}));
  // As sacct: the newest of those that pass, not the newest of all.
  EXPECT_EQ(query({.states = {"FAILED"}}), (Records{"1 first"}));
}

TEST_F(History, Ids) {
  EXPECT_EQ(query({.ids = {{1}}}), (Records{"1 again"}));
  EXPECT_EQ(query({.ids = {{10}}}), (Records{"10_0", "10_7"}));
  EXPECT_EQ(query({.ids = {{11}}}), (Records{"10_7"}));
  EXPECT_EQ(query({.ids = {{10, 7}}}), (Records{"10_7"}));
  EXPECT_EQ(query({.ids = {{2}, {10, 0}}}), (Records{"2", "10_0"}));
  EXPECT_EQ(query({.ids = {{0}}}), Records());
  EXPECT_EQ(query({.ids = {{0, 0}}}), Records());
}

TEST_F(History, Lists) {
  EXPECT_EQ(query({.users = {"bob"}}), (Records{"2"}));
  EXPECT_EQ(query({.users = {"bob", "eve"}}), (Records{"2"}));
  EXPECT_EQ(query({.uids = {1001}, .partitions = {"gpu"}}), (Records{"1 again", "10_0", "10_7"}));
  EXPECT_EQ(query({.accounts = {"art"}, .states = {"TIMEOUT", "FAILED"}}), (Records{"10_7"}));
  EXPECT_EQ(query({.names = {"sweep"}, .limit = 1}), (Records{"10_7"}));
  EXPECT_EQ(query({.users = {"' OR 1 = 1 --"}}), Records());
}

TEST_F(History, WindowWithAndWithoutStates) {
  const auto at = [](std::int64_t ms) { return Instant::from_ms(ms); };
  EXPECT_EQ(query({.from = at(201), .to = at(299)}), (Records{"2"}));
  EXPECT_EQ(query({.from = at(200), .to = at(300), .duplicates = Duplicates::kAll}),
            (Records{"1 first", "2", "1 again"}));
  EXPECT_EQ(query({.states = {"COMPLETED"}, .from = at(251), .to = at(400)}), (Records{"1 again"}));
  EXPECT_EQ(query({.states = {"COMPLETED"}, .from = at(251), .to = at(399)}), Records());
  EXPECT_EQ(query({.from = at(600)}), (Records{"10_7"}));
}

TEST_F(History, TooManyElementsAreRefused) {
  Result<Records> records =
      opened_.journal.query_history({.uids = std::vector<std::uint32_t>(20'001, 7)});
  ASSERT_FALSE(records);
  EXPECT_EQ(records.error().code, ErrorCode::kInvalid);
}

TEST_F(History, PurgeTakesTheOldestFirst) {
  EXPECT_EQ(*opened_.journal.purge_history(Instant::from_ms(500), 2), 2U);
  EXPECT_EQ(query({}), (Records{"1 again", "10_0", "10_7"}));
  EXPECT_EQ(*opened_.journal.purge_history(Instant::from_ms(500)), 1U);
  EXPECT_EQ(query({}), (Records{"10_0", "10_7"}));
  EXPECT_EQ(*opened_.journal.purge_history(Instant::from_ms(500)), 0U);
  EXPECT_EQ(opened_.journal.sizes()->history_rows, 2U);
}

TEST_F(History, ReaderSeesWhatWasAppendedAndCannotBeMissing) {
  Result<HistoryReader> reader = opened_.journal.open_reader();
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ(*reader->query({.users = {"bob"}}), (Records{"2"}));
  must_append(opened_.journal, {.blobs = {Blob("script")},
                                .history = {{.job_id = 5, .user = "bob", .record = "5"}}});
  EXPECT_EQ(*reader->query({.users = {"bob"}}), (Records{"2", "5"}));
  EXPECT_EQ(*reader->read_blob(blob_id("script")), "script");
  EXPECT_EQ(reader->sizes()->history_rows, 6U);
  Result<HistoryReader> nothing = open_history_reader(directory_.path());
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code, ErrorCode::kNotFound);
}

// The writer appends two rows a batch while readers count: never an odd number, never an error.
TEST_F(History, ReadersBesideTheWriterSeeWholeBatches) {
  const std::size_t before = query({.duplicates = Duplicates::kAll}).size();
  std::atomic<bool> stop = false;
  std::atomic<int> readings = 0;
  std::vector<std::string> failures[2];
  std::vector<std::thread> threads;
  for (auto& failed : failures) {
    Result<HistoryReader> reader = opened_.journal.open_reader();
    ASSERT_TRUE(reader);
    threads.emplace_back([&, reader = std::move(*reader)]() mutable {
      while (!stop && failed.empty()) {
        Result<Records> records = reader.query({.duplicates = Duplicates::kAll});
        if (!records) {
          failed.push_back(records.error().message);
        } else if ((records->size() - before) % 2 != 0) {
          failed.push_back(fmt::format("{} rows", records->size()));
        }
        ++readings;
      }
    });
  }
  for (int i = 0; i < 300 || (readings < 100 && i < 20'000); ++i) {
    const HistoryRow row{.job_id = static_cast<std::uint64_t>(1000 + i), .record = "{}"};
    must_append(opened_.journal, {.events = {"end"}, .history = {row, row}});
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  for (const auto& failed : failures) EXPECT_EQ(failed, std::vector<std::string>());
  EXPECT_GE(readings, 100);
}

}  // namespace
}  // namespace tutti::journal
