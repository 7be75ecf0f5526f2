#include "simulator/lowering.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/size_text.h"
#include "base/text.h"
#include "simulator/delimited.h"
#include "simulator/trace_builder.h"

namespace tutti::simulator {

namespace {

constexpr std::uint32_t kMostNodes = 1'000'000;

std::uint32_t divide_up(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::uint32_t>((a + b - 1) / b);
}

void lower_gpus(RoleAsk& ask, const TraceJob& job, std::uint32_t gpus_per_node) {
  std::uint32_t on_each = job.gpus_per_node;
  std::uint32_t nodes = job.nodes;
  if (nodes == 0) nodes = divide_up(job.gpus, std::max(on_each ? on_each : gpus_per_node, 1u));
  if (on_each == 0) on_each = divide_up(job.gpus, nodes);
  ask.nodes_min = ask.nodes_max = nodes;
  ask.tasks = std::max(job.tasks, nodes);
  ask.gpus_per_node = on_each;
}

ClusterSpec with_partition(std::vector<NodeSpec> nodes) {
  ClusterSpec spec;
  PartitionSpec all;
  all.name = "all";
  all.is_default = true;
  all.nodes.reserve(nodes.size());
  for (const NodeSpec& node : nodes) all.nodes.push_back(node.name);
  spec.nodes = std::move(nodes);
  spec.partitions.push_back(std::move(all));
  spec.max_array_index = 0;
  // A log's limits are what its jobs were ended at.
  spec.kill_wait = Duration();
  return spec;
}

struct Group {
  std::uint32_t count = 0, gpus = 0, cpus = 128;
  std::uint64_t memory_mib = 1'000'000;
  std::string type;
};

Status read_setting(Group& group, std::string_view word) {
  auto parts = split_once(word, '=');
  if (parts && parts->first == "cpus")
    if (auto cpus = parse_integer<std::uint32_t>(parts->second); cpus && *cpus > 0) {
      group.cpus = *cpus;
      return {};
    }
  if (parts && parts->first == "mem")
    if (auto mib = parse_memory_mib(parts->second)) {
      group.memory_mib = *mib;
      return {};
    }
  return invalid(fmt::format("{}: expected cpus=N or mem=SIZE", quote(word)));
}

Result<Group> parse_group(std::string_view text) {
  auto words = split(text, ',');
  auto parts = split_once(words[0], 'x');
  auto expected = [&] {
    return invalid(fmt::format(
        "{}: expected COUNTxGPUS[:TYPE] or COUNTxCPUSc, as in 1000x8:h100 or 1x100c", quote(text)));
  };
  if (!parts) return expected();
  Group group;
  auto count = parse_integer<std::uint32_t>(parts->first);
  auto typed = split_once(parts->second, ':');
  std::string_view amount = typed ? typed->first : parts->second;
  const bool cpus_only = amount.ends_with('c');
  if (cpus_only) amount.remove_suffix(1);
  auto number = parse_integer<std::uint32_t>(amount);
  if (!count || *count == 0 || *count > kMostNodes || !number || *number == 0) return expected();
  if (typed && (typed->second.empty() || cpus_only)) return expected();
  group.count = *count;
  (cpus_only ? group.cpus : group.gpus) = *number;
  if (typed) group.type = std::string(typed->second);
  for (std::size_t i = 1; i < words.size(); ++i)
    if (auto status = read_setting(group, words[i]); !status)
      return tl::make_unexpected(status.error());
  return group;
}

void add_nodes(std::vector<NodeSpec>& nodes, const Group& group, std::string name) {
  for (std::uint32_t i = 0; i < group.count; ++i) {
    NodeSpec node;
    node.name = name.empty() ? fmt::format("n{}", nodes.size() + 1) : name;
    if (!name.empty() && group.count > 1) node.name += fmt::format("-{}", i + 1);
    node.kind = NodeKind::kPlanned;
    node.cpus = node.cores_per_socket = group.cpus;
    node.memory_mib = group.memory_mib;
    DeviceSpec device;
    device.type = group.type;
    node.devices.assign(group.gpus, device);
    nodes.push_back(std::move(node));
  }
}

struct NodeColumns {
  static constexpr std::size_t kAbsent = ~std::size_t{0};
  std::size_t name = kAbsent, gpus = kAbsent, cpus = kAbsent, cpu_milli = kAbsent, memory = kAbsent,
              type = kAbsent, count = kAbsent;
  explicit NodeColumns(const std::vector<std::string_view>& header) {
    for (std::size_t i = 0; i < header.size(); ++i) {
      std::string word = lower(header[i]);
      if (word == "name" || word == "sn" || word == "node") name = i;
      if (word == "gpus" || word == "gpu" || word == "num_gpu") gpus = i;
      if (word == "cpus") cpus = i;
      if (word == "cpu_milli") cpu_milli = i;
      if (word == "memory_mib") memory = i;
      if (word == "type" || word == "model" || word == "gpu_type") type = i;
      if (word == "count") count = i;
    }
  }
};

}  // namespace

Workload lower_job(const Trace& trace, const TraceJob& job, std::uint32_t gpus_per_node) {
  Workload workload;
  workload.name = std::string(trace.word(job.application));
  workload.user = std::string(trace.word(job.user));
  workload.account = std::string(trace.word(job.account));
  if (!job.limit.is_infinite()) workload.time_limit = job.limit;
  RoleAsk ask;
  ask.tasks = job.tasks;
  ask.cpus_per_task = std::max(divide_up(job.cpus_milli, 1000), 1u);
  if (job.nodes > 0) {
    ask.nodes_min = ask.nodes_max = job.nodes;
    ask.tasks = std::max(ask.tasks, job.nodes);
  }
  if (job.gpus > 0) lower_gpus(ask, job, gpus_per_node);
  if (job.memory_mib > 0) ask.memory_mib_per_cpu = divide_up(job.memory_mib, ask.cpus_per_task);
  if (job.gpus > 0 && job.gpu_permille < 1000) ask.gpu_share_permille = job.gpu_permille;
  std::string_view types = trace.word(job.gpu_types);
  if (types.find('|') == std::string_view::npos) {
    ask.gpu_type = std::string(types);
  } else {
    WorkloadExtras extras;
    for (std::string_view type : split(types, '|', EmptyPieces::kDrop))
      extras.terms.gpu_types.emplace_back(type);
    workload.extras = std::move(extras);
  }
  workload.roles = std::vector<RoleAsk>{std::move(ask)};
  return workload;
}

Result<ClusterSpec> parse_cluster_text(std::string_view text) {
  std::vector<NodeSpec> nodes;
  for (std::string_view part : split(text, '+')) {
    auto group = parse_group(part);
    if (!group) return tl::make_unexpected(group.error());
    add_nodes(nodes, *group, "");
  }
  return with_partition(std::move(nodes));
}

Result<ClusterSpec> read_node_csv(std::string_view text) {
  DelimitedRows rows(text, ',');
  if (!rows.next()) return invalid("an empty file, expected a line of column names");
  NodeColumns columns(rows.fields());
  if (columns.gpus == NodeColumns::kAbsent && columns.cpus == NodeColumns::kAbsent)
    return invalid(fmt::format("line {}: no column gpus or cpus among {}", rows.line(),
                               join(rows.fields(), ", ")));
  std::vector<NodeSpec> nodes;
  std::vector<std::string> wrong;
  while (rows.next()) {
    Group group;
    group.count = 1;
    bool good = true;
    auto number = [&](std::size_t column, auto& target, std::uint64_t divide = 1) {
      if (column >= rows.fields().size()) return;
      auto value = parse_integer<std::uint64_t>(rows.fields()[column]);
      if (value && *value / divide <= 0xFFFFFFFF)
        target = static_cast<std::decay_t<decltype(target)>>(*value / divide);
      else
        good = false;
    };
    number(columns.gpus, group.gpus);
    number(columns.cpus, group.cpus);
    number(columns.cpu_milli, group.cpus, 1000);
    number(columns.memory, group.memory_mib);
    number(columns.count, group.count);
    auto field = [&](std::size_t column) {
      return std::string(column < rows.fields().size() ? rows.fields()[column] : "");
    };
    group.type = field(columns.type);
    if (!good || group.cpus == 0 || group.count > kMostNodes)
      wrong.push_back(fmt::format("line {}", rows.line()));
    else
      add_nodes(nodes, group, field(columns.name));
  }
  if (!wrong.empty())
    return invalid(
        fmt::format("numbers from 0, and cpus from 1, are expected: {}", join(wrong, ", ")));
  if (nodes.empty()) return invalid("no nodes");
  return with_partition(std::move(nodes));
}

std::uint32_t most_gpus_per_node(const ClusterSpec& spec) {
  std::size_t most = 0;
  for (const NodeSpec& node : spec.nodes) most = std::max(most, node.devices.size());
  return static_cast<std::uint32_t>(most);
}

}  // namespace tutti::simulator
