// The machine's own time zone, and how people read an Instant: Slurm's SLURM_TIME_FORMAT. Only
// programs at the edge (command line, daemons) make a LocalZone.
#pragma once

#include <string>
#include <string_view>

#include "base/civil_time.h"
#include "base/error.h"

namespace tutti {

// As TZ and /etc/localtime say, through the C library. Safe to use from several threads.
class LocalZone final : public TimeZone {
 public:
  LocalZone();  // reads TZ
  CivilTime to_civil(Instant instant) const override;
  Instant to_instant(const CivilTime& civil) const override;
  std::string abbreviation(Instant instant) const override;
};

// A way to print times.
class TimeFormat {
 public:
  TimeFormat() = default;  // "standard": 2026-11-30T20:00:42
  // The value of SLURM_TIME_FORMAT: empty or "standard", "relative" (to `now`: "Ystday 20:00",
  // "20:00:42", "Tomorr 20:00", "Mon 20:00", "30 Nov 20:00", "30 Nov 2026"), or a pattern of
  // strftime(3), "%s" included. Errors: kInvalid for a text without % or of 32 characters or more,
  // which Slurm refuses too.
  static Result<TimeFormat> parse(std::string_view text, Instant now);

  // What an unset time is called ("Unknown", "N/A", "NONE") is the caller's.
  std::string format(Instant instant, const TimeZone& zone) const;

 private:
  std::string pattern_ = "%Y-%m-%dT%H:%M:%S";
  bool relative_ = false;
  Instant now_;
};

// 2026-11-30T20:00:42 in that zone.
std::string format_time(Instant instant, const TimeZone& zone);
// 2026-11-30T20:00:42.123Z.
std::string format_utc_ms(Instant instant);

}  // namespace tutti
