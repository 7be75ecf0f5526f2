// The journal as its callers use it: batches, blobs, snapshots, sizes, the lock, refusals.
#include "journal/journal.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "journal/checksum.h"
#include "tests/unit/journal/helpers.h"

namespace tutti::journal {
namespace {

int mode_of(const std::string& path) {
  struct stat status{};
  EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777;
}

TEST(Checksum, KnownValueAndContinuation) {
  // The check value of CRC-32C, RFC 3720 and every catalogue of CRCs.
  EXPECT_EQ(crc32c(0, "123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(crc32c(0, "1234"), "56789"), crc32c(0, "123456789"));
  EXPECT_NE(chain_checksum(1, 7, "a"), chain_checksum(1, 8, "a"));
  EXPECT_NE(chain_checksum(1, 7, "a"), chain_checksum(2, 7, "a"));
}

TEST(Blob, NameIsTruncatedSha256) {
  // FIPS 180-2, appendix B.1: SHA-256("abc") = ba7816bf 8f01cfea 414140de 5dae2223 ...
  EXPECT_EQ(to_string(blob_id("abc")), "ba7816bf8f01cfea414140de5dae2223");
  EXPECT_EQ(*parse_blob_id("ba7816bf8f01cfea414140de5dae2223"), blob_id("abc"));
  EXPECT_FALSE(parse_blob_id("ba78"));
  EXPECT_FALSE(parse_blob_id("BA7816bf8f01cfea414140de5dae2223"));
}

TEST(Journal, NumbersEventsFromOneAndKeepsThem) {
  TemporaryDirectory directory;
  const OpenOptions options{.directory = directory.state(), .cluster_id = "alpha"};
  const std::string with_zero("a\0b\xFF", 4);
  {
    OpenedJournal opened = must_open(options);
    EXPECT_TRUE(opened.report.created);
    EXPECT_FALSE(opened.snapshot);
    EXPECT_EQ(opened.journal.last_sequence(), 0U);
    EXPECT_EQ(must_append(opened.journal, {.events = {"one", "", with_zero}}), 3U);
    EXPECT_EQ(must_append(opened.journal, {}), 3U);
    EXPECT_EQ(must_append(opened.journal, {.events = {"four"}}), 4U);
  }
  OpenedJournal opened = must_open(options);
  EXPECT_FALSE(opened.report.created);
  EXPECT_EQ(opened.report.events, 4U);
  EXPECT_EQ(opened.report.log_bytes_dropped, 0U);
  EXPECT_TRUE(opened.report.notes.empty());
  EXPECT_EQ(opened.journal.cluster_id(), "alpha");
  const NumberedEvents expected = {{1, "one"}, {2, ""}, {3, with_zero}, {4, "four"}};
  EXPECT_EQ(events_after(opened.journal, 0), expected);
  EXPECT_EQ(events_after(opened.journal, 3), (NumberedEvents{{4, "four"}}));
  EXPECT_EQ(must_append(opened.journal, {.events = {"five"}}), 5U);
}

TEST(Journal, FilesAreForTheOwnerOnly) {
  TemporaryDirectory directory;
  const mode_t mask = umask(0);
  OpenedJournal opened = must_open({.directory = directory.state()});
  must_append(opened.journal, {.events = {"x"}});
  umask(mask);
  EXPECT_EQ(mode_of(directory.state()), 0700);
  EXPECT_EQ(mode_of(directory.database()), 0600);
  EXPECT_EQ(mode_of(directory.log()), 0600);
  EXPECT_EQ(mode_of(directory.state() + "/journal.lock"), 0600);
}

TEST(Journal, HandlerEndsTheReading) {
  TemporaryDirectory directory;
  OpenedJournal opened = must_open({.directory = directory.state()});
  must_append(opened.journal, {.events = {"a", "b", "c"}});
  int seen = 0;
  Status status = opened.journal.for_each_event(0, [&](Sequence sequence, std::string_view) {
    ++seen;
    return sequence == 2 ? Status(invalid("event 2 is unknown")) : Status();
  });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "event 2 is unknown");
  EXPECT_EQ(seen, 2);
}

TEST(Journal, BlobsAreStoredOnceAndCounted) {
  TemporaryDirectory directory;
  OpenedJournal opened = must_open({.directory = directory.state()});
  Journal& journal = opened.journal;
  const Blob script("#!/bin/bash\nsrun train\n");
  must_append(journal, {.events = {"submit"}, .blobs = {script, script}});
  must_append(journal, {.events = {"submit"}, .blobs = {script, Blob("")}});
  EXPECT_EQ(journal.sizes()->blobs, 2U);
  EXPECT_EQ(*journal.read_blob(script.id()), script.data());
  EXPECT_EQ(*journal.read_blob(blob_id("")), "");
  must_append(journal, {.drop_blobs = {script.id(), script.id()}});
  EXPECT_TRUE(journal.read_blob(script.id()));
  // Raised and dropped in one batch: the put counts first, so the content stays.
  must_append(journal, {.blobs = {script}, .drop_blobs = {script.id()}});
  EXPECT_TRUE(journal.read_blob(script.id()));
  must_append(journal, {.drop_blobs = {script.id()}});
  Result<std::string> gone = journal.read_blob(script.id());
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(journal.sizes()->blobs, 1U);
}

TEST(Journal, FailedBatchLeavesNothing) {
  TemporaryDirectory directory;
  OpenedJournal opened = must_open({.directory = directory.state()});
  Journal& journal = opened.journal;
  must_append(journal, {.events = {"first"}});
  const Blob script("script");
  Result<Sequence> refused = journal.append(
      {.events = {"lost"}, .blobs = {script}, .drop_blobs = {blob_id("was never there")}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(journal.read_blob(script.id()));
  EXPECT_EQ(must_append(journal, {.events = {"second"}}), 2U);
  EXPECT_EQ(events_after(journal, 0), (NumberedEvents{{1, "first"}, {2, "second"}}));
}

TEST(Journal, SnapshotReplacesEventsAndNumbersGoOn) {
  TemporaryDirectory directory;
  const OpenOptions options{.directory = directory.state()};
  {
    OpenedJournal opened = must_open(options);
    Journal& journal = opened.journal;
    must_append(journal, {.events = {"1", "2", "3", "4", "5"}});
    ASSERT_TRUE(journal.write_snapshot(2, "state after 2"));
    EXPECT_EQ(journal.sizes()->events_since_snapshot, 3U);
    EXPECT_FALSE(journal.write_snapshot(1, "older than the last snapshot"));
    EXPECT_FALSE(journal.write_snapshot(6, "newer than the last event"));
    Status before = journal.for_each_event(1, [](Sequence, std::string_view) { return Status(); });
    ASSERT_FALSE(before);
    EXPECT_EQ(before.error().code, ErrorCode::kInvalid);
  }
  {
    OpenedJournal opened = must_open(options);
    ASSERT_TRUE(opened.snapshot);
    EXPECT_EQ(opened.snapshot->sequence, 2U);
    EXPECT_EQ(opened.snapshot->body, "state after 2");
    EXPECT_EQ(events_after(opened.journal, 2), (NumberedEvents{{3, "3"}, {4, "4"}, {5, "5"}}));
    ASSERT_TRUE(opened.journal.write_snapshot(5, "state after 5"));
    ASSERT_TRUE(opened.journal.write_snapshot(5, "state after 5, again"));
  }
  OpenedJournal opened = must_open(options);
  EXPECT_EQ(opened.snapshot->body, "state after 5, again");
  EXPECT_EQ(opened.report.events, 0U);
  EXPECT_EQ(must_append(opened.journal, {.events = {"6"}}), 6U);
}

TEST(Journal, FileStaysBoundedUnderSnapshots) {
  TemporaryDirectory directory;
  OpenedJournal opened = must_open({.directory = directory.state(), .checkpoint_pages = 100});
  Journal& journal = opened.journal;
  const Batch batch{.events = std::vector<std::string>(256, std::string(1000, 'e'))};
  std::uint64_t largest_early = 0;
  std::uint64_t largest_late = 0;
  for (int round = 0; round < 60; ++round) {
    for (int i = 0; i < 4; ++i) must_append(journal, batch);
    const JournalSizes sizes = *journal.sizes();
    std::uint64_t& largest = round < 10 ? largest_early : largest_late;
    largest = std::max(largest, sizes.database_bytes + sizes.wal_bytes);
    ASSERT_TRUE(journal.write_snapshot(journal.last_sequence(), std::string(100'000, 's')));
  }
  EXPECT_LE(largest_late, largest_early * 3 / 2);
}

TEST(Journal, MostlyEmptyFileIsShortened) {
  TemporaryDirectory directory;
  OpenedJournal opened = must_open({.directory = directory.state()});
  Journal& journal = opened.journal;
  const Batch batch{.events = std::vector<std::string>(1000, std::string(1000, 'e'))};
  for (int i = 0; i < 40; ++i) must_append(journal, batch);
  const std::uint64_t full = journal.sizes()->database_bytes;
  ASSERT_TRUE(journal.write_snapshot(journal.last_sequence(), "small"));
  EXPECT_LT(journal.sizes()->database_bytes, full * 3 / 4);
}

TEST(Journal, SecondOpenIsRefusedAndNamesTheHolder) {
  TemporaryDirectory directory;
  const OpenOptions options{.directory = directory.state()};
  auto opened = std::make_unique<OpenedJournal>(must_open(options));
  Result<OpenedJournal> second = open(options);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  EXPECT_EQ(second.error().message,
            fmt::format("another controller (pid {}) has this state directory open: {}", getpid(),
                        directory.state()));
  opened.reset();
  EXPECT_TRUE(open(options));
}

TEST(Journal, OtherClusterIsRefused) {
  TemporaryDirectory directory;
  must_open({.directory = directory.state(), .cluster_id = "alpha"});
  Result<OpenedJournal> other = open({.directory = directory.state(), .cluster_id = "beta"});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().reason, "journal_other_cluster");
  EXPECT_EQ(must_open({.directory = directory.state()}).journal.cluster_id(), "alpha");
}

TEST(Journal, NewerFormatIsRefusedAndUnchanged) {
  TemporaryDirectory directory;
  must_open({.directory = directory.state()});
  run_sql(directory.database(), "UPDATE meta SET value = '7' WHERE key = 'format'");
  Result<OpenedJournal> newer = open({.directory = directory.state()});
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error().reason, "journal_too_new");
  EXPECT_NE(newer.error().message.find("format 7"), std::string::npos) << newer.error().message;
  EXPECT_NE(newer.error().message.find("up to 1"), std::string::npos) << newer.error().message;
  Result<HistoryReader> reader = open_history_reader(directory.state());
  ASSERT_FALSE(reader);
  EXPECT_EQ(reader.error().reason, "journal_too_new");
}

TEST(Journal, ForeignFilesAreRefused) {
  TemporaryDirectory directory;
  std::filesystem::create_directory(directory.state());
  run_sql(directory.database(), "CREATE TABLE music(title TEXT)");
  Result<OpenedJournal> foreign = open({.directory = directory.state()});
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().reason, "journal_foreign");
  std::ofstream(directory.database()) << std::string(8192, '?');
  Result<OpenedJournal> noise = open({.directory = directory.state()});
  ASSERT_FALSE(noise);
  EXPECT_EQ(noise.error().code, ErrorCode::kCorrupt);
  EXPECT_NE(noise.error().message.find(directory.database()), std::string::npos);
}

TEST(Journal, DirectoryThatCannotBeMade) {
  TemporaryDirectory directory;
  std::ofstream(directory.state()) << "a file";
  Result<OpenedJournal> opened = open({.directory = directory.state()});
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find(directory.state()), std::string::npos);
}

}  // namespace
}  // namespace tutti::journal
