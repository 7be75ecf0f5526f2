// The Slurm commands' view of the process they run in: environment, directory, user, limits, clock.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/local_time.h"
#include "frontend/slurm/client_context.h"
#include "frontend/slurm/error_text.h"

namespace tutti::cli {

// Of this process, now. `zone` must live as long as the result.
slurm::ClientContext client_context(const TimeZone& zone);
Instant wall_clock();
// Prints the text on stderr and returns the exit code.
int finish(const slurm::CommandError& error);
void print_out(std::string_view text);
void print_err(std::string_view text);

}  // namespace tutti::cli
