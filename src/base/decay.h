// Exponential decay in integers: what is left of an amount after a time, with a half-life, and how
// much a steady use adds up to. The same on every machine; the error is below 2^-44 of a half-life.
// Also the calendar periods at whose end usage is set to zero.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/enum_names.h"
#include "base/time.h"

namespace tutti {

inline constexpr std::uint64_t kMostUsage = std::uint64_t{1} << 62;

// 2^(-time / half_life). A half-life of 0 never fades. `time` >= 0.
class Fade {
 public:
  Fade(Duration time, Duration half_life);
  // Rounded down.
  std::uint64_t of(std::uint64_t amount) const;

 private:
  std::uint64_t fraction_ = 0;  // in 2^-64; 0 stands for one
  std::uint32_t halvings_ = 0;
};

// What one unit in use for `time` has come to at its end, in milliseconds: the integral of the decay,
// (1 - 2^(-time / half_life)) * half_life / ln 2, rounded to the nearest; `time` itself if nothing
// fades.
std::uint64_t faded_time(Duration time, Duration half_life);

// PriorityUsageResetPeriod. Periods begin at midnight UTC; weeks on Sunday.
enum class ResetPeriod : std::uint8_t { kNone, kNow, kDaily, kWeekly, kMonthly, kQuarterly, kYearly };
template <>
struct EnumNames<ResetPeriod> {
  static constexpr std::array kTable{
      std::pair{ResetPeriod::kNone, std::string_view("none")},
      std::pair{ResetPeriod::kNow, std::string_view("now")},
      std::pair{ResetPeriod::kDaily, std::string_view("daily")},
      std::pair{ResetPeriod::kWeekly, std::string_view("weekly")},
      std::pair{ResetPeriod::kMonthly, std::string_view("monthly")},
      std::pair{ResetPeriod::kQuarterly, std::string_view("quarterly")},
      std::pair{ResetPeriod::kYearly, std::string_view("yearly")}};
};
// A number that changes from one period to the next; 0 when there are none.
std::int64_t usage_period(ResetPeriod period, Instant at);
// When the period of `at` began; Instant() when there are none.
Instant period_start(ResetPeriod period, Instant at);

}  // namespace tutti
