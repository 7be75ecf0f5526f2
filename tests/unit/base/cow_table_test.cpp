#include "base/cow_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <thread>

namespace tutti {
namespace {
using Table = CowTable<int>;
using Model = std::map<std::uint32_t, int>;

void expect_same(const Table& table, const Model& model) {
  ASSERT_EQ(table.size(), model.size());
  auto expected = model.begin();
  table.for_each([&](std::uint32_t id, int value) {
    ASSERT_NE(expected, model.end());
    EXPECT_EQ(id, expected->first);
    EXPECT_EQ(value, expected->second);
    ++expected;
  });
  EXPECT_EQ(expected, model.end());
}

TEST(CowTable, BehavesAsAMapAndSnapshotsNeverChange) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const std::uint32_t range = seed % 2 ? 700 : 100'000;
    Table table;
    Model model;
    std::vector<std::pair<Table, Model>> snapshots;
    for (int step = 0; step < 3000; ++step) {
      std::uint32_t id = random() % range;
      switch (random() % 8) {
        case 0:
        case 1:
        case 2:
          EXPECT_EQ(table.erase(id), model.erase(id) == 1);
          break;
        case 3: {
          auto expected = model.lower_bound(id);
          auto found = table.begin_at(id);
          ASSERT_EQ(found == table.end(), expected == model.end());
          if (expected != model.end()) {
            EXPECT_EQ(found.id(), expected->first);
            EXPECT_EQ(*(*found).second, expected->second);
          }
          break;
        }
        default:
          table.put(id, std::make_shared<int>(step));
          model[id] = step;
      }
      const int* found = table.find(id);
      ASSERT_EQ(found != nullptr, model.count(id) == 1);
      if (found) {
        EXPECT_EQ(*found, model[id]);
      }
      if (random() % 200 == 0) snapshots.emplace_back(table, model);
      // A snapshot may itself be copied and changed, and the present dropped for the past.
      if (random() % 400 == 0 && !snapshots.empty()) {
        std::tie(table, model) = snapshots[random() % snapshots.size()];
      }
    }
    expect_same(table, model);
    for (const auto& [old_table, old_model] : snapshots) expect_same(old_table, old_model);
  }
}

TEST(CowTable, ACopySharesChunksAndAChangeClonesOne) {
  Table table;
  for (std::uint32_t id = 0; id < 10 * Table::kChunkSize; ++id)
    table.put(id, std::make_shared<int>(1));
  EXPECT_EQ(table.chunk_count(), 10u);
  Table snapshot = table;
  EXPECT_EQ(snapshot.shared_chunk_count(), 10u);
  table.put(300, std::make_shared<int>(2));
  table.put(301, std::make_shared<int>(2));
  EXPECT_EQ(snapshot.shared_chunk_count(), 9u);
  EXPECT_EQ(*snapshot.find(300), 1);
  EXPECT_EQ(*table.find(300), 2);
  EXPECT_EQ(snapshot.find(299), table.find(299));  // the record itself is shared
}

// Says most under the thread sanitizer: readers copy and read what was published while the one
// writer changes its own table and publishes again.
TEST(CowTable, ReadersOfASnapshotNeedNoLock) {
  Table table;
  // Not std::atomic<std::shared_ptr>: GCC 12's load() releases its lock without ordering.
  std::mutex mutex;
  auto published = std::make_shared<const Table>(table);
  auto present = [&] {
    std::lock_guard lock(mutex);
    return published;
  };
  std::atomic<bool> done = false;
  std::vector<std::thread> readers;
  std::atomic<int> broken = 0;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      while (!done) {
        Table mine = *present();
        int newest = 0;
        mine.for_each([&](std::uint32_t, int value) { newest = std::max(newest, value); });
        const int* counter = mine.find(0);
        if (counter && *counter != newest) ++broken;
        mine.put(0, nullptr);
      }
    });
  }
  std::mt19937 random(3);
  for (int step = 1; step <= 2000; ++step) {
    table.put(1 + random() % 600, std::make_shared<int>(step));
    table.put(0, std::make_shared<int>(step));
    auto next = std::make_shared<const Table>(table);
    std::lock_guard lock(mutex);
    published = std::move(next);
  }
  done = true;
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(broken, 0);
  EXPECT_EQ(*present()->find(0), 2000);
}

TEST(CowTable, EmptyChunksAreDropped) {
  Table table;
  table.put(5, std::make_shared<int>(1));
  table.put(4'000'000'000u, std::make_shared<int>(2));
  EXPECT_EQ(table.chunk_count(), 2u);
  EXPECT_EQ(table.begin_at(6).id(), 4'000'000'000u);
  EXPECT_TRUE(table.erase(5));
  EXPECT_FALSE(table.erase(5));
  EXPECT_EQ(table.chunk_count(), 1u);
  table.put(4'000'000'000u, nullptr);
  EXPECT_TRUE(table.empty());
  EXPECT_EQ(table.chunk_count(), 0u);
  EXPECT_TRUE(table.begin() == table.end());
}
}  // namespace
}  // namespace tutti
