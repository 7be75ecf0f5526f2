#include "scheduler/topology.h"

#include <algorithm>
#include <map>

namespace tutti::scheduler {

Topology::Topology(const ClusterSpec& spec) {
  levels_.resize(spec.topology_levels.size());
  for (std::size_t l = 0; l < levels_.size(); ++l) {
    Level& level = levels_[l];
    const Level* wider = l > 0 ? &levels_[l - 1] : nullptr;
    level.name = spec.topology_levels[l];
    level.domain_of.assign(spec.nodes.size(), kNoDomain);
    std::map<std::pair<std::uint32_t, std::string_view>, std::uint32_t> known;
    for (NodeIndex node = 0; node < spec.nodes.size(); ++node) {
      const std::uint32_t parent = wider ? wider->domain_of[node] : kNoDomain;
      if (wider && parent == kNoDomain) continue;
      auto label = spec.nodes[node].labels.find(spec.topology_levels[l]);
      if (label == spec.nodes[node].labels.end() || label->second.empty()) continue;
      std::uint32_t domain = kNoDomain;
      // Neighbours mostly lie together.
      if (node > 0) domain = level.domain_of[node - 1];
      if (domain == kNoDomain || level.domains[domain].name != label->second ||
          level.domains[domain].parent != parent) {
        auto [at, fresh] = known.try_emplace({parent, label->second},
                                             static_cast<std::uint32_t>(level.domains.size()));
        if (fresh) level.domains.push_back({label->second, parent, {}});
        domain = at->second;
      }
      level.domain_of[node] = domain;
      level.domains[domain].nodes.push_back(node);
    }
  }
}

std::optional<std::uint32_t> Topology::level(std::string_view name) const {
  auto at = std::find_if(levels_.begin(), levels_.end(),
                         [&](const Level& level) { return level.name == name; });
  if (at == levels_.end()) return std::nullopt;
  return static_cast<std::uint32_t>(at - levels_.begin());
}

std::uint32_t Topology::narrowest_of(std::uint32_t nodes) const {
  for (std::uint32_t l = static_cast<std::uint32_t>(levels_.size()); l-- > 1;)
    if (std::any_of(levels_[l].domains.begin(), levels_[l].domains.end(),
                    [&](const Domain& domain) { return domain.nodes.size() >= nodes; }))
      return l;
  return 0;
}

}  // namespace tutti::scheduler
