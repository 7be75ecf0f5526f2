#include "ledger/ledger.h"

#include <gtest/gtest.h>

#include <random>

namespace tutti::ledger {
namespace {

Instant at(std::int64_t seconds) { return Instant::from_ms(seconds * 1000); }
Units gpu_seconds(const TypeTotals& totals, Level level) {
  return totals.levels[static_cast<std::size_t>(level)] / kUnitsPerGpuSecond;
}

TEST(Ledger, AJobsLifeInEveryLevelItPasses) {
  Ledger ledger(at(0));
  ASSERT_TRUE(ledger.set_capacity("h100", 8, 0, at(0)));
  ASSERT_TRUE(ledger.hold(1, "h100", 4000, Level::kStarting, at(10)));
  ASSERT_TRUE(ledger.change(1, Level::kProgressing, at(15)));
  ASSERT_TRUE(ledger.hold(2, "h100", 500, Level::kUnknown, at(20)));
  ASSERT_TRUE(ledger.release(1, at(115)));
  EXPECT_EQ(ledger.lose(1, 40 * 4 * kUnitsPerGpuSecond, at(115)), 160 * kUnitsPerGpuSecond);
  ASSERT_TRUE(ledger.release(2, at(120)));
  auto totals = ledger.totals(at(200));
  ASSERT_EQ(totals.size(), 1u);
  EXPECT_EQ(gpu_seconds(totals[0], Level::kStarting), 4u * 5);
  EXPECT_EQ(gpu_seconds(totals[0], Level::kProgressing), 4u * 60);
  EXPECT_EQ(gpu_seconds(totals[0], Level::kLost), 4u * 40);
  EXPECT_EQ(gpu_seconds(totals[0], Level::kUnknown), 50u);
  EXPECT_EQ(gpu_seconds(totals[0], Level::kFree), 8u * 200 - 4 * 105 - 50);
  EXPECT_EQ(totals[0].capacity, 1600 * kUnitsPerGpuSecond);
  EXPECT_EQ(totals[0].sum(), totals[0].capacity);
  auto of = ledger.of(1);
  EXPECT_EQ(of[static_cast<std::size_t>(Level::kLost)], 160 * kUnitsPerGpuSecond);
}

TEST(Ledger, GpusOfANodeThatGoesDownCountAsHeldUntilTheyAreGivenBack) {
  Ledger ledger(at(0));
  ASSERT_TRUE(ledger.set_capacity("", 8, 0, at(0)));
  ASSERT_TRUE(ledger.hold(1, "", 8000, Level::kProgressing, at(0)));
  ASSERT_TRUE(ledger.set_capacity("", 8, 8, at(10)));
  EXPECT_EQ(ledger.present(Level::kDown), 0u);
  ASSERT_TRUE(ledger.release(1, at(30)));
  EXPECT_EQ(ledger.present(Level::kDown), 8000u);
  auto totals = ledger.totals(at(40));
  EXPECT_EQ(gpu_seconds(totals[0], Level::kProgressing), 240u);
  EXPECT_EQ(gpu_seconds(totals[0], Level::kDown), 80u);
  EXPECT_EQ(gpu_seconds(totals[0], Level::kFree), 0u);
}

TEST(Ledger, RefusesWhatCannotBeAndChangesNothing) {
  Ledger ledger(at(0));
  ASSERT_TRUE(ledger.set_capacity("a", 2, 0, at(0)));
  EXPECT_FALSE(ledger.hold(1, "b", 1000, Level::kStarting, at(1)));
  EXPECT_FALSE(ledger.hold(1, "a", 2001, Level::kStarting, at(1)));
  EXPECT_FALSE(ledger.hold(1, "a", 1000, Level::kFree, at(1)));
  ASSERT_TRUE(ledger.hold(1, "a", 2000, Level::kStarting, at(2)));
  EXPECT_FALSE(ledger.hold(1, "a", 1, Level::kStarting, at(3)));
  EXPECT_FALSE(ledger.hold(2, "a", 1, Level::kStarting, at(3)));
  EXPECT_FALSE(ledger.change(2, Level::kProgressing, at(3)));
  EXPECT_FALSE(ledger.change(1, Level::kDown, at(3)));
  EXPECT_FALSE(ledger.resize(1, 2001, at(3)));
  EXPECT_FALSE(ledger.set_capacity("a", 1, 0, at(3)));
  auto late = ledger.release(1, at(1));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().message, "the ledger is at 3000 ms, 1000 ms is before it");
  ASSERT_TRUE(ledger.release(1, at(4)));
  EXPECT_FALSE(ledger.release(1, at(4)));
  auto totals = ledger.totals(at(4));
  EXPECT_EQ(gpu_seconds(totals[0], Level::kStarting), 4u);
  EXPECT_EQ(totals[0].sum(), totals[0].capacity);
}

// The promise, on random lives: after every step the levels add up to capacity times time, and the
// holders' own sums are what the totals say is held.
TEST(Ledger, AddsUpExactlyWhateverHappens) {
  for (std::uint32_t seed = 1; seed <= 50; ++seed) {
    std::mt19937 random(seed);
    auto pick = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    Ledger ledger(at(0));
    std::int64_t now = 0;
    Units capacity = 0;
    std::uint64_t gpus = 0;
    Holder last = 0;
    for (int step = 0; step < 300; ++step) {
      std::int64_t passed = pick(5) * 777;
      capacity += gpus * 1000 * static_cast<std::uint64_t>(passed);
      now += passed;
      Instant when = Instant::from_ms(now);
      Holder some = 1 + pick(static_cast<std::uint32_t>(last + 1));
      switch (pick(7)) {
        case 0: {
          std::uint64_t wanted = pick(16);
          if (ledger.set_capacity("x", wanted, pick(8), when)) gpus = wanted;
          break;
        }
        case 1:
          if (ledger.hold(last + 1, "x", 1 + pick(3000), Level::kStarting, when)) ++last;
          break;
        case 2:
          static_cast<void>(ledger.change(some, Level::kProgressing, when));
          break;
        case 3:
          static_cast<void>(ledger.change(some, Level::kReserved, when));
          break;
        case 4:
          static_cast<void>(ledger.resize(some, 1 + pick(3000), when));
          break;
        case 5:
          static_cast<void>(ledger.release(some, when));
          break;
        default:
          static_cast<void>(ledger.lose(some, pick(1'000'000), when));
          break;
      }
      auto totals = ledger.totals(when);
      if (totals.empty()) continue;
      ASSERT_EQ(totals[0].capacity, capacity) << "seed " << seed << " step " << step;
      ASSERT_EQ(totals[0].sum(), capacity) << "seed " << seed << " step " << step;
      Units held = capacity - totals[0].levels[0] - totals[0].levels[1], of_holders = 0;
      for (Holder holder = 1; holder <= last; ++holder)
        for (Units units : ledger.of(holder)) of_holders += units;
      ASSERT_EQ(of_holders, held) << "seed " << seed << " step " << step;
    }
  }
}

}  // namespace
}  // namespace tutti::ledger
