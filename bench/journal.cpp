// The cost of making events durable: 220-byte events, alone and in batches (group commit). The
// directory is TUTTI_BENCH_DIRECTORY or the system's temporary one; on a memory file system the
// sync costs nothing and the numbers say only what SQLite costs.
#include "journal/journal.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

namespace {

using tutti::journal::Batch;
using tutti::journal::Blob;
using tutti::journal::HistoryRow;
using tutti::journal::OpenedJournal;

// A journal in a directory of its own that goes away with it.
class Scratch {
 public:
  Scratch() {
    const char* base = std::getenv("TUTTI_BENCH_DIRECTORY");
    std::filesystem::path parent =
        base != nullptr ? std::filesystem::path(base) : std::filesystem::temp_directory_path();
    path_ = (parent / "tutti-bench-XXXXXX").string();
    if (mkdtemp(path_.data()) == nullptr) std::abort();
    auto opened = tutti::journal::open({.directory = path_ + "/state"});
    if (!opened) {
      fmt::print(stderr, "{}\n", opened.error().message);
      std::abort();
    }
    opened_ = std::make_unique<OpenedJournal>(std::move(*opened));
  }
  ~Scratch() {
    opened_.reset();
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // Appends; the journal is compacted now and then, as a controller does it.
  bool append(const Batch& batch) {
    auto& journal = opened_->journal;
    const auto last = journal.append(batch);
    if (!last) return false;
    if (*last - journal.snapshot_sequence() < 200'000) return true;
    return journal.write_snapshot(*last, "state").has_value();
  }

 private:
  std::string path_;
  std::unique_ptr<OpenedJournal> opened_;
};

void append_events(benchmark::State& state) {
  Scratch scratch;
  const auto count = static_cast<std::size_t>(state.range(0));
  const Batch batch{.events = std::vector<std::string>(count, std::string(220, 'e'))};
  for (auto _ : state) {
    if (!scratch.append(batch)) state.SkipWithError("append failed");
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.SetBytesProcessed(state.iterations() * state.range(0) * 220);
}
BENCHMARK(append_events)->Arg(1)->Arg(8)->Arg(64)->Arg(256)->UseRealTime();

// A submission: an event, a script of its own, an environment that all share.
void append_submission(benchmark::State& state) {
  Scratch scratch;
  const Blob environment(std::string(8000, 'v'));
  std::uint64_t number = 0;
  for (auto _ : state) {
    Batch batch{.events = {std::string(220, 'e')}};
    batch.blobs = {Blob(fmt::format("#!/bin/bash\n# {}\n{}", ++number, std::string(1500, 's'))),
                   environment};
    if (!scratch.append(batch)) state.SkipWithError("append failed");
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(append_submission)->UseRealTime();

// The end of a gang: two events and a row of history, 64 gangs at once.
void append_ends(benchmark::State& state) {
  Scratch scratch;
  std::uint64_t job = 0;
  for (auto _ : state) {
    Batch batch{.events = std::vector<std::string>(128, std::string(220, 'e'))};
    for (int i = 0; i < 64; ++i) {
      batch.history.push_back({.job_id = ++job,
                               .user = "ada",
                               .account = "physics",
                               .partition = "gpu",
                               .name = "train",
                               .state = "COMPLETED",
                               .record = std::string(600, 'r')});
    }
    if (!scratch.append(batch)) state.SkipWithError("append failed");
  }
  state.SetItemsProcessed(state.iterations() * 64);
}
BENCHMARK(append_ends)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
