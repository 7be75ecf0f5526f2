// One readable text for a workload, whatever front end it came from: two requests that mean the
// same print the same. Only what differs from the defaults is printed, one fact a line.
#pragma once

#include <string>

#include "model/api.h"
#include "model/workload.h"

namespace tutti {

std::string canonical_text(const Workload& workload);
std::string canonical_text(const RoleAsk& role);
// Without the environment, which has no short form.
std::string canonical_text(const StepRequest& step);

}  // namespace tutti
