// Lines NodeName= and NodeSet= of slurm.conf.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "frontend/slurm/config_parts.h"

namespace tutti::slurm {
namespace {

struct NodeTemplate {
  std::optional<std::uint32_t> cpus, sockets, cores_per_socket, threads_per_core, boards;
  std::uint64_t memory_mib = 1;
  std::vector<Gres> gres;
  std::vector<std::string> features;
  std::uint32_t weight = 1;
  std::string state = "unknown", reason, address;
  Span gres_span, state_span, cpus_span, address_span;
};

void read_gres(ConfigReading& reading, const ConfigWord& word, NodeTemplate& node) {
  auto list = parse_gres_list(word.value);
  if (!list) {
    reading.error("config-value", word.span, fmt::format("Gres: {}", list.error().message));
    return;
  }
  for (const Gres& one : *list)
    if (std::ranges::find(reading.gres_types, lower(one.name)) == reading.gres_types.end())
      reading.error("config-gres", word.span,
                    fmt::format("Gres: {} is not among GresTypes={}", one.name,
                                join(reading.gres_types, ",")));
  node.gres = std::move(*list);
  node.gres_span = word.span;
}

void set_node_word(ConfigReading& reading, std::string_view key, const ConfigWord& word,
                   NodeTemplate& node) {
  auto number = [&](std::optional<std::uint32_t>& target) {
    auto value = reading.number(word);
    if (value && *value == 0)
      reading.error("config-value", word.span, fmt::format("{}: must be at least 1", word.key));
    else if (value)
      target = *value;
  };
  if (key == "CPUs" || key == "Procs") {
    number(node.cpus);
    node.cpus_span = word.span;
  } else if (key == "Sockets" || key == "SocketsPerBoard") {
    number(node.sockets);
  } else if (key == "Boards") {
    number(node.boards);
  } else if (key == "CoresPerSocket") {
    number(node.cores_per_socket);
  } else if (key == "ThreadsPerCore") {
    number(node.threads_per_core);
  } else if (key == "RealMemory") {
    if (auto value = reading.megabytes(word)) node.memory_mib = std::max<std::uint64_t>(*value, 1);
  } else if (key == "Gres") {
    read_gres(reading, word, node);
  } else if (key == "Feature" || key == "Features") {
    node.features.clear();
    for (std::string_view one : split(word.value, ',', EmptyPieces::kDrop))
      node.features.emplace_back(trim(one));
  } else if (key == "Weight") {
    if (auto value = reading.number(word)) node.weight = *value;
  } else if (key == "State") {
    node.state = lower(word.value);
    node.state_span = word.span;
  } else if (key == "Reason") {
    node.reason = word.value;
  } else if (key == "NodeAddr") {
    node.address = word.value;
    node.address_span = word.span;
  }
}

// Sockets, cores and threads from what is given, as slurmd checks them: CPUs are threads or cores.
void set_cpus(ConfigReading& reading, const NodeTemplate& from, const Span& span, NodeSpec& node) {
  node.threads_per_core = from.threads_per_core.value_or(1);
  node.cores_per_socket = from.cores_per_socket.value_or(1);
  node.sockets = from.sockets.value_or(1) * from.boards.value_or(1);
  std::uint64_t cores = std::uint64_t{node.sockets} * node.cores_per_socket;
  std::uint64_t threads = cores * node.threads_per_core;
  if (!from.cpus) {
    node.cpus = static_cast<std::uint32_t>(std::min<std::uint64_t>(threads, 65535));
    return;
  }
  node.cpus = *from.cpus;
  bool shaped = from.sockets || from.cores_per_socket || from.threads_per_core || from.boards;
  if (!shaped) {
    node.sockets = node.cpus;
  } else if (!from.sockets && !from.boards &&
             node.cpus % (node.cores_per_socket * node.threads_per_core) == 0) {
    node.sockets = node.cpus / (node.cores_per_socket * node.threads_per_core);
  } else if (node.cpus != threads && node.cpus != cores) {
    reading.error(
        "config-node", from.cpus_span.line ? from.cpus_span : span,
        fmt::format("CPUs={} does not fit {} sockets x {} cores x {} threads = {}", node.cpus,
                    node.sockets, node.cores_per_socket, node.threads_per_core, threads));
  }
  if (node.cpus > 65535) reading.error("config-node", span, "a node has at most 65535 CPUs");
}

// False for a node that is not to be.
bool set_state(ConfigReading& reading, const NodeTemplate& from, NodeSpec& node) {
  std::string state = from.state;
  if (state == "future") return false;
  if (state == "cloud") {
    node.kind = NodeKind::kPlanned;
  } else if (state == "down" || state == "drain" || state == "fail" || state == "failing") {
    node.initial_drain_reason =
        from.reason.empty() ? fmt::format("State={} in slurm.conf", upper(state)) : from.reason;
  } else if (state != "unknown" && state != "idle") {
    reading.error("config-value", from.state_span,
                  fmt::format("State: expected UNKNOWN, CLOUD, DOWN, DRAIN, FAIL or FUTURE, not {}",
                              quote(state)));
  }
  return true;
}

void add_devices(const NodeTemplate& from, NodeSpec& node) {
  for (const Gres& one : from.gres)
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(one.count, 1024); ++i)
      node.devices.push_back({one.name, one.type, ""});
}

void read_node_line(ConfigReading& reading, const ConfigLine& line, NodeTemplate& defaults,
                    std::set<std::string>& seen) {
  const ConfigWord& first = line.words.front();
  bool is_default = equals_ci(first.value, "DEFAULT");
  NodeTemplate node = defaults;
  for (const ConfigWord& word : line.words) {
    const KnownKey* known = reading.look_up(node_keys(), word, "a NodeName line");
    if (known) set_node_word(reading, known->name, word, node);
  }
  if (is_default) {
    defaults = std::move(node);
    return;
  }
  std::vector<std::string> names = reading.hosts(first, first.value);
  std::vector<std::string> addresses;
  if (!node.address.empty()) {
    addresses = reading.hosts({"NodeAddr", node.address, node.address_span}, node.address);
    if (addresses.size() != names.size())
      reading.error(
          "config-node", node.address_span,
          fmt::format("NodeAddr names {} addresses for {} nodes", addresses.size(), names.size()));
  }
  NodeSpec spec;
  set_cpus(reading, node, first.span, spec);
  spec.memory_mib = node.memory_mib;
  spec.features = node.features;
  spec.weight = node.weight;
  if (!set_state(reading, node, spec)) {
    reading.future_nodes.insert(reading.future_nodes.end(), names.begin(), names.end());
    return;
  }
  add_devices(node, spec);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!seen.insert(names[i]).second) {
      reading.error("config-node", first.span, fmt::format("node {} is described twice", names[i]));
      continue;
    }
    spec.name = names[i];
    spec.address = i < addresses.size() ? addresses[i] : "";
    reading.wanted[names[i]] = {node.gres, node.gres.empty() ? first.span : node.gres_span};
    reading.out.spec.nodes.push_back(spec);
  }
}

void read_node_set(ConfigReading& reading, const ConfigLine& line) {
  ConfigReading::NodeSet set;
  for (const ConfigWord& word : line.words) {
    if (equals_ci(word.key, "NodeSet"))
      set.name = word.value;
    else if (equals_ci(word.key, "Nodes"))
      set.nodes = reading.hosts(word, word.value);
    else if (equals_ci(word.key, "Feature"))
      set.features = word.value;
    else
      reading.error("config-unknown-key", word.span,
                    fmt::format("{} is no key of a NodeSet line", quote(word.key)));
  }
  reading.node_sets.push_back(std::move(set));
}

}  // namespace

void read_node_lines(ConfigReading& reading, const ConfigLines& lines) {
  NodeTemplate defaults;
  std::set<std::string> seen;
  for (const ConfigLine& line : lines.lines) {
    if (equals_ci(line.words.front().key, "NodeName"))
      read_node_line(reading, line, defaults, seen);
    else if (equals_ci(line.words.front().key, "NodeSet"))
      read_node_set(reading, line);
  }
}

}  // namespace tutti::slurm
