// Decay with exact numbers: halves are halves, and a steady use adds up to what the integral says.
#include "base/decay.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tutti {
namespace {

constexpr Duration kWeek = Duration::seconds(7 * 86400);

TEST(Fade, HalvesAtEveryHalfLife) {
  EXPECT_EQ(Fade(Duration(), kWeek).of(1000), 1000u);
  EXPECT_EQ(Fade(kWeek, kWeek).of(1000), 500u);
  EXPECT_EQ(Fade(kWeek + kWeek + kWeek, kWeek).of(1000), 125u);
  EXPECT_EQ(Fade(Duration::milliseconds(kWeek.ms() * 80), kWeek).of(kMostUsage), 0u);
  EXPECT_EQ(Fade(kWeek, Duration()).of(1000), 1000u);
}

TEST(Fade, BetweenHalvesItIsTheRootOfTwo) {
  // 10^15 / sqrt(2), / 2^0.25, / 2^(1/7).
  const std::uint64_t amount = 1'000'000'000'000'000;
  EXPECT_NEAR(static_cast<double>(Fade(Duration::milliseconds(kWeek.ms() / 2), kWeek).of(amount)),
              707'106'781'186'547.5, 2);
  EXPECT_NEAR(static_cast<double>(Fade(Duration::milliseconds(kWeek.ms() / 4), kWeek).of(amount)),
              840'896'415'253'714.5, 2);
  EXPECT_NEAR(static_cast<double>(Fade(Duration::seconds(86400), kWeek).of(amount)),
              1e15 * std::pow(2, -1.0 / 7), 20);
}

TEST(FadedTime, IsTheIntegralOfTheDecay) {
  EXPECT_EQ(faded_time(Duration::seconds(10), Duration()), 10'000u);
  // A half-life long: H / ln 2 / 2 = 604'800'000 * 0.72134752 = 436'270'980.36 ms.
  EXPECT_EQ(faded_time(kWeek, kWeek), 436'270'980u);
  // For ever: H / ln 2.
  EXPECT_EQ(faded_time(Duration::milliseconds(kWeek.ms() * 90), kWeek), 872'541'961u);
  // Ten seconds of a week have hardly begun to fade: 10'000 - 10'000^2 * ln 2 / (2 H) = 9999.943.
  EXPECT_EQ(faded_time(Duration::seconds(10), kWeek), 10'000u);
  EXPECT_EQ(faded_time(Duration::milliseconds(1), kWeek), 1u);
  EXPECT_EQ(faded_time(Duration::seconds(3600), kWeek), 3'592'584u);
}

TEST(FadedTime, PiecesAddUp) {
  // Charged in two pieces or in one: the same within a millisecond of rounding.
  const Duration half = Duration::seconds(100'000);
  const std::uint64_t first = Fade(half, kWeek).of(faded_time(half, kWeek));
  const std::uint64_t both = first + faded_time(half, kWeek);
  EXPECT_NEAR(static_cast<double>(both), static_cast<double>(faded_time(half + half, kWeek)), 1.5);
}

TEST(ResetPeriods, BeginAtMidnight) {
  auto at = [](std::int64_t days, std::int64_t s) { return Instant::from_ms((days * 86400 + s) * 1000); };
  const Instant noon = at(20'788, 43'200);  // 2026-12-01, a Tuesday
  EXPECT_EQ(period_start(ResetPeriod::kDaily, noon), at(20'788, 0));
  EXPECT_EQ(period_start(ResetPeriod::kWeekly, noon), at(20'786, 0));
  EXPECT_EQ(period_start(ResetPeriod::kMonthly, noon), at(20'788, 0));
  EXPECT_EQ(period_start(ResetPeriod::kQuarterly, noon), at(20'788 - 61, 0));
  EXPECT_EQ(period_start(ResetPeriod::kYearly, noon), at(20'788 - 334, 0));
  EXPECT_NE(usage_period(ResetPeriod::kDaily, noon), usage_period(ResetPeriod::kDaily, at(20'787, 86'399)));
  EXPECT_EQ(usage_period(ResetPeriod::kNone, noon), 0);
}

}  // namespace
}  // namespace tutti
