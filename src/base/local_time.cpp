#include "base/local_time.h"

#include <fmt/format.h>

#include <ctime>

#include "base/text.h"

namespace tutti {

namespace {
constexpr std::size_t kMaxPattern = 32;
constexpr std::size_t kMaxOutput = 512;

std::int64_t seconds_of(Instant instant) {
  return instant.ms() / 1000 - (instant.ms() % 1000 < 0 ? 1 : 0);
}

std::tm tm_of(Instant instant) {
  auto seconds = static_cast<std::time_t>(seconds_of(instant));
  std::tm local{};
  // Fails only for years past the range of int.
  if (!localtime_r(&seconds, &local)) return std::tm{};
  return local;
}
}  // namespace

LocalZone::LocalZone() { tzset(); }

CivilTime LocalZone::to_civil(Instant instant) const {
  std::tm local = tm_of(instant);
  return {local.tm_year + 1900, local.tm_mon + 1, local.tm_mday,
          local.tm_hour,        local.tm_min,     local.tm_sec};
}

Instant LocalZone::to_instant(const CivilTime& civil) const {
  std::tm local{};
  local.tm_year = civil.year - 1900;
  local.tm_mon = civil.month - 1;
  local.tm_mday = civil.day;
  local.tm_hour = civil.hour;
  local.tm_min = civil.minute;
  local.tm_sec = civil.second;
  local.tm_isdst = -1;
  return Instant::from_ms(static_cast<std::int64_t>(std::mktime(&local)) * 1000);
}

std::string LocalZone::abbreviation(Instant instant) const {
  std::tm local = tm_of(instant);
  return local.tm_zone ? local.tm_zone : "";
}

namespace {
// strftime knows no zone but the process's own, so what depends on the zone is filled in before.
std::string expand_zone_fields(std::string_view pattern, Instant instant, const TimeZone& zone) {
  std::string out;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%' || i + 1 == pattern.size()) {
      out += pattern[i];
      continue;
    }
    char letter = pattern[++i];
    if (letter == 's') {
      out += fmt::to_string(seconds_of(instant));
    } else if (letter == 'z') {
      std::int64_t offset = zone.offset_seconds(instant) / 60;
      std::int64_t size = offset < 0 ? -offset : offset;
      out += fmt::format("{}{:02}{:02}", offset < 0 ? '-' : '+', size / 60, size % 60);
    } else if (letter == 'Z') {
      out += zone.abbreviation(instant);
    } else {
      (out += '%') += letter;
    }
  }
  return out;
}

std::string format_pattern(std::string_view pattern, Instant instant, const TimeZone& zone) {
  CivilTime civil = zone.to_civil(instant);
  std::tm fields{};
  fields.tm_year = civil.year - 1900;
  fields.tm_mon = civil.month - 1;
  fields.tm_mday = civil.day;
  fields.tm_hour = civil.hour;
  fields.tm_min = civil.minute;
  fields.tm_sec = civil.second;
  fields.tm_wday = weekday_of(civil);
  fields.tm_yday = day_of_year(civil);
  char out[kMaxOutput];
  std::string expanded = expand_zone_fields(pattern, instant, zone);
  std::size_t length = std::strftime(out, sizeof out, expanded.c_str(), &fields);
  return std::string(out, length);
}

std::string_view relative_pattern(Instant instant, Instant now, const TimeZone& zone) {
  CivilTime then = zone.to_civil(instant), today = zone.to_civil(now);
  std::int64_t days = days_from_civil(then.year, then.month, then.day) -
                      days_from_civil(today.year, today.month, today.day);
  if (days == -1) return "Ystday %H:%M";
  if (days == 0) return "%H:%M:%S";
  if (days == 1) return "Tomorr %H:%M";
  if (days < -365 || days > 365) return "%-d %b %Y";
  if (days < 0 || days > 6) return "%-d %b %H:%M";
  return "%a %H:%M";
}
}  // namespace

Result<TimeFormat> TimeFormat::parse(std::string_view text, Instant now) {
  TimeFormat format;
  if (text.empty() || text == "standard") return format;
  if (text == "relative") {
    format.relative_ = true;
    format.now_ = now;
    return format;
  }
  if (text.find('%') == std::string_view::npos || text.size() >= kMaxPattern)
    return invalid(
        fmt::format("time format {}: expected standard, relative or a pattern with %, "
                    "shorter than {} characters",
                    quote(text), kMaxPattern));
  format.pattern_ = std::string(text);
  return format;
}

std::string TimeFormat::format(Instant instant, const TimeZone& zone) const {
  return format_pattern(relative_ ? relative_pattern(instant, now_, zone) : pattern_, instant,
                        zone);
}

std::string format_time(Instant instant, const TimeZone& zone) {
  CivilTime c = zone.to_civil(instant);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", c.year, c.month, c.day, c.hour,
                     c.minute, c.second);
}

std::string format_utc_ms(Instant instant) {
  return fmt::format("{}.{:03}Z", format_time(instant, UtcZone()),
                     instant.ms() - seconds_of(instant) * 1000);
}

}  // namespace tutti
