// What survives: random work on a disk that loses power, fails, or is full; and a killed process.
//
// The property: after each crash the journal holds exactly the state after the last success, or
// that state with one of the batches on it whose failure was reported since. The number of crashes
// is TUTTI_CRASHES (default 400); a failure prints the seed, and TUTTI_SEED repeats that one run.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <random>

#include "journal/fault_vfs.h"
#include "journal/journal.h"
#include "tests/unit/journal/helpers.h"

namespace tutti::journal {
namespace {

std::uint64_t environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

// All that a journal holds.
struct Content {
  Sequence snapshot_sequence = 0;
  std::string snapshot;
  NumberedEvents events;                       // after the snapshot
  std::map<std::string, std::uint64_t> blobs;  // content and count
  std::vector<std::string> history;
  bool operator==(const Content&) const = default;

  Sequence last() const { return events.empty() ? snapshot_sequence : events.back().first; }
};

Content apply(Content content, const Batch& batch) {
  for (const std::string& event : batch.events) {
    content.events.emplace_back(content.last() + 1, event);
  }
  for (const Blob& blob : batch.blobs) ++content.blobs[blob.data()];
  for (const BlobId& id : batch.drop_blobs) {
    for (auto& [data, count] : content.blobs) {
      if (blob_id(data) == id) --count;
    }
    std::erase_if(content.blobs, [](const auto& blob) { return blob.second == 0; });
  }
  for (const HistoryRow& row : batch.history) content.history.push_back(row.record);
  return content;
}

Content apply_snapshot(Content content, Sequence sequence, const std::string& body) {
  content.snapshot_sequence = sequence;
  content.snapshot = body;
  std::erase_if(content.events, [&](const auto& event) { return event.first <= sequence; });
  return content;
}

// Counts of blobs are not to be had from outside; they are checked by what dropping does.
Content read_all(OpenedJournal& opened, const Content& like) {
  Content content;
  if (opened.snapshot) {
    content.snapshot_sequence = opened.snapshot->sequence;
    content.snapshot = opened.snapshot->body;
  }
  content.events = events_after(opened.journal, content.snapshot_sequence);
  content.history = *opened.journal.query_history({.duplicates = Duplicates::kAll});
  for (const auto& [data, count] : like.blobs) {
    if (opened.journal.read_blob(blob_id(data))) content.blobs[data] = count;
  }
  if (opened.journal.sizes()->blobs != content.blobs.size()) content.blobs["others"] = 1;
  return content;
}

class CrashRun {
 public:
  explicit CrashRun(std::uint64_t seed) : random_(seed) {}

  // One life: open, work until the power goes, crash. Returns false when the property is broken.
  bool life() {
    arm();
    if (Result<OpenedJournal> opened = open(options()); opened) {
      if (!settle(*opened)) return false;
      const std::uint64_t steps = below(4) == 0 ? 0 : below(25);
      for (std::uint64_t i = 0; i < steps; ++i) step(opened->journal);
      disk_.power_off();
    } else if (opened.error().code == ErrorCode::kCorrupt ||
               opened.error().code == ErrorCode::kInternal) {
      ADD_FAILURE() << to_string(opened.error());
      return false;
    }
    disk_.power_off();
    disk_.crash(random_());
    return true;
  }

  bool check() {
    Result<OpenedJournal> opened = open(options());
    if (!opened) {
      ADD_FAILURE() << to_string(opened.error());
      return false;
    }
    torn_ += opened->report.log_bytes_dropped != 0 ? 1 : 0;
    const bool held = settle(*opened);
    // The end of a check is a crash too, so that a clean close does not hide what open() left.
    disk_.power_off();
    {
      Journal ended = std::move(opened->journal);
    }
    disk_.crash(random_());
    return held;
  }

  std::uint64_t torn() const { return torn_; }

 private:
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  OpenOptions options() {
    return {.directory = directory_.state(),
            .checkpoint_pages = static_cast<std::uint32_t>(1 + below(60)),
            .vfs = disk_.name()};
  }

  void arm() {
    const std::uint64_t kind = below(10);
    if (kind < 6) disk_.fault_at(1 + below(150), FaultVfs::Fault::kPowerOff);
    if (kind >= 6 && kind < 8) disk_.fault_at(1 + below(150), FaultVfs::Fault::kFailOnce);
  }

  // What was found must be one of the possible contents; it is the only one from now on.
  bool settle(OpenedJournal& opened) {
    for (const Content& content : possible_) {
      if (read_all(opened, content) == content) {
        const Content found = content;
        possible_ = {found};
        EXPECT_EQ(opened.journal.last_sequence(), found.last());
        return true;
      }
    }
    ADD_FAILURE() << "found events up to " << opened.journal.last_sequence() << ", expected up to "
                  << possible_.front().last() << ", or " << possible_.size() - 1
                  << " batches that failed";
    return false;
  }

  Batch random_batch() {
    Batch batch;
    for (std::uint64_t n = below(9); n > 0; --n) {
      const std::uint64_t size = below(8) == 0 ? below(20'000) : below(400);
      batch.events.push_back(fmt::format("event {} {}", ++serial_, std::string(size, 'e')));
    }
    if (below(3) == 0) batch.blobs.emplace_back(fmt::format("script {}", below(6)));
    if (below(6) == 0) {
      batch.blobs.emplace_back(fmt::format("{}{}", below(4), std::string(9'000, 'b')));
    }
    const auto& blobs = possible_.front().blobs;
    if (!blobs.empty() && below(4) == 0) {
      auto blob = blobs.begin();
      std::advance(blob, static_cast<std::ptrdiff_t>(below(blobs.size())));
      batch.drop_blobs.push_back(blob_id(blob->first));
    }
    if (below(2) == 0) {
      batch.history.push_back({.job_id = below(20), .record = fmt::format("job {}", ++serial_)});
    }
    return batch;
  }

  void step(Journal& journal) {
    const Content& last = possible_.front();
    if (below(8) == 0) {
      const Sequence sequence =
          last.snapshot_sequence + below(last.last() - last.snapshot_sequence + 1);
      const std::string body =
          fmt::format("state {} {}", ++serial_, std::string(below(30'000), 's'));
      note(journal.write_snapshot(sequence, body).has_value(),
           apply_snapshot(last, sequence, body));
      return;
    }
    const Batch batch = random_batch();
    if (batch.empty()) return;  // succeeds without a disk
    Content next = apply(last, batch);
    Result<Sequence> sequence = journal.append(batch);
    if (sequence) {
      EXPECT_EQ(*sequence, next.last());
    } else {
      EXPECT_EQ(sequence.error().code, ErrorCode::kUnavailable) << sequence.error().message;
    }
    note(sequence.has_value(), std::move(next));
  }

  void note(bool succeeded, Content next) {
    if (succeeded) {
      possible_ = {std::move(next)};
    } else {
      possible_.push_back(std::move(next));
    }
  }

  std::mt19937_64 random_;
  TemporaryDirectory directory_;
  FaultVfs disk_;
  // First the content after the last success; then that of each failure since.
  std::vector<Content> possible_ = {Content()};
  std::uint64_t serial_ = 0;
  std::uint64_t torn_ = 0;
};

TEST(Crash, KeepsWhatWasAcknowledgedAndNothingInPart) {
  const std::uint64_t crashes = environment("TUTTI_CRASHES", 400);
  const std::uint64_t first = environment("TUTTI_SEED", 1);
  const bool one_seed = std::getenv("TUTTI_SEED") != nullptr;
  std::uint64_t done = 0;
  std::uint64_t torn = 0;
  for (std::uint64_t seed = first; done < crashes && (!one_seed || seed == first); ++seed) {
    SCOPED_TRACE(fmt::format("TUTTI_SEED={}", seed));
    CrashRun run(seed);
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(run.life());
      ASSERT_TRUE(run.check());
      done += 2;
    }
    torn += run.torn();
  }
  // A test of torn tails that never tore one would be no test.
  if (!one_seed) {
    EXPECT_GT(torn, done / 100);
  }
  RecordProperty("crashes", static_cast<int>(done));
  RecordProperty("torn_tails", static_cast<int>(torn));
}

TEST(Crash, OneSyncForABatch) {
  TemporaryDirectory directory;
  FaultVfs disk;
  OpenedJournal opened = must_open({.directory = directory.state(), .vfs = disk.name()});
  must_append(opened.journal, {.events = {"the first also syncs the head of the log"}});
  const std::uint64_t before = disk.syncs();
  Batch batch{.events = std::vector<std::string>(64, std::string(220, 'e'))};
  batch.blobs = {Blob("script"), Blob("environment")};
  batch.history = {{.job_id = 1, .record = "{}"}};
  for (int i = 0; i < 10; ++i) must_append(opened.journal, batch);
  EXPECT_EQ(disk.syncs() - before, 10U);
}

// What recovery reports is on the disk, also when the writer was killed between write and sync.
TEST(Crash, ReportedEventsSurviveTheNextCrash) {
  TemporaryDirectory directory;
  FaultVfs disk;
  const OpenOptions options{.directory = directory.state(), .vfs = disk.name()};
  int found_failed = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Sequence acknowledged = 0;
    Sequence reported = 0;
    {
      OpenedJournal opened = must_open(options);
      must_append(opened.journal, {.events = {"synced"}});
      disk.fail_syncs(1);
      EXPECT_FALSE(opened.journal.append({.events = {"written, not synced"}}));
      acknowledged = opened.journal.last_sequence();
      disk.power_off();  // the process is killed: what is in the page cache stays
    }
    disk.crash_process();
    {
      OpenedJournal opened = must_open(options);
      reported = opened.journal.last_sequence();
      disk.power_off();
    }
    disk.crash(seed);
    OpenedJournal opened = must_open(options);
    EXPECT_EQ(opened.journal.last_sequence(), reported);
    found_failed += reported > acknowledged ? 1 : 0;
  }
  EXPECT_EQ(found_failed, 20);
}

// Failed attempts leave whole transactions behind the end of the log; they are not taken for
// acknowledged ones behind a damaged frame.
TEST(Crash, LeftoversOfFailedBatchesAreNotDamage) {
  TemporaryDirectory directory;
  FaultVfs disk;
  const OpenOptions options{.directory = directory.state(), .vfs = disk.name()};
  {
    OpenedJournal opened = must_open(options);
    Journal& journal = opened.journal;
    must_append(journal, {.events = {"before"}});
    for (const std::size_t count : {40, 20, 10}) {
      disk.fail_syncs(1);
      Result<Sequence> failed =
          journal.append({.events = std::vector<std::string>(count, std::string(4000, 'f'))});
      ASSERT_FALSE(failed);
      EXPECT_EQ(failed.error().code, ErrorCode::kUnavailable);
    }
    must_append(journal, {.events = {"after"}});
    disk.power_off();
  }
  disk.crash_process();
  OpenedJournal opened = must_open(options);
  EXPECT_EQ(events_after(opened.journal, 0), (NumberedEvents{{1, "before"}, {2, "after"}}));
  EXPECT_GT(opened.report.log_frames_dropped, 0U);
}

TEST(Crash, FullDiskKeepsWhatWasAcknowledged) {
  for (std::uint64_t space = 0; space < 600'000; space += 20'011) {
    SCOPED_TRACE(space);
    TemporaryDirectory directory;
    FaultVfs disk;
    const OpenOptions options{
        .directory = directory.state(), .checkpoint_pages = 20, .vfs = disk.name()};
    OpenedJournal opened = must_open(options);
    disk.set_free_space(space);
    Batch batch{.events = std::vector<std::string>(8, std::string(900, 'e'))};
    batch.blobs = {Blob("a script")};
    std::uint64_t acknowledged = 0;
    Result<Sequence> result = opened.journal.append(batch);
    while (result) {
      acknowledged = *result;
      ASSERT_LT(acknowledged, 100'000U) << "the disk never became full";
      result = opened.journal.append(batch);
    }
    EXPECT_EQ(result.error().code, ErrorCode::kExhausted) << result.error().message;
    EXPECT_NE(result.error().message.find("free space"), std::string::npos);
    EXPECT_EQ(events_after(opened.journal, 0).size(), acknowledged);
    EXPECT_FALSE(opened.journal.append(batch));
    disk.set_free_space(std::nullopt);
    EXPECT_EQ(must_append(opened.journal, batch), acknowledged + 8);
    disk.power_off();
    {
      Journal ended = std::move(opened.journal);
    }
    disk.crash(space);
    OpenedJournal again = must_open(options);
    EXPECT_EQ(again.journal.last_sequence(), acknowledged + 8);
  }
}

// A controller that finds the disk full at its start still comes up with what it had.
TEST(Crash, FullDiskDoesNotPreventOpening) {
  TemporaryDirectory directory;
  FaultVfs disk;
  const OpenOptions options{.directory = directory.state(), .vfs = disk.name()};
  {
    OpenedJournal opened = must_open(options);
    must_append(opened.journal, {.events = std::vector<std::string>(100, std::string(1000, 'e'))});
    disk.power_off();
  }
  disk.crash(1);
  disk.set_free_space(0);
  OpenedJournal opened = must_open(options);
  EXPECT_EQ(opened.journal.last_sequence(), 100U);
  ASSERT_EQ(opened.report.notes.size(), 1U);
  EXPECT_NE(opened.report.notes[0].find("could not be moved"), std::string::npos);
  Result<Sequence> refused = opened.journal.append({.events = {"no room"}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kExhausted);
  disk.set_free_space(std::nullopt);
  EXPECT_EQ(must_append(opened.journal, {.events = {"room"}}), 101U);
}

std::string event_of(Sequence sequence) {
  return fmt::format("event {} {}", sequence, std::string(sequence * 7919 % 3000, 'k'));
}

// Appends for ever and writes each acknowledged number to `descriptor`.
[[noreturn]] void write_until_killed(const std::string& directory, int descriptor) {
  OpenedJournal opened = must_open({.directory = directory, .checkpoint_pages = 50});
  Sequence next = opened.journal.last_sequence() + 1;
  while (true) {
    Batch batch;
    for (Sequence i = 0; i < 1 + next % 5; ++i) batch.events.push_back(event_of(next + i));
    Result<Sequence> last = opened.journal.append(batch);
    if (!last || write(descriptor, &*last, sizeof *last) != sizeof *last) _exit(1);
    next = *last + 1;
  }
}

TEST(Crash, KilledProcessLosesNothingAcknowledged) {
  TemporaryDirectory directory;
  Sequence acknowledged = 0;
  for (int round = 1; round <= 5; ++round) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      close(ends[0]);
      write_until_killed(directory.state(), ends[1]);
    }
    close(ends[1]);
    const Sequence kill_after = acknowledged + 60U * static_cast<unsigned>(round);
    Sequence sequence = 0;
    bool killed = false;
    while (read(ends[0], &sequence, sizeof sequence) == sizeof sequence) {
      acknowledged = sequence;
      if (!killed && acknowledged >= kill_after) {
        Result<OpenedJournal> second = open({.directory = directory.state()});
        ASSERT_FALSE(second);
        EXPECT_NE(second.error().message.find(fmt::format("pid {}", child)), std::string::npos);
        kill(child, SIGKILL);
        killed = true;
      }
    }
    close(ends[0]);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child ended by itself: " << status;
    OpenedJournal opened = must_open({.directory = directory.state()});
    ASSERT_GE(opened.journal.last_sequence(), acknowledged);
    Sequence expected = 1;
    for (const auto& [number, body] : events_after(opened.journal, 0)) {
      ASSERT_EQ(number, expected);
      ASSERT_EQ(body, event_of(expected));
      ++expected;
    }
    acknowledged = opened.journal.last_sequence();
  }
}

}  // namespace
}  // namespace tutti::journal
