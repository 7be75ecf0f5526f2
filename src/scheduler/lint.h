// Parts of the plan linter. Internal to scheduler/; lint() is in plan.h.
#pragma once

#include <string>
#include <vector>

#include "scheduler/plan.h"

namespace tutti::scheduler {

// At the beginning of each promise, its nodes still have room for it beside all that runs, starts
// or was promised before and has not ended by then.
std::vector<std::string> lint_promises(const PassInput& input, const Plan& plan);

// No start breaks the quota of a queue.
std::vector<std::string> lint_quotas(const PassInput& input, const Plan& plan);

// Who leaves does so for somebody who waits and is to start in the room, once, and elastic gangs
// never go below their minimum.
std::vector<std::string> lint_evictions(const PassInput& input, const Plan& plan);

// A start keeps what its workload demands of the topology (a level, segments).
std::vector<std::string> lint_topology(const PassInput& input, const Workload& workload,
                                       const Start& start);

std::string lint_name(const ElementRef& element);

}  // namespace tutti::scheduler
