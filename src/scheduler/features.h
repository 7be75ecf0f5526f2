// Which nodes a --constraint leaves: alternatives ("[rack1|rack2]" holds one for the whole job) and
// counts ("fast*2"), resolved to sets of nodes.
#pragma once

#include <string_view>
#include <vector>

#include "base/error.h"
#include "scheduler/need.h"

namespace tutti::scheduler {

// The alternatives in the order written, each within `nodes`. An empty text is one alternative.
// Errors: kInvalid with reason invalid_feature: malformed, or names a feature no node has.
// Cost: O(classes of nodes x features).
Result<std::vector<NodeChoice>> choices_of(const ClusterIndex& cluster, std::string_view text,
                                           const NodeSet& nodes);

}  // namespace tutti::scheduler
