// What a job row holds or asks for, as numbers and as Slurm's TRES texts.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "frontend/slurm/view_job.h"
#include "frontend/slurm/view_text.h"

namespace tutti::slurm {
namespace {

template <class Function>
void for_each_slot(const JobRow& row, Function&& function) {
  if (!row.gang) return;
  const std::vector<Slot>& slots = row.gang->gang.slots;
  for (std::size_t i = 0; i < slots.size(); ++i)
    if (!row.is_het() || slots[i].role == row.role) function(slots[i], i);
}

bool holds_slots(const JobRow& row) {
  return row.gang && !row.is_pending() && !row.gang->gang.slots.empty();
}

// How many GPUs the ask comes to in all.
std::uint32_t asked_gpus(const RoleAsk& ask) {
  if (ask.gpus_total != 0) return ask.gpus_total;
  if (ask.gpus_per_node != 0) return ask.gpus_per_node * ask.nodes_min;
  return ask.gpus_per_task * ask.tasks;
}

const PartitionSpec* find_partition(const StateView& view, std::string_view name) {
  for (const PartitionSpec& p : view.partitions)
    if (p.name == name) return &p;
  return nullptr;
}

const NodeSpec* find_node(const StateView& view, std::string_view name) {
  for (const NodeView& node : view.nodes)
    if (node.spec.name == name) return &node.spec;
  return nullptr;
}

// The one GPU type of a row: as asked, else that of the devices it holds.
std::string gpu_type(const JobRow& row, const StateView& view) {
  std::string type = row.ask().gpu_type;
  if (!type.empty()) return type;
  for_each_slot(row, [&](const Slot& slot, std::size_t i) {
    if (!type.empty() || slot.gpus.empty() || i >= row.gang->nodes.size()) return;
    const NodeSpec* node = find_node(view, row.gang->nodes[i]);
    if (node && slot.gpus.front() < node->devices.size())
      type = node->devices[slot.gpus.front()].type;
  });
  return type;
}

std::uint64_t asked_memory(const JobRow& row, const StateView& view, const JobAmounts& amounts) {
  if (row.ask().memory_whole_node && !view.nodes.empty())
    return view.nodes.front().spec.memory_mib * amounts.nodes;
  MemoryAsk ask = memory_ask(row, view);
  switch (ask.per) {
    case MemoryAsk::Per::kNode:
      return ask.mib * amounts.nodes;
    case MemoryAsk::Per::kCpu:
      return ask.mib * amounts.cpus;
    case MemoryAsk::Per::kGpu:
      return ask.mib * amounts.gpus;
  }
  return 0;
}

std::string expand_pattern(const JobRow& row, std::string_view pattern) {
  const Workload& w = row.workload();
  std::string out;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%' || i + 1 == pattern.size()) {
      out += pattern[i];
      continue;
    }
    std::size_t start = i++;
    std::size_t width = 0;
    while (i < pattern.size() && is_digit(pattern[i])) width = width * 10 + (pattern[i++] - '0');
    width = std::min<std::size_t>(width, 10);
    char letter = i < pattern.size() ? pattern[i] : '%';
    auto number = [&](std::uint64_t n) {
      fmt::format_to(std::back_inserter(out), "{:0{}}", n, width);
    };
    if (letter == '%') {
      out += '%';
    } else if (letter == 'j') {
      number(row.job_id());
    } else if (letter == 'A') {
      number(w.id.value());
    } else if (letter == 'a' && row.array_index) {
      number(*row.array_index);
    } else if (letter == 'x') {
      out += w.name;
    } else if (letter == 'u') {
      out += w.user;
    } else {
      out += pattern.substr(start, i - start + 1);
    }
  }
  return out;
}

}  // namespace

std::uint32_t min_cpus_per_node(const RoleAsk& ask) {
  std::uint32_t tasks = std::max<std::uint32_t>(ask.tasks_per_node, 1);
  return std::max({ask.cpus_per_node, tasks * ask.cpus_per_task, std::uint32_t{1}});
}

JobAmounts job_amounts(const JobRow& row) {
  const RoleAsk& ask = row.ask();
  JobAmounts out;
  out.tasks = ask.tasks;
  if (holds_slots(row)) {
    for_each_slot(row, [&](const Slot& slot, std::size_t) {
      ++out.nodes;
      out.cpus += static_cast<std::uint32_t>(slot.cpu_ids.size());
      out.memory_mib += slot.memory_mib;
      out.gpus += static_cast<std::uint32_t>(slot.gpus.size());
    });
    return out;
  }
  out.nodes = ask.nodes_min;
  out.gpus = asked_gpus(ask);
  out.cpus = std::max({ask.tasks * ask.cpus_per_task, ask.cpus_per_node * ask.nodes_min,
                       out.gpus * ask.cpus_per_gpu});
  return out;
}

std::vector<std::string> node_names(const JobRow& row) {
  std::vector<std::string> names;
  if (row.is_pending()) return names;
  for_each_slot(row, [&](const Slot& slot, std::size_t i) {
    // While a job completes, only the nodes that are not clean yet are its own.
    if (row.state == JobState::kCompleting && slot.released) return;
    if (i < row.gang->nodes.size()) names.push_back(row.gang->nodes[i]);
  });
  return names;
}

std::string node_list(const JobRow& row) {
  if (!row.gang || row.is_pending()) return {};
  if (!row.is_het() && row.gang->nodes.size() == 1) return row.gang->nodes.front();
  return fold_nodes(node_names(row));
}

std::string batch_host(const JobRow& row) {
  std::string host;
  if (row.is_pending()) return host;
  for_each_slot(row, [&](const Slot&, std::size_t i) {
    if (host.empty() && i < row.gang->nodes.size()) host = row.gang->nodes[i];
  });
  return host;
}

MemoryAsk memory_ask(const JobRow& row, const StateView& view) {
  using Per = MemoryAsk::Per;
  const RoleAsk& ask = row.ask();
  if (ask.memory_whole_node) return {0, Per::kNode};
  if (ask.memory_mib_per_node != 0) return {ask.memory_mib_per_node, Per::kNode};
  if (ask.memory_mib_per_cpu != 0) return {ask.memory_mib_per_cpu, Per::kCpu};
  if (ask.memory_mib_per_gpu != 0) return {ask.memory_mib_per_gpu, Per::kGpu};
  if (const PartitionSpec* p = find_partition(view, row.view->partition)) {
    if (p->default_memory_mib_per_cpu != 0) return {p->default_memory_mib_per_cpu, Per::kCpu};
    if (p->default_memory_mib_per_node != 0) return {p->default_memory_mib_per_node, Per::kNode};
  }
  if (view.spec && view.spec->default_memory_mib_per_cpu != 0)
    return {view.spec->default_memory_mib_per_cpu, Per::kCpu};
  if (view.spec) return {view.spec->default_memory_mib_per_node, Per::kNode};
  return {};
}

std::string tres_ask(const RoleAsk& ask, TresScope scope) {
  std::uint32_t count = scope == TresScope::kNode   ? ask.gpus_per_node
                        : scope == TresScope::kTask ? ask.gpus_per_task
                                                    : ask.gpus_total;
  if (count == 0) return {};
  if (ask.gpu_type.empty()) return fmt::format("gres:gpu:{}", count);
  return fmt::format("gres:gpu:{}:{}", ask.gpu_type, count);
}

std::string tres_text(const JobRow& row, const StateView& view) {
  JobAmounts amounts = job_amounts(row);
  if (!holds_slots(row)) amounts.memory_mib = asked_memory(row, view, amounts);
  std::string out = fmt::format("cpu={}", amounts.cpus);
  auto to = std::back_inserter(out);
  if (amounts.memory_mib != 0) fmt::format_to(to, ",mem={}", memory_text(amounts.memory_mib));
  fmt::format_to(to, ",node={},billing={}", amounts.nodes, amounts.cpus);
  if (amounts.gpus != 0) {
    fmt::format_to(to, ",gres/gpu={}", amounts.gpus);
    std::string type = gpu_type(row, view);
    if (!type.empty()) fmt::format_to(to, ",gres/gpu:{}={}", type, amounts.gpus);
  }
  return out;
}

std::string output_path(const JobRow& row, OutputKind kind, Patterns patterns) {
  const Workload& w = row.workload();
  const LaunchAsk& launch = w.launch;
  if (kind == OutputKind::kStdin && launch.stdin_path.empty()) return "/dev/null";
  std::string path = kind == OutputKind::kStdin    ? launch.stdin_path
                     : kind == OutputKind::kStderr ? launch.stderr_path
                                                   : launch.stdout_path;
  if (path.empty()) path = launch.stdout_path;
  bool is_default = path.empty();
  if (is_default) path = w.is_array() ? "slurm-%A_%a.out" : "slurm-%j.out";
  if (patterns == Patterns::kExpanded || is_default) path = expand_pattern(row, path);
  if (path.starts_with('/') || launch.work_dir.empty()) return path;
  return launch.work_dir + (launch.work_dir.ends_with('/') ? "" : "/") + path;
}

}  // namespace tutti::slurm
