#include "base/duration_text.h"

#include <fmt/format.h>

#include "base/text.h"

namespace tutti {

namespace {
constexpr std::int64_t kMaxField = 10'000'000;  // keeps the sum far from overflow

tl::unexpected<Error> bad_time(std::string_view text) {
  return invalid(fmt::format("time {}: expected minutes, M:S, H:M:S, D-H, D-H:M, D-H:M:S or "
                             "UNLIMITED",
                             quote(text)),
                 "invalid_time");
}

struct Fields {
  std::int64_t days, hours, minutes, seconds;
};
Fields fields_of(Duration duration) {
  std::int64_t s = std::max<std::int64_t>(0, duration.whole_seconds());
  return {s / 86400, s / 3600 % 24, s / 60 % 60, s % 60};
}
}  // namespace

Result<Duration> parse_duration(std::string_view text) {
  if (text == "-1" || equals_ci(text, "UNLIMITED") || equals_ci(text, "INFINITE"))
    return Duration::infinite();
  auto dashed = split_once(text, '-');
  std::vector<std::int64_t> fields;
  for (std::string_view piece : split(dashed ? dashed->second : text, ':')) {
    auto field = parse_integer<std::int64_t>(piece);
    if (!field || !is_digit(piece.front()) || *field > kMaxField) return bad_time(text);
    fields.push_back(*field);
  }
  if (fields.size() > 3) return bad_time(text);
  std::int64_t seconds = 0;
  if (dashed) {
    auto days = parse_integer<std::int64_t>(dashed->first);
    if (!days || *days < 0 || *days > kMaxField) return bad_time(text);
    fields.resize(3, 0);
    seconds = *days * 86400 + fields[0] * 3600 + fields[1] * 60 + fields[2];
  } else if (fields.size() == 3) {
    seconds = fields[0] * 3600 + fields[1] * 60 + fields[2];
  } else {
    seconds = fields[0] * 60 + (fields.size() == 2 ? fields[1] : 0);
  }
  return Duration::seconds(seconds);
}

Result<Duration> parse_time_limit(std::string_view text) {
  auto duration = parse_duration(text);
  if (!duration || duration->is_infinite()) return duration;
  std::int64_t minutes = (duration->whole_seconds() + 59) / 60;
  return minutes == 0 ? Duration::infinite() : Duration::minutes(minutes);
}

std::string format_duration(Duration duration) {
  if (duration.is_infinite()) return "UNLIMITED";
  Fields f = fields_of(duration);
  if (f.days > 0) return fmt::format("{}-{:02}:{:02}:{:02}", f.days, f.hours, f.minutes, f.seconds);
  return fmt::format("{:02}:{:02}:{:02}", f.hours, f.minutes, f.seconds);
}

std::string format_duration_short(Duration duration) {
  if (duration.is_infinite()) return "UNLIMITED";
  if (duration == Duration{}) return "0:00";  // of all that waits
  Fields f = fields_of(duration);
  if (f.days > 0) return fmt::format("{}-{:02}:{:02}:{:02}", f.days, f.hours, f.minutes, f.seconds);
  if (f.hours > 0) return fmt::format("{}:{:02}:{:02}", f.hours, f.minutes, f.seconds);
  return fmt::format("{}:{:02}", f.minutes, f.seconds);
}

}  // namespace tutti
