// scontrol show topology: the switches or blocks, the leaves first.
#include <fmt/format.h>

#include <algorithm>

#include "base/hostlist.h"
#include "frontend/slurm/scontrol_show.h"

namespace tutti::slurm {
namespace {

struct Shown {
  std::string name;
  std::vector<std::string> nodes, below;
};

std::vector<Shown> domains_of(const StateView& view, const std::string& level,
                              const std::string* narrower) {
  std::vector<Shown> out;
  for (const NodeView& node : view.nodes) {
    auto label = node.spec.labels.find(level);
    if (label == node.spec.labels.end()) continue;
    auto at = std::ranges::find(out, label->second, &Shown::name);
    if (at == out.end()) {
      out.push_back(Shown{label->second, {}, {}});
      at = out.end() - 1;
    }
    at->nodes.push_back(node.spec.name);
    if (!narrower) continue;
    auto below = node.spec.labels.find(*narrower);
    if (below == node.spec.labels.end()) continue;
    if (std::ranges::find(at->below, below->second) == at->below.end())
      at->below.push_back(below->second);
  }
  return out;
}

}  // namespace

Output show_topology(const StateView& view, std::string_view name) {
  if (!view.spec || view.spec->topology_levels.empty())
    return {"", "slurm_load_topo error: the cluster has no topology\n", 1};
  const std::vector<std::string>& levels = view.spec->topology_levels;
  std::string text;
  for (std::size_t l = levels.size(); l-- > 0;) {
    const std::string* narrower = l + 1 < levels.size() ? &levels[l + 1] : nullptr;
    bool blocks = levels[l].starts_with("block");
    std::size_t index = 0;
    for (const Shown& one : domains_of(view, levels[l], narrower)) {
      // A switch that stands for a level it has not was told already.
      if (one.below.size() == 1 && one.below[0] == one.name) continue;
      const bool asked = name.empty() || one.name == name ||
                         std::ranges::find(one.nodes, name) != one.nodes.end();
      if (asked && blocks)
        text += fmt::format("BlockName={} BlockIndex={} Nodes={} BlockSize={}\n", one.name, index,
                            fold_hostlist(one.nodes), one.nodes.size());
      else if (asked)
        text += fmt::format("SwitchName={} Level={} LinkSpeed=1 Nodes={}{}\n", one.name,
                            levels.size() - 1 - l, fold_hostlist(one.nodes),
                            narrower ? " Switches=" + fold_hostlist(one.below) : "");
      ++index;
    }
  }
  if (text.empty())
    return {"", fmt::format("Topology information contains no switch, block or node named {}\n",
                            name), 1};
  return {text, "", 0};
}

}  // namespace tutti::slurm
