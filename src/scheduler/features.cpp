#include "scheduler/features.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/node_constraint.h"
#include "base/text.h"
#include "model/reasons.h"

namespace tutti::scheduler {

namespace {

constexpr std::size_t kMostAlternatives = 64;

// One way to satisfy a constraint: what every node must have, and what so many must have.
struct Way {
  std::vector<const NodeConstraint*> on_all;
  std::vector<const NodeConstraint*> counted;
};

bool only_per_node(const NodeConstraint& constraint) {
  return constraint.kind != NodeConstraint::Kind::kSame && constraint.node_count == 0 &&
         std::all_of(constraint.children.begin(), constraint.children.end(), only_per_node);
}

std::vector<Way> ways_of(const NodeConstraint& constraint) {
  if (constraint.node_count > 0) return {Way{{}, {&constraint}}};
  if (only_per_node(constraint)) return {Way{{&constraint}, {}}};
  std::vector<Way> out;
  if (constraint.kind != NodeConstraint::Kind::kAll) {
    for (const NodeConstraint& child : constraint.children)
      for (Way& way : ways_of(child)) out.push_back(std::move(way));
  } else {
    out.emplace_back();
    for (const NodeConstraint& child : constraint.children) {
      std::vector<Way> longer;
      for (const Way& left : out) {
        for (const Way& right : ways_of(child)) {
          Way both = left;
          both.on_all.insert(both.on_all.end(), right.on_all.begin(), right.on_all.end());
          both.counted.insert(both.counted.end(), right.counted.begin(), right.counted.end());
          longer.push_back(std::move(both));
        }
      }
      out = std::move(longer);
    }
  }
  if (out.size() > kMostAlternatives) out.resize(kMostAlternatives);
  return out;
}

void collect_features(const NodeConstraint& constraint, std::vector<std::string_view>& names) {
  if (constraint.kind == NodeConstraint::Kind::kFeature) names.push_back(constraint.feature);
  for (const NodeConstraint& child : constraint.children) collect_features(child, names);
}

bool has_feature(const ClusterIndex& cluster, const NodeClass& kind, std::string_view name) {
  const auto& features = cluster.spec().nodes[kind.example].features;
  return std::find(features.begin(), features.end(), name) != features.end();
}

NodeSet nodes_with(const ClusterIndex& cluster, const NodeConstraint& constraint) {
  NodeSet out(cluster.size());
  for (const NodeClass& kind : cluster.classes()) {
    auto has = [&](std::string_view name) { return has_feature(cluster, kind, name); };
    if (node_may_serve(constraint, has)) out |= kind.members;
  }
  return out;
}

}  // namespace

Result<std::vector<NodeChoice>> choices_of(const ClusterIndex& cluster, std::string_view text,
                                           const NodeSet& nodes) {
  std::vector<NodeChoice> out;
  if (trim(text).empty()) {
    out.push_back({nodes, {}});
    return out;
  }
  auto constraint = parse_node_constraint(text);
  if (!constraint) return invalid(constraint.error().message, std::string(reason::kInvalidFeature));
  std::vector<std::string_view> names;
  collect_features(*constraint, names);
  for (std::string_view name : names) {
    bool known =
        std::any_of(cluster.classes().begin(), cluster.classes().end(),
                    [&](const NodeClass& kind) { return has_feature(cluster, kind, name); });
    if (!known)
      return invalid(fmt::format("no node has the feature {}", quote(name)),
                     std::string(reason::kInvalidFeature));
  }
  for (const Way& way : ways_of(*constraint)) {
    NodeChoice choice{nodes, {}};
    for (const NodeConstraint* each : way.on_all) choice.nodes &= nodes_with(cluster, *each);
    for (const NodeConstraint* each : way.counted) {
      NodeSet set = nodes_with(cluster, *each);
      set &= choice.nodes;
      choice.counted.push_back({std::move(set), each->node_count});
    }
    out.push_back(std::move(choice));
  }
  return out;
}

}  // namespace tutti::scheduler
