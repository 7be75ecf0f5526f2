#include "frontend/slurm/view_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "base/hostlist.h"

namespace tutti::slurm {
namespace {

constexpr std::int64_t kDay = 86400;

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// Broken-down time of seconds that already count local time.
std::tm civil(std::int64_t local_seconds) {
  std::int64_t days = floor_div(local_seconds, kDay);
  std::int64_t rest = local_seconds - days * kDay;
  // Days to year, month, day: the era of 400 years has 146097 days, counted from 0000-03-01.
  std::int64_t z = days + 719468;
  std::int64_t era = floor_div(z, 146097);
  std::int64_t day_of_era = z - era * 146097;
  std::int64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  std::int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  std::int64_t shifted_month = (5 * day_of_year + 2) / 153;
  std::tm t{};
  t.tm_mday = static_cast<int>(day_of_year - (153 * shifted_month + 2) / 5 + 1);
  t.tm_mon = static_cast<int>(shifted_month < 10 ? shifted_month + 2 : shifted_month - 10);
  t.tm_year = static_cast<int>(year_of_era + era * 400 + (t.tm_mon < 2 ? 1 : 0) - 1900);
  t.tm_hour = static_cast<int>(rest / 3600);
  t.tm_min = static_cast<int>(rest / 60 % 60);
  t.tm_sec = static_cast<int>(rest % 60);
  t.tm_wday = static_cast<int>(((days + 4) % 7 + 7) % 7);
  static constexpr int kBefore[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
  int year = t.tm_year + 1900;
  bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  t.tm_yday = kBefore[t.tm_mon] + t.tm_mday - 1 + (leap && t.tm_mon > 1 ? 1 : 0);
  return t;
}

constexpr std::string_view kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
constexpr std::string_view kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};

std::string relative_text(std::int64_t at_local, std::int64_t now_local) {
  std::tm t = civil(at_local);
  std::int64_t day = floor_div(at_local, kDay) - floor_div(now_local, kDay);
  if (day == 0) return fmt::format("{:02}:{:02}:{:02}", t.tm_hour, t.tm_min, t.tm_sec);
  if (day == -1) return fmt::format("Ystday {:02}:{:02}", t.tm_hour, t.tm_min);
  if (day == 1) return fmt::format("Tomorr {:02}:{:02}", t.tm_hour, t.tm_min);
  if (day > -6 && day < 6)
    return fmt::format("{} {:02}:{:02}", kDays[t.tm_wday], t.tm_hour, t.tm_min);
  if (t.tm_year == civil(now_local).tm_year)
    return fmt::format("{} {} {:02}:{:02}", t.tm_mday, kMonths[t.tm_mon], t.tm_hour, t.tm_min);
  return fmt::format("{} {} {}", t.tm_mday, kMonths[t.tm_mon], t.tm_year + 1900);
}

}  // namespace

TimeText::TimeText(UtcOffset offset, std::string format, Instant now)
    : offset_(std::move(offset)), format_(std::move(format)), now_(now) {
  if (format_ == "%s") {
    style_ = Style::kEpoch;
  } else if (format_ == "relative") {
    style_ = Style::kRelative;
  } else if (format_.find('%') != std::string::npos) {
    style_ = Style::kCustom;
  }
}

std::int32_t TimeText::offset_at(std::int64_t seconds) const {
  if (!offset_) return 0;
  // Offsets change at whole quarters of an hour, so one answer holds for the quarter.
  std::int64_t quarter = floor_div(seconds, 900);
  if (quarter != cached_quarter_) {
    cached_offset_ = offset_(seconds);
    cached_quarter_ = quarter;
  }
  return cached_offset_;
}

void TimeText::append(std::string& out, Instant at, std::string_view unset) const {
  if (!at.is_set() || at >= Instant::never()) {
    out += unset;
    return;
  }
  std::int64_t seconds = at.whole_seconds();
  if (style_ == Style::kEpoch) {
    fmt::format_to(std::back_inserter(out), "{}", seconds);
    return;
  }
  std::int64_t local = seconds + offset_at(seconds);
  if (style_ == Style::kRelative) {
    std::int64_t now = now_.whole_seconds();
    out += relative_text(local, now + offset_at(now));
    return;
  }
  std::tm t = civil(local);
  if (style_ == Style::kCustom) {
    char buffer[256];
    out.append(buffer, std::strftime(buffer, sizeof buffer, format_.c_str(), &t));
    return;
  }
  fmt::format_to(std::back_inserter(out), "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", t.tm_year + 1900,
                 t.tm_mon + 1, t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec);
}

std::string TimeText::text(Instant at, std::string_view unset) const {
  std::string out;
  append(out, at, unset);
  return out;
}

std::string TimeText::ctime(Instant at) const {
  std::int64_t seconds = at.whole_seconds();
  std::tm t = civil(seconds + offset_at(seconds));
  return fmt::format("{} {} {:2} {:02}:{:02}:{:02} {}", kDays[t.tm_wday], kMonths[t.tm_mon],
                     t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec, t.tm_year + 1900);
}

std::string_view cut_utf8(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  std::size_t end = bytes;
  // A byte 10xxxxxx continues the character before it.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

void append_cell(std::string& out, std::string_view value, CellShape shape) {
  if (shape.width == 0) {
    out += value;
    return;
  }
  std::string_view shown = cut_utf8(value, shape.width);
  std::size_t blanks = shape.width - shown.size();
  bool cut = shown.size() < value.size();
  if (shape.right && !cut) out.append(blanks, ' ');
  out += shown;
  if (!shape.right || cut) out.append(blanks, ' ');
}

std::string memory_text(std::uint64_t mib) {
  if (mib == 0) return "0";
  constexpr std::string_view kUnits = "MGTPE";
  std::size_t unit = 0;
  // Slurm goes up a unit as long as no more than a half of it is lost.
  double value = static_cast<double>(mib);
  std::uint64_t whole = mib;
  bool half = false;
  while (unit + 1 < kUnits.size() && !half && whole >= 1024 && whole % 512 == 0) {
    half = whole % 1024 != 0;
    value /= 1024;
    whole /= 1024;
    ++unit;
  }
  return half ? fmt::format("{:.2f}{}", value, kUnits[unit])
              : fmt::format("{}{}", whole, kUnits[unit]);
}

std::string memory_text(std::uint64_t mib, Units units) {
  if (units == Units::kConvert || mib == 0) return memory_text(mib);
  return fmt::format("{}M", mib);
}

std::string fold_nodes(const std::vector<std::string>& names) {
  if (names.size() == 1) return names.front();
  return fold_hostlist(names, FoldOrder::kSorted);
}

std::string index_list(const std::vector<std::uint16_t>& indices, std::string_view none) {
  if (indices.empty()) return std::string(none);
  std::string out;
  for (std::size_t i = 0; i < indices.size();) {
    std::size_t j = i;
    while (j + 1 < indices.size() && indices[j + 1] == indices[j] + 1) ++j;
    if (!out.empty()) out += ',';
    if (i == j)
      fmt::format_to(std::back_inserter(out), "{}", indices[i]);
    else
      fmt::format_to(std::back_inserter(out), "{}-{}", indices[i], indices[j]);
    i = j + 1;
  }
  return out;
}

}  // namespace tutti::slurm
