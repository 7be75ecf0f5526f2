#include "base/decay.h"

#include "base/civil_time.h"
#include "base/wide.h"

namespace tutti {

namespace {

constexpr int kBits = 48;  // of the fraction of a half-life

// 2^(-2^-k) for k = 1, 2, ... in 2^-64.
constexpr std::array<std::uint64_t, kBits> kRoots{
    0xb504f333f9de6484,
    0xd744fccad69d6af4,
    0xeac0c6e7dd24392f,
    0xf5257d152486cc2c,
    0xfa83b2db722a033a,
    0xfd3e0c0cf486c175,
    0xfe9e115c7b8f884c,
    0xff4ecb59511ec8a5,
    0xffa756521c8daed2,
    0xffd3a751c0f7e10c,
    0xffe9d2b2f7db2756,
    0xfff4e91bff1b8c3e,
    0xfffa747ea0040664,
    0xfffd3a3b7814eb54,
    0xfffe9d1cc60ddab1,
    0xffff4e8e25879bfa,
    0xffffa7470363f451,
    0xffffd3a37dda0313,
    0xffffe9d1bdf703af,
    0xfffff4e8debe025e,
    0xfffffa746f4fa150,
    0xfffffd3a37a3f8b0,
    0xfffffe9d1bd1065a,
    0xffffff4e8de845ae,
    0xffffffa746f41377,
    0xffffffd3a37a05e4,
    0xffffffe9d1bd01fc,
    0xfffffff4e8de80c0,
    0xfffffffa746f4051,
    0xfffffffd3a37a025,
    0xfffffffe9d1bd011,
    0xffffffff4e8de808,
    0xffffffffa746f404,
    0xffffffffd3a37a02,
    0xffffffffe9d1bd01,
    0xfffffffff4e8de81,
    0xfffffffffa746f40,
    0xfffffffffd3a37a0,
    0xfffffffffe9d1bd0,
    0xffffffffff4e8de8,
    0xffffffffffa746f4,
    0xffffffffffd3a37a,
    0xffffffffffe9d1bd,
    0xfffffffffff4e8df,
    0xfffffffffffa746f,
    0xfffffffffffd3a38,
    0xfffffffffffe9d1c,
    0xffffffffffff4e8e,
};
constexpr std::uint64_t kInverseLn2 = 0xb8aa3b295c17f0bb;  // 1 / ln 2 in 2^-63

}  // namespace

Fade::Fade(Duration time, Duration half_life) {
  if (half_life.ms() <= 0 || half_life.is_infinite() || time.ms() <= 0) return;
  const auto ms = static_cast<std::uint64_t>(time.ms());
  const auto half = static_cast<std::uint64_t>(half_life.ms());
  halvings_ = ms / half > 64 ? 65 : static_cast<std::uint32_t>(ms / half);
  const auto part = static_cast<std::uint64_t>((Wide{ms % half} << kBits) / half);
  for (int k = 0; k < kBits; ++k) {
    if (!(part >> (kBits - 1 - k) & 1)) continue;
    const std::uint64_t root = kRoots[static_cast<std::size_t>(k)];
    fraction_ = fraction_ == 0 ? root : static_cast<std::uint64_t>(Wide{fraction_} * root >> 64);
  }
}

std::uint64_t Fade::of(std::uint64_t amount) const {
  if (halvings_ >= 64) return 0;
  const std::uint64_t part =
      fraction_ == 0 ? amount : static_cast<std::uint64_t>(Wide{amount} * fraction_ >> 64);
  return part >> halvings_;
}

std::uint64_t faded_time(Duration time, Duration half_life) {
  if (time.ms() <= 0) return 0;
  if (half_life.ms() <= 0 || half_life.is_infinite()) return static_cast<std::uint64_t>(time.ms());
  // What has faded of one unit, in 2^-62.
  const std::uint64_t gone = kMostUsage - Fade(time, half_life).of(kMostUsage);
  const auto span = static_cast<std::uint64_t>(Wide{static_cast<std::uint64_t>(half_life.ms())} *
                                                   kInverseLn2 >> 43);  // ms in 2^-20
  const Wide ms = Wide{span} * gone;
  return static_cast<std::uint64_t>((ms + (Wide{1} << 81)) >> 82);
}

std::int64_t usage_period(ResetPeriod period, Instant at) {
  return period == ResetPeriod::kNone || period == ResetPeriod::kNow
             ? 0
             : period_start(period, at).whole_seconds() / 86400 + 1;
}

Instant period_start(ResetPeriod period, Instant at) {
  if (period == ResetPeriod::kNone || period == ResetPeriod::kNow) return {};
  const std::int64_t day = at.whole_seconds() / 86400;
  auto midnight = [](std::int64_t days) { return Instant::from_ms(days * 86'400'000); };
  if (period == ResetPeriod::kDaily) return midnight(day);
  if (period == ResetPeriod::kWeekly) return midnight(day - (day + 4) % 7);  // 1970-01-01: Thursday
  CivilTime date = civil_from_days(day);
  if (period == ResetPeriod::kQuarterly) date.month = (date.month - 1) / 3 * 3 + 1;
  if (period == ResetPeriod::kYearly) date.month = 1;
  return midnight(days_from_civil(date.year, date.month, 1));
}

}  // namespace tutti
