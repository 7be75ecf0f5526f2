#include "base/time_text.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "base/text.h"

namespace tutti {

namespace {
struct Date {
  std::optional<std::int32_t> year;
  std::int32_t month = 0;
  std::int32_t day = 0;
};
struct ClockTime {
  std::int32_t hour = 0, minute = 0, second = 0;
};

tl::unexpected<Error> bad_time(std::string_view text, std::string_view piece) {
  return invalid(fmt::format("time {}: expected a time such as now+2hours, 16:00, 2026-11-30 or "
                             "2026-11-30T16:00, not {}",
                             quote(text), quote(piece)),
                 "invalid_time_specification");
}

// All pieces as numbers of at most `digits` digits, or nothing.
std::optional<std::vector<std::int32_t>> numbers_of(std::string_view text, char separator,
                                                    std::size_t digits) {
  std::vector<std::int32_t> numbers;
  for (std::string_view piece : split(text, separator)) {
    auto number = parse_integer<std::int32_t>(piece);
    if (!number || *number < 0 || !is_digit(piece.front()) || piece.size() > digits)
      return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

std::int32_t full_year(std::int32_t year, std::size_t digits) {
  return digits <= 2 ? 2000 + year : year;
}

std::optional<Date> checked(std::optional<std::int32_t> year, std::int32_t month,
                            std::int32_t day) {
  // Without a year, February 29th may come.
  if (!is_valid_date(year.value_or(2000), month, day)) return std::nullopt;
  return Date{year, month, day};
}

std::optional<Date> parse_date(std::string_view piece) {
  if (auto n = numbers_of(piece, '-', 4); n && n->size() == 3 && piece.find('-') == 4)
    return checked((*n)[0], (*n)[1], (*n)[2]);
  for (char separator : {'/', '.'}) {
    auto n = numbers_of(piece, separator, 4);
    if (!n || n->size() < 2 || n->size() > 3) continue;
    std::int32_t month = (*n)[separator == '/' ? 0 : 1], day = (*n)[separator == '/' ? 1 : 0];
    std::optional<std::int32_t> year;
    if (n->size() == 3) year = full_year((*n)[2], piece.size() - piece.rfind(separator) - 1);
    return checked(year, month, day);
  }
  bool digits = piece.size() == 6 || piece.size() == 8;
  for (char c : piece) digits = digits && is_digit(c);
  if (!digits) return std::nullopt;
  auto number = [&](std::size_t at, std::size_t count) {
    return parse_integer<std::int32_t>(piece.substr(at, count)).value_or(0);
  };
  return checked(full_year(number(4, piece.size() - 4), piece.size() - 4), number(0, 2),
                 number(2, 2));
}

std::optional<ClockTime> parse_clock(std::string_view piece) {
  constexpr std::pair<std::string_view, std::int32_t> kNamed[] = {
      {"midnight", 0}, {"elevenses", 11}, {"noon", 12}, {"fika", 15}, {"teatime", 16}};
  for (const auto& [name, hour] : kNamed)
    if (equals_ci(piece, name)) return ClockTime{hour, 0, 0};
  std::optional<bool> afternoon;
  if (piece.size() > 2 && equals_ci(piece.substr(piece.size() - 2), "AM")) afternoon = false;
  if (piece.size() > 2 && equals_ci(piece.substr(piece.size() - 2), "PM")) afternoon = true;
  if (afternoon) piece.remove_suffix(2);
  auto n = numbers_of(piece, ':', 2);
  if (!n || n->size() > 3 || (n->size() < 2 && !afternoon)) return std::nullopt;
  n->resize(3, 0);
  ClockTime clock{(*n)[0], (*n)[1], (*n)[2]};
  if (afternoon) {
    if (clock.hour < 1 || clock.hour > 12) return std::nullopt;
    clock.hour = clock.hour % 12 + (*afternoon ? 12 : 0);
  }
  if (clock.hour > 23 || clock.minute > 59 || clock.second > 59) return std::nullopt;
  return clock;
}

// Seconds of one unit, by any beginning of its name; 0 for none.
std::int64_t unit_seconds(std::string_view unit) {
  constexpr std::pair<std::string_view, std::int64_t> kUnits[] = {
      {"seconds", 1}, {"minutes", 60}, {"hours", 3600}, {"days", 86400}, {"weeks", 604800}};
  if (unit.empty()) return 1;
  for (const auto& [name, seconds] : kUnits)
    if (starts_with_ci(name, unit)) return seconds;
  return 0;
}

// What follows "now": nothing, or a sign, a number and perhaps a unit, with blanks anywhere.
std::optional<Instant> parse_offset(std::string_view rest, Instant now) {
  rest = trim(rest);
  if (rest.empty()) return now;
  if (rest.front() != '+' && rest.front() != '-') return std::nullopt;
  std::int64_t sign = rest.front() == '-' ? -1 : 1;
  rest = trim(rest.substr(1));
  std::size_t digits = 0;
  while (digits < rest.size() && is_digit(rest[digits])) ++digits;
  constexpr std::int64_t kMaxSeconds = 100ll * 366 * 86400;
  auto number = parse_integer<std::int64_t>(rest.substr(0, digits));
  std::int64_t unit = unit_seconds(trim(rest.substr(digits)));
  if (!number || unit == 0 || *number > kMaxSeconds / unit) return std::nullopt;
  return now + Duration::seconds(sign * *number * unit);
}

// "2026-11-30T16:00", "2026-11-30-16:00" and "30.11. 16:00 PM" as pieces without blanks inside.
std::vector<std::string> pieces_of(std::string_view text) {
  std::string spaced(text);
  for (std::size_t i = 1; i + 1 < spaced.size(); ++i) {
    bool between = is_digit(spaced[i - 1]) && is_digit(spaced[i + 1]);
    bool dashed = spaced[i] == '-' && i == 10 && spaced[4] == '-' && spaced[7] == '-';
    if (between && (to_upper(spaced[i]) == 'T' || dashed)) spaced[i] = ' ';
    if (is_space(spaced[i])) spaced[i] = ' ';
  }
  std::vector<std::string> pieces;
  for (std::string_view piece : split(spaced, ' ', EmptyPieces::kDrop)) {
    bool half_day = equals_ci(piece, "AM") || equals_ci(piece, "PM");
    if (half_day && !pieces.empty())
      pieces.back() += piece;
    else
      pieces.emplace_back(piece);
  }
  return pieces;
}

CivilTime on_day(const CivilTime& day, const ClockTime& clock, std::int32_t days_later) {
  CivilTime civil = civil_from_days(days_from_civil(day.year, day.month, day.day) + days_later);
  civil.hour = clock.hour;
  civil.minute = clock.minute;
  civil.second = clock.second;
  return civil;
}

class TimeReader {
 public:
  TimeReader(std::string_view text, Instant now, const TimeZone& zone, TimeDirection direction)
      : text_(text), now_(now), zone_(zone), direction_(direction), today_(zone.to_civil(now)) {}

  Result<Instant> read() {
    std::vector<std::string> pieces = pieces_of(text_);
    if (pieces.empty()) return bad_time(text_, text_);
    for (const std::string& piece : pieces)
      if (!take(piece)) return bad_time(text_, piece);
    return combine();
  }

 private:
  bool take(std::string_view piece) {
    constexpr std::pair<std::string_view, std::int32_t> kDays[] = {
        {"yesterday", -1}, {"today", 0}, {"tomorrow", 1}};
    for (const auto& [name, days] : kDays) {
      if (!equals_ci(piece, name)) continue;
      CivilTime day = on_day(today_, {}, days);
      return set_date(Date{day.year, day.month, day.day});
    }
    if (auto clock = parse_clock(piece)) {
      if (clock_) return false;
      clock_ = clock;
      return true;
    }
    auto date = parse_date(piece);
    return date && set_date(*date);
  }
  bool set_date(Date date) {
    if (date_) return false;
    date_ = date;
    return true;
  }

  Result<Instant> combine() const {
    ClockTime clock = clock_.value_or(ClockTime{});
    if (!date_) {
      // The clock hands decide, not the instants: a change of the clock must not skip a day.
      CivilTime civil = on_day(today_, clock, 0);
      if (direction_ == TimeDirection::kFuture && civil <= today_) civil = on_day(today_, clock, 1);
      return zone_.to_instant(civil);
    }
    CivilTime day{date_->year.value_or(today_.year), date_->month, date_->day};
    if (!date_->year && direction_ == TimeDirection::kFuture) {
      if (clock_ ? on_day(day, clock, 0) <= today_ : on_day(day, {23, 59, 59}, 0) < today_)
        ++day.year;
    }
    if (!date_->year && !is_valid_date(day.year, day.month, day.day))
      return invalid(fmt::format("time {}: {} has no February 29th", quote(text_), day.year),
                     "invalid_time_specification");
    return zone_.to_instant(on_day(day, clock, 0));
  }

  std::string_view text_;
  Instant now_;
  const TimeZone& zone_;
  TimeDirection direction_;
  CivilTime today_;
  std::optional<Date> date_;
  std::optional<ClockTime> clock_;
};
}  // namespace

Result<Instant> parse_time(std::string_view text, Instant now, const TimeZone& zone,
                           TimeDirection direction) {
  std::string_view body = trim(text);
  if (starts_with_ci(body, "now")) {
    if (auto instant = parse_offset(body.substr(3), now)) return *instant;
    return bad_time(text, body);
  }
  // Of ten digits until 2286; nine reach back to 1973, and eight are a date.
  constexpr std::int64_t kLatest = 253'402'300'799;  // the end of the year 9999
  std::string_view digits = starts_with_ci(body, "uts") ? body.substr(3) : body;
  if (digits.size() != body.size() || body.size() >= 9) {
    auto seconds = parse_integer<std::int64_t>(digits);
    if (seconds && *seconds >= 0 && *seconds <= kLatest) return Instant::from_ms(*seconds * 1000);
  }
  return TimeReader(body, now, zone, direction).read();
}

}  // namespace tutti
