// Points in time as people write them: the grammar of sbatch --begin and --deadline and of sacct
// --starttime and --endtime. Source of the rules: sbatch(1), sacct(1).
#pragma once

#include <cstdint>
#include <string_view>

#include "base/civil_time.h"
#include "base/error.h"

namespace tutti {

// What a time without a date means: the next such time (sbatch), or that time today (sacct).
enum class TimeDirection : std::uint8_t { kFuture, kPast };

// Words in any case:
//   now, now+2hours, now-7days    (s, m, h, d, w and longer; no unit: seconds; a day is 86400 s)
//   today, tomorrow, yesterday
//   midnight, noon, elevenses (11:00), fika (15:00), teatime (16:00)
//   HH:MM[:SS] [AM|PM]
//   MMDDYY, MMDDYYYY, MM/DD, MM/DD/YY[YY], DD.MM, DD.MM.YY[YY], YYYY-MM-DD
//   a date and a time in either order, with a blank, 'T' or (after YYYY-MM-DD) '-' between
//   seconds since 1970, of nine or more digits, or uts and digits
// A date alone is its midnight. A date without a year is the next such day, or, looking back, that
// of this year. Errors: kInvalid, reason "invalid_time_specification", naming the piece.
Result<Instant> parse_time(std::string_view text, Instant now, const TimeZone& zone,
                           TimeDirection direction = TimeDirection::kFuture);

}  // namespace tutti
