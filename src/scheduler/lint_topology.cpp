// Whether a start keeps what its workload demands of the topology. Counts labels itself.
#include <fmt/format.h>

#include <map>
#include <set>

#include "scheduler/lint.h"

namespace tutti::scheduler {

namespace {

// The values of the level and of all wider ones; "" where one is missing.
std::string domain_of(const ClusterSpec& spec, NodeIndex node, const std::string& level) {
  std::string out;
  for (const std::string& each : spec.topology_levels) {
    auto label = spec.nodes[node].labels.find(each);
    if (label == spec.nodes[node].labels.end()) return "";
    out += label->second + "/";
    if (each == level) break;
  }
  return out;
}

}  // namespace

std::vector<std::string> lint_topology(const PassInput& input, const Workload& workload,
                                       const Start& start) {
  std::vector<std::string> findings;
  const ClusterSpec& spec = *input.state.spec;
  const TopologyAsk& asked = workload.extras->terms.topology;
  std::set<NodeIndex> nodes;
  for (const Slot& slot : start.slots)
    if (slot.node < spec.nodes.size()) nodes.insert(slot.node);
  if (nodes.size() < 2) return findings;
  if (!asked.required.empty()) {
    std::set<std::string> domains;
    for (NodeIndex node : nodes) domains.insert(domain_of(spec, node, asked.required));
    if (domains.size() > 1 || domains.contains(""))
      findings.push_back(fmt::format("{} starts in {} domains of level {}",
                                     lint_name(start.element), domains.size(), asked.required));
  }
  if (asked.segment > 1 && !spec.topology_levels.empty()) {
    // Where even the widest level of segments does not come out, no narrower one does.
    std::map<std::string, std::size_t> counts;
    for (NodeIndex node : nodes) ++counts[domain_of(spec, node, spec.topology_levels.front())];
    for (const auto& [domain, count] : counts)
      if (count % asked.segment != 0)
        findings.push_back(fmt::format("{} has {} nodes in {}, not segments of {}",
                                       lint_name(start.element), count, domain, asked.segment));
  }
  return findings;
}

}  // namespace tutti::scheduler
