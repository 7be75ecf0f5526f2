#include "frontend/slurm/view_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hostlist.h"

namespace tutti::slurm {
namespace {

constexpr std::int64_t kDay = 86400;

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

constexpr std::string_view kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
constexpr std::string_view kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};

CivilTime civil_of(std::int64_t local_seconds) {
  std::int64_t days = floor_div(local_seconds, kDay);
  CivilTime c = civil_from_days(days);
  auto rest = static_cast<std::int32_t>(local_seconds - days * kDay);
  c.hour = rest / 3600;
  c.minute = rest / 60 % 60;
  c.second = rest % 60;
  return c;
}

}  // namespace

TimeText::TimeText(const TimeZone& zone, std::string_view format, Instant now)
    : zone_(&zone), now_(now) {
  if (format.empty() || format == "standard") return;
  if (auto parsed = TimeFormat::parse(format, now)) format_ = *std::move(parsed);
}

std::int64_t TimeText::offset_at(std::int64_t seconds) const {
  if (!zone_) return 0;
  // Offsets change at whole quarters of an hour, so one answer holds for the quarter.
  std::int64_t quarter = floor_div(seconds, 900);
  if (quarter != cached_quarter_) {
    cached_offset_ = zone_->offset_seconds(Instant::from_ms(seconds * 1000));
    cached_quarter_ = quarter;
  }
  return cached_offset_;
}

void TimeText::append(std::string& out, Instant at, std::string_view unset) const {
  if (!at.is_set() || at >= Instant::never()) {
    out += unset;
    return;
  }
  if (format_ && zone_) {
    out += format_->format(at, *zone_);
    return;
  }
  std::int64_t seconds = at.whole_seconds();
  CivilTime c = civil_of(seconds + offset_at(seconds));
  fmt::format_to(std::back_inserter(out), "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", c.year, c.month,
                 c.day, c.hour, c.minute, c.second);
}

std::string TimeText::text(Instant at, std::string_view unset) const {
  std::string out;
  append(out, at, unset);
  return out;
}

std::string TimeText::ctime(Instant at) const {
  std::int64_t seconds = at.whole_seconds();
  CivilTime c = civil_of(seconds + offset_at(seconds));
  return fmt::format(
      "{} {} {:2} {:02}:{:02}:{:02} {}", kDays[static_cast<std::size_t>(weekday_of(c))],
      kMonths[static_cast<std::size_t>(c.month - 1)], c.day, c.hour, c.minute, c.second, c.year);
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
