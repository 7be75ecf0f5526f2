#include "base/time_text.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <random>

#include "base/local_time.h"

namespace tutti {
namespace {
Instant at(std::int32_t year, std::int32_t month, std::int32_t day, std::int32_t hour = 0,
           std::int32_t minute = 0, std::int32_t second = 0) {
  return UtcZone().to_instant({year, month, day, hour, minute, second});
}
// Monday.
const Instant kNow = at(2026, 11, 30, 20, 0, 42);

TEST(CivilTime, AgreesWithTheCLibrary) {
  const unsigned seed = 5;
  std::mt19937_64 random(seed);
  UtcZone utc;
  for (int i = 0; i < 5000; ++i) {
    auto seconds = static_cast<std::int64_t>(random() % 20'000'000'000) - 10'000'000'000;
    std::time_t t = seconds;
    std::tm expected{};
    gmtime_r(&t, &expected);
    CivilTime civil = utc.to_civil(Instant::from_ms(seconds * 1000));
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + std::to_string(seconds));
    ASSERT_EQ(civil, (CivilTime{expected.tm_year + 1900, expected.tm_mon + 1, expected.tm_mday,
                                expected.tm_hour, expected.tm_min, expected.tm_sec}));
    ASSERT_EQ(weekday_of(civil), expected.tm_wday);
    ASSERT_EQ(day_of_year(civil), expected.tm_yday);
    ASSERT_EQ(utc.to_instant(civil).ms(), seconds * 1000);
  }
  EXPECT_TRUE(is_valid_date(2028, 2, 29));
  EXPECT_FALSE(is_valid_date(2026, 2, 29));
  EXPECT_FALSE(is_valid_date(2100, 2, 29));
  EXPECT_FALSE(is_valid_date(2026, 13, 1));
  EXPECT_EQ(format_time(Instant::from_ms(-1), utc), "1969-12-31T23:59:59");
}

TEST(TimeText, BeginTimes) {
  struct Case {
    std::string_view text, future, past;  // past empty: the same
  };
  for (auto [text, future, past] : {Case{"now", "2026-11-30T20:00:42", ""},
                                    Case{"now+2hours", "2026-11-30T22:00:42", ""},
                                    Case{"NOW + 1 day", "2026-12-01T20:00:42", ""},
                                    Case{"now+60", "2026-11-30T20:01:42", ""},
                                    Case{"now-7days", "2026-11-23T20:00:42", ""},
                                    Case{"now+1w", "2026-12-07T20:00:42", ""},
                                    Case{"16:00", "2026-12-01T16:00:00", "2026-11-30T16:00:00"},
                                    Case{"21:30", "2026-11-30T21:30:00", ""},
                                    Case{"9:05:07 PM", "2026-11-30T21:05:07", ""},
                                    Case{"12am", "2026-12-01T00:00:00", "2026-11-30T00:00:00"},
                                    Case{"12:30PM", "2026-12-01T12:30:00", "2026-11-30T12:30:00"},
                                    Case{"today", "2026-11-30T00:00:00", ""},
                                    Case{"tomorrow", "2026-12-01T00:00:00", ""},
                                    Case{"yesterday", "2026-11-29T00:00:00", ""},
                                    Case{"tomorrow 16:00", "2026-12-01T16:00:00", ""},
                                    Case{"noon tomorrow", "2026-12-01T12:00:00", ""},
                                    Case{"teatime", "2026-12-01T16:00:00", "2026-11-30T16:00:00"},
                                    Case{"midnight", "2026-12-01T00:00:00", "2026-11-30T00:00:00"},
                                    Case{"Noon", "2026-12-01T12:00:00", "2026-11-30T12:00:00"},
                                    Case{"122526", "2026-12-25T00:00:00", ""},
                                    Case{"12252026", "2026-12-25T00:00:00", ""},
                                    Case{"12/25", "2026-12-25T00:00:00", ""},
                                    Case{"1/2", "2027-01-02T00:00:00", "2026-01-02T00:00:00"},
                                    Case{"01/20/27", "2027-01-20T00:00:00", ""},
                                    Case{"20.1.2027", "2027-01-20T00:00:00", ""},
                                    Case{"11/30", "2026-11-30T00:00:00", ""},
                                    Case{"2027-01-20", "2027-01-20T00:00:00", ""},
                                    Case{"2027-01-20T12:34", "2027-01-20T12:34:00", ""},
                                    Case{"2027-01-20T12:34:56", "2027-01-20T12:34:56", ""},
                                    Case{"2026-11-30-08:09:10", "2026-11-30T08:09:10", ""},
                                    Case{"2026-11-30 08:09", "2026-11-30T08:09:00", ""},
                                    Case{"1970-01-01-00:00:01", "1970-01-01T00:00:01", ""},
                                    Case{"1796068842", "2026-11-30T20:00:42", ""},
                                    Case{"uts0", "1970-01-01T00:00:00", ""}}) {
    auto read = [&, text = text](TimeDirection direction) {
      auto time = parse_time(text, kNow, UtcZone(), direction);
      return time ? format_time(*time, UtcZone()) : time.error().message;
    };
    EXPECT_EQ(read(TimeDirection::kFuture), future) << text;
    EXPECT_EQ(read(TimeDirection::kPast), past.empty() ? future : past) << text;
  }
}

TEST(TimeText, RefusalsNameThePiece) {
  for (std::string_view bad : {"never",
                               "",
                               "now+",
                               "now*2",
                               "now+2lightyears",
                               "nowish",
                               "25:00",
                               "12:60",
                               "13:00PM",
                               "0am",
                               "2026-02-29",
                               "2026-13-01",
                               "133026",
                               "16",
                               "16:00 17:00",
                               "today tomorrow",
                               "1:2:3:4",
                               "2026-11-30T",
                               "2026-11-30T25:00",
                               "now+99999999999999999999",
                               "12345",
                               "12/25/2026/1"}) {
    auto time = parse_time(bad, kNow, UtcZone());
    ASSERT_FALSE(time) << bad;
    EXPECT_EQ(time.error().reason, "invalid_time_specification");
    EXPECT_NE(time.error().message.find("time \"" + std::string(bad)), std::string::npos);
  }
  EXPECT_NE(parse_time("tomorrow 25:00", kNow, UtcZone()).error().message.find("not \"25:00\""),
            std::string::npos);
}

// Sets TZ for one test.
class InZone {
 public:
  explicit InZone(const char* name) {
    if (const char* old = std::getenv("TZ")) old_ = old;
    setenv("TZ", name, 1);
  }
  ~InZone() {
    if (old_)
      setenv("TZ", old_->c_str(), 1);
    else
      unsetenv("TZ");
    tzset();
  }

 private:
  std::optional<std::string> old_;
};

// The rule of Europe/Berlin since 1996, written out so that no time zone data is needed.
constexpr const char* kBerlin = "CET-1CEST,M3.5.0,M10.5.0/3";

TEST(LocalTime, AcrossTheChangesOfTheClock) {
  InZone zone_set(kBerlin);
  LocalZone berlin;
  // Sunday 2026-03-29, 02:00 becomes 03:00: from the evening before to noon is not 15 but 14 hours.
  Instant evening = at(2026, 3, 28, 20);  // 21:00 CET
  EXPECT_EQ(format_time(evening, berlin), "2026-03-28T21:00:00");
  auto noon = parse_time("tomorrow 12:00", evening, berlin).value();
  EXPECT_EQ(noon, at(2026, 3, 29, 10));
  EXPECT_EQ((noon - evening).whole_seconds(), 14 * 3600);
  EXPECT_EQ(format_time(parse_time("now+1day", evening, berlin).value(), berlin),
            "2026-03-29T22:00:00");
  // 02:30 does not exist that day: one of its neighbours, within the hour.
  Instant missing = parse_time("2026-03-29T02:30", evening, berlin).value();
  EXPECT_GE(missing, at(2026, 3, 29, 0, 30));
  EXPECT_LE(missing, at(2026, 3, 29, 1, 30));
  // Sunday 2026-10-25, 03:00 becomes 02:00: the day has 25 hours.
  auto before = parse_time("2026-10-25", evening, berlin).value();
  auto after = parse_time("2026-10-26", evening, berlin).value();
  EXPECT_EQ((after - before).whole_seconds(), 25 * 3600);
  // 02:30, the first of two; the time 02:45 is later today, whichever is meant.
  Instant twice = at(2026, 10, 25, 0, 30);
  EXPECT_EQ(format_time(parse_time("02:45", twice, berlin).value(), berlin), "2026-10-25T02:45:00");
  EXPECT_EQ(format_time(parse_time("02:15", twice, berlin).value(), berlin), "2026-10-26T02:15:00");
  EXPECT_EQ(berlin.offset_seconds(evening), 3600);
  EXPECT_EQ(berlin.abbreviation(noon), "CEST");
}

TEST(LocalTime, FormatsAsSlurmTimeFormat) {
  InZone zone_set(kBerlin);
  LocalZone berlin;
  auto format = [&](std::string_view text, Instant instant, const TimeZone& zone) {
    return TimeFormat::parse(text, kNow).value().format(instant, zone);
  };
  EXPECT_EQ(format("", kNow, UtcZone()), "2026-11-30T20:00:42");
  EXPECT_EQ(format("standard", kNow, berlin), "2026-11-30T21:00:42");
  EXPECT_EQ(format("%s", kNow, UtcZone()), "1796068842");
  EXPECT_EQ(format("%s", kNow, berlin), "1796068842");
  EXPECT_EQ(format("%a %d.%m. %H:%M %z %Z", kNow, berlin), "Mon 30.11. 21:00 +0100 CET");
  EXPECT_EQ(format("100%%s", kNow, berlin), "100%s");
  auto relative = [&](Duration shift) { return format("relative", kNow + shift, UtcZone()); };
  EXPECT_EQ(relative({}), "20:00:42");
  EXPECT_EQ(relative(Duration::seconds(-86400)), "Ystday 20:00");
  EXPECT_EQ(relative(Duration::seconds(86400)), "Tomorr 20:00");
  EXPECT_EQ(relative(Duration::seconds(3 * 86400)), "Thu 20:00");
  EXPECT_EQ(relative(Duration::seconds(-10 * 86400)), "20 Nov 20:00");
  EXPECT_EQ(relative(Duration::seconds(-400 * 86400)), "26 Oct 2025");
  EXPECT_FALSE(TimeFormat::parse("plain", kNow));
  EXPECT_FALSE(TimeFormat::parse(std::string(32, '%'), kNow));
  EXPECT_EQ(format_utc_ms(Instant::from_ms(1796068842123)), "2026-11-30T20:00:42.123Z");
}
}  // namespace
}  // namespace tutti
