#include "base/civil_time.h"

namespace tutti {

namespace {
// Divides towards minus infinity, so that times before 1970 fall into the right day.
constexpr std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  return a / b - (a % b < 0 ? 1 : 0);
}
constexpr std::int64_t kDaysPerEra = 146'097;  // 400 years
constexpr std::int64_t kEraShift = 719'468;    // 0000-03-01 to 1970-01-01
}  // namespace

// Years begin in March here, so the leap day is the last day of its year, and months of 31 and 30
// days alternate by the formula (153 m + 2) / 5.
std::int64_t days_from_civil(std::int64_t year, std::int32_t month, std::int64_t day) {
  if (month <= 2) --year;
  std::int64_t era = floor_divide(year, 400);
  std::int64_t year_of_era = year - era * 400;
  std::int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  std::int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * kDaysPerEra + day_of_era - kEraShift;
}

CivilTime civil_from_days(std::int64_t days) {
  days += kEraShift;
  std::int64_t era = floor_divide(days, kDaysPerEra);
  std::int64_t day_of_era = days - era * kDaysPerEra;
  std::int64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  std::int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  std::int64_t month_from_march = (5 * day_of_year + 2) / 153;
  CivilTime civil;
  civil.day = static_cast<std::int32_t>(day_of_year - (153 * month_from_march + 2) / 5 + 1);
  civil.month = static_cast<std::int32_t>(month_from_march + (month_from_march < 10 ? 3 : -9));
  civil.year = static_cast<std::int32_t>(year_of_era + era * 400 + (civil.month <= 2 ? 1 : 0));
  return civil;
}

bool is_valid_date(std::int32_t year, std::int32_t month, std::int32_t day) {
  if (month < 1 || month > 12 || day < 1 || day > 31) return false;
  return civil_from_days(days_from_civil(year, month, day)).day == day;
}

std::int32_t weekday_of(const CivilTime& civil) {
  std::int64_t days = days_from_civil(civil.year, civil.month, civil.day) + 4;  // 1970: Thursday
  return static_cast<std::int32_t>(days - floor_divide(days, 7) * 7);
}

std::int32_t day_of_year(const CivilTime& civil) {
  return static_cast<std::int32_t>(days_from_civil(civil.year, civil.month, civil.day) -
                                   days_from_civil(civil.year, 1, 1));
}

std::int64_t TimeZone::offset_seconds(Instant instant) const {
  return floor_divide(UtcZone().to_instant(to_civil(instant)).ms(), 1000) -
         floor_divide(instant.ms(), 1000);
}

CivilTime UtcZone::to_civil(Instant instant) const {
  std::int64_t seconds = floor_divide(instant.ms(), 1000);
  std::int64_t days = floor_divide(seconds, 86400);
  CivilTime civil = civil_from_days(days);
  auto rest = static_cast<std::int32_t>(seconds - days * 86400);
  civil.hour = rest / 3600;
  civil.minute = rest / 60 % 60;
  civil.second = rest % 60;
  return civil;
}

Instant UtcZone::to_instant(const CivilTime& civil) const {
  std::int64_t days = days_from_civil(civil.year, civil.month, civil.day);
  return Instant::from_ms((days * 86400 + civil.hour * 3600 + civil.minute * 60 + civil.second) *
                          1000);
}

}  // namespace tutti
