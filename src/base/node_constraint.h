// Which features a job's nodes must have: the grammar of --constraint, as a small tree. Source of
// the rules: sbatch(1) --constraint.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tutti {

struct NodeConstraint {
  enum class Kind : std::uint8_t {
    kFeature,  // the node has `feature`
    kAll,      // every child holds: a&b
    kAny,      // some child holds: a|b
    kSame,     // the same child holds on all nodes of the job: [rack1|rack2]
  };
  Kind kind = Kind::kFeature;
  std::string feature;           // of kFeature
  std::uint32_t node_count = 0;  // a*4: on that many nodes of the job; 0: on all of them
  std::vector<NodeConstraint> children;
  friend bool operator==(const NodeConstraint&, const NodeConstraint&) = default;
};

// "a&b", "a|b", "[a|b]", "a*4", "(a|b)&c", "[(a&b)*2&c*1]"; & and | are read from left to right
// without precedence, as Slurm does. Feature names are letters, digits and _ . - = + : /
// characters. Errors: kInvalid, reason "invalid_constraint", with the position; also for nesting
// over 16.
Result<NodeConstraint> parse_node_constraint(std::string_view text);

// The same constraint with no more parentheses than needed; parsing it gives an equal tree.
std::string to_string(const NodeConstraint& constraint);

// Whether one node, of which `has_feature` tells, can serve the constraint, leaving aside what
// only several nodes together decide (a count, "the same on all": both are read as "or" here).
bool node_may_serve(const NodeConstraint& constraint,
                    const std::function<bool(std::string_view)>& has_feature);

}  // namespace tutti
