// From the options of `up`, or a slurm.conf, to a ClusterSpec.
#include <climits>
#include <fmt/format.h>
#include <fstream>
#include <sstream>
#include <sys/utsname.h>
#include <unistd.h>

#include "agent/devices.h"
#include "base/gres_text.h"
#include "base/size_text.h"
#include "cli/cluster_setup.h"
#include "frontend/slurm/config.h"

namespace tutti::cli {

namespace {
constexpr std::uint32_t kMaxNodes = 10'000;

void add_gpus(NodeSpec& node, const std::string& type, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) node.devices.push_back({"gpu", type, fmt::format("/dev/nvidia{}", i)});
}

PartitionSpec partition(std::string name, bool is_default) {
  PartitionSpec p;
  p.name = std::move(name);
  p.is_default = is_default;
  p.max_time = Duration::seconds(7 * 86400);
  p.default_time = Duration::minutes(60);
  return p;
}

struct Sizes {
  std::uint32_t cpus = 128;
  std::string gpu_type = "rtxpro6000";
  std::uint64_t gpus = 8, memory_mib = 1'000'000;
};

Result<Sizes> sizes_of(const UpOptions& options) {
  Sizes sizes;
  if (options.cpus) sizes.cpus = options.cpus;
  if (!options.gpus.empty()) {
    std::string count = options.gpus;
    if (std::size_t colon = options.gpus.rfind(':'); colon != std::string::npos) {
      sizes.gpu_type = options.gpus.substr(0, colon);
      count = options.gpus.substr(colon + 1);
    }
    char* end = nullptr;
    sizes.gpus = std::strtoul(count.c_str(), &end, 10);
    if (count.empty() || *end != 0 || sizes.gpus > 64)
      return invalid(fmt::format("--gpus {}: expected [TYPE:]N with N from 0 to 64", options.gpus));
  }
  if (!options.memory.empty()) {
    auto memory = parse_memory_mib(options.memory);
    if (!memory) return invalid(fmt::format("--mem {}: {}", options.memory, memory.error().message));
    sizes.memory_mib = *memory;
  }
  return sizes;
}

NodeSpec sized_node(std::string name, NodeKind kind, const Sizes& sizes) {
  NodeSpec node;
  node.name = std::move(name);
  node.kind = kind;
  node.cpus = sizes.cpus;
  // Two sockets of two-threaded cores where the number allows it.
  node.sockets = sizes.cpus % 4 == 0 ? 2 : 1;
  node.threads_per_core = sizes.cpus % 2 == 0 ? 2 : 1;
  node.cores_per_socket = sizes.cpus / node.sockets / node.threads_per_core;
  node.memory_mib = sizes.memory_mib;
  add_gpus(node, sizes.gpu_type, sizes.gpus);
  return node;
}

Result<ClusterSpec> from_slurm_conf(const UpOptions& options, std::vector<std::string>& notes) {
  auto read = [](const std::string& path) -> Result<std::string> {
    std::ifstream in(path, std::ios::binary);
    if (!in) return fail(ErrorCode::kNotFound, path + ": cannot be read");
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  };
  slurm::ClusterConfig config = slurm::read_cluster_config(options.slurm_conf, read);
  std::string errors;
  for (const Diagnostic& d : config.diagnostics) {
    std::string line = fmt::format("{}:{}:{}: {}", d.span.file, d.span.line, d.span.column, d.message);
    if (d.severity == Severity::kError)
      errors += "\n  " + line;
    else
      notes.push_back(line);
  }
  if (!config.usable()) return invalid("the configuration has errors:" + errors);
  return std::move(config.spec);
}

NodeSpec this_machine() {
  agent::Inventory inventory = agent::take_inventory();
  NodeSpec node;
  utsname names{};
  uname(&names);
  node.name = names.nodename;
  if (std::size_t dot = node.name.find('.'); dot != std::string::npos) node.name.resize(dot);
  node.kind = NodeKind::kReal;
  node.cpus = inventory.cpus;
  node.sockets = inventory.sockets;
  node.cores_per_socket = inventory.cores_per_socket;
  node.threads_per_core = inventory.threads_per_core;
  node.memory_mib = inventory.memory_mib;
  for (const auto& gpu : inventory.gpus) node.devices.push_back({"gpu", gpu.type, gpu.file});
  return node;
}

// None of the names is this machine's: then all nodes are virtual.
void settle_kinds(ClusterSpec& spec) {
  utsname names{};
  uname(&names);
  std::string host = names.nodename;
  bool here = false;
  for (const NodeSpec& node : spec.nodes) here |= node.name == host || node.name == host.substr(0, host.find('.'));
  if (here) return;
  for (NodeSpec& node : spec.nodes)
    if (node.kind == NodeKind::kReal) node.kind = NodeKind::kVirtual;
}

}  // namespace

bool is_virtual(const ClusterSpec& spec) {
  for (const NodeSpec& node : spec.nodes)
    if (node.kind == NodeKind::kVirtual) return true;
  return false;
}

std::string own_executable() {
  char path[PATH_MAX] = {};
  ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
  return n > 0 ? std::string(path, static_cast<std::size_t>(n)) : "tutti";
}

Result<ClusterSpec> make_spec(const UpOptions& options, std::vector<std::string>& notes) {
  ClusterSpec spec;
  auto sizes = sizes_of(options);
  if (!sizes) return tl::unexpected<Error>(sizes.error());
  if (options.nodes > kMaxNodes || options.planned > 100'000) return invalid("at most 10,000 virtual and 100,000 planned nodes");
  const bool sized = options.cpus || !options.gpus.empty() || !options.memory.empty();
  if (sized && !options.nodes && !options.planned)
    return invalid("--cpus, --gpus and --mem describe virtual nodes: give --nodes N with them");
  if (!options.slurm_conf.empty()) {
    if (options.nodes) return invalid("--nodes and --slurm-conf exclude each other: the file says which nodes there are");
    auto from_file = from_slurm_conf(options, notes);
    if (!from_file) return from_file;
    spec = std::move(*from_file);
    settle_kinds(spec);
  } else {
    PartitionSpec batch = partition("batch", true);
    if (options.nodes == 0) {
      NodeSpec node = this_machine();
      batch.nodes.push_back(node.name);
      spec.nodes.push_back(std::move(node));
    }
    int width = std::max<int>(2, static_cast<int>(std::to_string(options.nodes).size()));
    for (std::uint32_t i = 1; i <= options.nodes; ++i) {
      std::string name = fmt::format("node{:0{}}", i, width);
      batch.nodes.push_back(name);
      spec.nodes.push_back(sized_node(name, NodeKind::kVirtual, *sizes));
    }
    spec.partitions.push_back(std::move(batch));
    spec.default_memory_mib_per_cpu = options.nodes ? std::max<std::uint64_t>(1, sizes->memory_mib / sizes->cpus / 8) : 0;
    spec.kill_wait = Duration::seconds(5);
  }
  if (options.planned) {
    PartitionSpec big = partition("big", spec.partitions.empty());
    int width = std::max<int>(4, static_cast<int>(std::to_string(options.planned).size()));
    for (std::uint32_t i = 1; i <= options.planned; ++i) {
      std::string name = fmt::format("big{:0{}}", i, width);
      big.nodes.push_back(name);
      spec.nodes.push_back(sized_node(name, NodeKind::kPlanned, *sizes));
    }
    spec.partitions.push_back(std::move(big));
  }
  return spec;
}

}  // namespace tutti::cli
