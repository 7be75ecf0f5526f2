// Shared by the commands that list: showing help, printing, times, selecting jobs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/index_set.h"
#include "frontend/slurm/command_options.h"
#include "frontend/slurm/squeue_render.h"
#include "frontend/slurm/view_node.h"
#include "frontend/slurm/view_text.h"
#include "model/views.h"

namespace tutti::cli {

// --help, --usage and --version; nothing for kNothing.
std::optional<int> shown(slurm::Show show, std::string_view program);
int print(const slurm::Output& output);
slurm::TimeText times(const TimeZone& zone, Instant now);
// The login names of the uids that the view mentions.
slurm::UserNames user_names(const StateView& view);
std::vector<slurm::JobSelector> selectors(const std::vector<slurm::JobName>& names);
// Comma-separated, encoded for a URL.
std::string joined(const std::vector<std::string>& words);

}  // namespace tutti::cli
