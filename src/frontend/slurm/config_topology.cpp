// topology.conf, as a tree of switches or as blocks, made into labels of the nodes. Source of the
// rules: topology.conf(5). Levels are named "switch0" (the leaves), "switch1"... as Slurm counts
// them; blocks "block", and "block4" for planning blocks of four.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/hostlist.h"
#include "base/text.h"
#include "frontend/slurm/config_parts.h"

namespace tutti::slurm {
namespace {

constexpr std::string_view kCode = "config-topology";
constexpr std::size_t kMostLevels = 16;

struct Switch {
  std::string name;
  Span span;
  std::vector<std::string> nodes, switches;
  std::size_t parent = ~std::size_t{0};
  std::size_t height = 0;  // above the leaves
};

struct Block {
  std::string name;
  Span span;
  std::vector<std::string> nodes;
};

class TopologyFile {
 public:
  explicit TopologyFile(ConfigReading& reading) : reading_(reading) {
    for (const NodeSpec& node : reading.out.spec.nodes) known_.insert(node.name);
    for (const std::string& name : reading.future_nodes) future_.insert(name);
  }

  void read(const ConfigLines& lines) {
    for (const ConfigLine& line : lines.lines) read_line(line);
    file_ = lines.lines.front().words.front().span;
    if (!switches_.empty() && !blocks_.empty()) {
      reading_.error(kCode, file_, "switches and blocks in one file: it describes one of the two");
      return;
    }
    if (switches_.empty() && blocks_.empty()) return;
    if (switches_.empty())
      label_blocks();
    else
      label_switches();
  }

 private:
  void read_line(const ConfigLine& line) {
    const ConfigWord& first = line.words.front();
    if (equals_ci(first.key, "SwitchName"))
      read_switches(line);
    else if (equals_ci(first.key, "BlockName"))
      read_block(line);
    else if (equals_ci(first.key, "BlockSizes"))
      read_sizes(first);
    else
      unknown(first, "SwitchName, BlockName or BlockSizes");
  }

  void unknown(const ConfigWord& word, std::string_view expected) {
    reading_.error("config-unknown-key", word.span,
                   fmt::format("{} is no key of topology.conf here: expected {}", quote(word.key),
                               expected));
  }

  void read_switches(const ConfigLine& line) {
    const ConfigWord& first = line.words.front();
    Switch one;
    one.span = first.span;
    for (std::size_t i = 1; i < line.words.size(); ++i) {
      const ConfigWord& word = line.words[i];
      if (equals_ci(word.key, "Nodes"))
        one.nodes = nodes_of(word);
      else if (equals_ci(word.key, "Switches"))
        one.switches = reading_.hosts(word, word.value);
      else if (!equals_ci(word.key, "LinkSpeed"))
        unknown(word, "Nodes, Switches or LinkSpeed");
    }
    if (one.nodes.empty() == one.switches.empty())
      reading_.error(kCode, first.span,
                     fmt::format("switch {}: expected either Nodes or Switches", first.value));
    for (std::string& name : reading_.hosts(first, first.value)) {
      if (by_name_.contains(name)) {
        reading_.error(kCode, first.span, fmt::format("switch {} is described twice", name));
        continue;
      }
      by_name_[name] = switches_.size();
      one.name = std::move(name);
      switches_.push_back(one);
    }
  }

  void read_block(const ConfigLine& line) {
    const ConfigWord& first = line.words.front();
    Block block{first.value, first.span, {}};
    for (std::size_t i = 1; i < line.words.size(); ++i) {
      const ConfigWord& word = line.words[i];
      if (equals_ci(word.key, "Nodes"))
        block.nodes = nodes_of(word);
      else if (equals_ci(word.key, "BlockSizes"))
        read_sizes(word);
      else
        unknown(word, "Nodes or BlockSizes");
    }
    if (block.nodes.empty())
      reading_.error(kCode, first.span, fmt::format("block {} has no Nodes", block.name));
    if (std::ranges::any_of(blocks_, [&](const Block& b) { return b.name == block.name; }))
      reading_.error(kCode, first.span, fmt::format("block {} is described twice", block.name));
    blocks_.push_back(std::move(block));
  }

  void read_sizes(const ConfigWord& word) {
    sizes_span_ = word.span;
    for (std::string_view piece : split(word.value, ',', EmptyPieces::kDrop)) {
      auto size = parse_integer<std::uint32_t>(trim(piece));
      if (!size || *size == 0) {
        reading_.error("config-value", word.span,
                       fmt::format("BlockSizes: expected numbers of nodes, not {}", quote(piece)));
        return;
      }
      sizes_.push_back(*size);
    }
    std::ranges::sort(sizes_);
  }

  std::vector<std::string> nodes_of(const ConfigWord& word) {
    std::vector<std::string> out;
    for (std::string& name : reading_.hosts(word, word.value)) {
      if (future_.contains(name)) continue;
      if (!known_.contains(name))
        reading_.error(kCode, word.span, fmt::format("Nodes: slurm.conf has no node {}", name));
      else if (!placed_.insert(name).second)
        reading_.error(kCode, word.span, fmt::format("node {} is in two places", name));
      else
        out.push_back(std::move(name));
    }
    return out;
  }

  // Every node has its place, or none of them could be told apart from a mistake.
  void find_missing() {
    std::vector<std::string> missing;
    for (const NodeSpec& node : reading_.out.spec.nodes)
      if (!placed_.contains(node.name)) missing.push_back(node.name);
    if (!missing.empty())
      reading_.error(kCode, file_,
                     fmt::format("the file misses {} of slurm.conf: {}",
                                 missing.size() == 1 ? "a node" : "nodes", fold_hostlist(missing)));
  }

  void label(const std::string& node, const std::string& level, const std::string& domain) {
    labels_[node][level] = domain;
  }
  void write_labels() {
    for (NodeSpec& node : reading_.out.spec.nodes)
      for (auto& [level, domain] : labels_[node.name]) node.labels[level] = domain;
  }

  // Heights from the leaves up; false where switches contain each other.
  bool link() {
    bool good = true;
    for (std::size_t i = 0; i < switches_.size(); ++i) {
      for (const std::string& child : switches_[i].switches) {
        auto at = by_name_.find(child);
        if (at == by_name_.end()) {
          reading_.error(kCode, switches_[i].span,
                         fmt::format("switch {}: there is no switch {}", switches_[i].name, child));
          good = false;
        } else if (switches_[at->second].parent != ~std::size_t{0}) {
          reading_.error(kCode, switches_[i].span,
                         fmt::format("switch {} is below both {} and {}", child,
                                     switches_[switches_[at->second].parent].name,
                                     switches_[i].name));
          good = false;
        } else {
          switches_[at->second].parent = i;
        }
      }
    }
    for (std::size_t i = 0; i < switches_.size() && good; ++i) {
      std::size_t height = 0;
      for (std::size_t up = switches_[i].parent; up != ~std::size_t{0};
           up = switches_[up].parent) {
        if (++height > kMostLevels) {
          reading_.error(kCode, switches_[i].span,
                         fmt::format("switch {} is below itself, or below more than {} others",
                                     switches_[i].name, kMostLevels));
          return false;
        }
        switches_[up].height = std::max(switches_[up].height, height);
      }
    }
    return good;
  }

  void label_switches() {
    find_missing();
    if (!link()) return;
    std::size_t highest = 0;
    for (const Switch& one : switches_) highest = std::max(highest, one.height);
    for (std::size_t level = highest + 1; level-- > 0;)
      reading_.out.spec.topology_levels.push_back(fmt::format("switch{}", level));
    for (std::size_t leaf = 0; leaf < switches_.size(); ++leaf) {
      if (!switches_[leaf].switches.empty()) continue;
      std::size_t at = leaf;
      for (std::size_t level = 0; level <= highest; ++level) {
        // A branch with fewer levels has its last switch stand for those it skips.
        std::size_t up = switches_[at].parent;
        if (up != ~std::size_t{0} && switches_[up].height <= level) at = up;
        for (const std::string& node : switches_[leaf].nodes)
          label(node, fmt::format("switch{}", level), switches_[at].name);
      }
    }
    write_labels();
  }

  void label_blocks() {
    find_missing();
    std::uint32_t base = sizes_.empty() ? 0 : sizes_.front();
    for (const Block& block : blocks_)
      if (base > 0 && block.nodes.size() < base)
        reading_.error(kCode, block.span,
                       fmt::format("block {} has {} nodes, fewer than the base block size of {}",
                                   block.name, block.nodes.size(), base));
    for (std::size_t i = sizes_.size(); i-- > 1;) {
      std::uint32_t times = sizes_[i] / base;
      if (sizes_[i] % base != 0 || (times & (times - 1)) != 0) {
        reading_.error(kCode, sizes_span_,
                       fmt::format("BlockSizes: {} is not {} times a power of two", sizes_[i],
                                   base));
        continue;
      }
      if (times == 1) continue;
      std::string level = fmt::format("block{}", times);
      reading_.out.spec.topology_levels.push_back(level);
      for (std::size_t b = 0; b < blocks_.size(); ++b)
        for (const std::string& node : blocks_[b].nodes)
          label(node, level, fmt::format("{}+", blocks_[b / times * times].name));
    }
    reading_.out.spec.topology_levels.emplace_back("block");
    for (const Block& block : blocks_)
      for (const std::string& node : block.nodes) label(node, "block", block.name);
    write_labels();
  }

  ConfigReading& reading_;
  std::set<std::string> known_, future_, placed_;
  std::vector<Switch> switches_;
  std::map<std::string, std::size_t> by_name_;
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> sizes_;
  Span sizes_span_, file_;
  std::map<std::string, std::map<std::string, std::string>> labels_;
};

}  // namespace

void read_topology_lines(ConfigReading& reading, const ConfigLines& lines) {
  if (lines.lines.empty()) return;
  auto plugin = reading.out.spec.as_given.find("TopologyPlugin");
  if (plugin != reading.out.spec.as_given.end() && !plugin->second.ends_with("tree") &&
      !plugin->second.ends_with("block")) {
    reading.warn("config-unsupported", lines.lines.front().words.front().span,
                 fmt::format("topology.conf is not used with TopologyPlugin={}", plugin->second));
    return;
  }
  TopologyFile(reading).read(lines);
}

}  // namespace tutti::slurm
