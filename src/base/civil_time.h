// The calendar: years, months and clock hands of an Instant in some time zone. Below the edge
// nobody asks the machine for its zone; who needs one is given a TimeZone.
#pragma once

#include <cstdint>
#include <string>

#include "base/time.h"

namespace tutti {

struct CivilTime {
  std::int32_t year = 1970;
  std::int32_t month = 1;  // 1 to 12
  std::int32_t day = 1;    // 1 to 31
  std::int32_t hour = 0;
  std::int32_t minute = 0;
  std::int32_t second = 0;
  friend auto operator<=>(const CivilTime&, const CivilTime&) = default;
};

// Days since 1970-01-01 in the Gregorian calendar, for any year; month must be 1 to 12, day may
// run over ("January 32nd").
std::int64_t days_from_civil(std::int64_t year, std::int32_t month, std::int64_t day);
// The inverse; the clock hands are 0.
CivilTime civil_from_days(std::int64_t days);
bool is_valid_date(std::int32_t year, std::int32_t month, std::int32_t day);
// 0 = Sunday, and days since January 1st.
std::int32_t weekday_of(const CivilTime& civil);
std::int32_t day_of_year(const CivilTime& civil);

class TimeZone {
 public:
  virtual ~TimeZone() = default;
  // Whole seconds; the fraction is cut.
  virtual CivilTime to_civil(Instant instant) const = 0;
  // Where a clock change skips the time or has it twice, one of the neighbouring answers, never an
  // error. `day`, `hour`, `minute` and `second` may run over.
  virtual Instant to_instant(const CivilTime& civil) const = 0;
  virtual std::string abbreviation(Instant instant) const = 0;  // "UTC", "CEST"
  std::int64_t offset_seconds(Instant instant) const;           // east of UTC is positive
};

class UtcZone final : public TimeZone {
 public:
  CivilTime to_civil(Instant instant) const override;
  Instant to_instant(const CivilTime& civil) const override;
  std::string abbreviation(Instant) const override { return "UTC"; }
};

}  // namespace tutti
