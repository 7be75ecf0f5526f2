// Slurm's time limits and run times as text. Source of the rules: sbatch(1) --time, and the output
// of Slurm 22.05.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "base/time.h"

namespace tutti {

// "M", "M:S", "H:M:S", "D-H", "D-H:M" or "D-H:M:S", exactly as written; fields may pass 59.
// "UNLIMITED", "INFINITE" (any case) and "-1" are Duration::infinite().
// Errors: kInvalid, reason "invalid_time".
Result<Duration> parse_duration(std::string_view text);
// As parse_duration(), rounded up to whole minutes, and 0 means no limit: what sbatch -t does.
Result<Duration> parse_time_limit(std::string_view text);

// "[D-]HH:MM:SS" (scontrol, sacct); "UNLIMITED" when infinite. Whole seconds, cut. A negative
// duration prints as 0.
std::string format_duration(Duration duration);
// squeue's: "0:37", "1:59:23", "7-00:00:00", "UNLIMITED".
std::string format_duration_short(Duration duration);

}  // namespace tutti
