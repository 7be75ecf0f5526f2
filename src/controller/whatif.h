// GET /v1/why's counterfactuals and POST /v1/whatif: plans of suppositions, made from a published
// picture in a thread of their own, so that no pass waits for them.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "controller/published.h"
#include "model/whatif.h"
#include "scheduler/whatif.h"

namespace tutti::controller {

scheduler::Supposition suppose(const Published& picture, Instant now);

// Lines such as "with a time limit of 20 min it starts at once on n2 (scontrol update ...)"; each
// was planned. Nothing for what does not wait for room.
std::vector<std::string> cheapest_changes(const Published& picture,
                                          const scheduler::ElementKey& element, const Wait& wait,
                                          Instant now);

// Errors: kInvalid or kNotFound: what the question names that does not exist; all problems at once.
Result<WhatIfReply> what_if(const Published& picture, WhatIfRequest request, Instant now);

}  // namespace tutti::controller
