// `tutti controller --state DIR`: the controller in the foreground; what `up` starts.
#pragma once

#include <string>

namespace tutti::cli {

int run_controller(const std::string& state_dir);

}  // namespace tutti::cli
