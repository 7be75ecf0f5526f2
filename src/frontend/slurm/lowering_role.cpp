// One component's sizes: nodes, tasks, CPUs, GPUs, memory, as sbatch derives them from each other.
#include <fmt/format.h>

#include <algorithm>

#include "base/hostlist.h"
#include "base/node_constraint.h"
#include "base/text.h"
#include "frontend/slurm/lowering_parts.h"
#include "model/reasons.h"

namespace tutti::slurm {
namespace {

constexpr std::size_t kMaxNodeFileBytes = std::size_t{1} << 20;
constexpr std::string_view kBadGres = "Invalid generic resource (gres) specification";

std::uint32_t divided_up(std::uint32_t a, std::uint32_t b) { return (a + b - 1) / b; }
std::uint32_t capped_product(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(a * b, 0x7FFFFFFF));
}

// "1g.10gb", "h100_1g.10gb", "h100.2g.20gb+me": the type of the GPU, which may be open, and the MIG
// profile; the latter is empty for what is none.
std::pair<std::string, std::string> split_profile(std::string_view text) {
  std::string_view end = text;
  if (end.ends_with("+me")) end.remove_suffix(3);
  std::size_t g = end.rfind("g.");
  if (!end.ends_with("gb") || g == end.npos || g == 0 || !is_digit(end[g - 1])) return {};
  auto memory = parse_integer<std::uint32_t>(end.substr(g + 2, end.size() - g - 4));
  std::size_t first = g - 1;
  if (!memory || (first > 0 && end[first - 1] != '_' && end[first - 1] != '.')) return {};
  return {std::string(text.substr(0, first > 0 ? first - 1 : 0)), std::string(text.substr(first))};
}

// Shares of GPUs among the resources of a node: "mps:50" (percent of one device, as Slurm counts
// where a device has 100) and Tutti's own "gpumem:2000M" (of each device; a number is in MiB). They
// leave the list; without "gpu" beside them one part is asked for.
Parsed<std::vector<Gres>> take_shares(const Lowering& lowering, std::vector<Gres> list,
                                      GpuAsk& ask) {
  constexpr std::uint64_t kMiB = 1024 * 1024;
  bool shares = false, gpus = false;
  for (const Gres& one : list) {
    gpus = gpus || one.name == "gpu";
    if (one.name == "gpu" || one.count == 0) continue;
    shares = true;
    if (one.name == "mps" && one.count <= 100)
      ask.share_permille = static_cast<std::uint32_t>(one.count * 10);
    else if (one.name == "gpumem")
      ask.memory_mib = one.count < kMiB ? one.count : one.count / kMiB;
    else
      return lowering.refuse(kBadGres);
  }
  std::erase_if(list, [](const Gres& one) { return one.name != "gpu"; });
  if (shares && !gpus) list.push_back({"gpu", "", 1});
  return list;
}

// One type and a number of GPUs. A component has one type; "gpu:2,gpu:h100:1" is refused.
Parsed<std::uint32_t> count_gpus(const Lowering& lowering, const std::vector<Gres>& list,
                                 GpuAsk& ask) {
  std::uint64_t count = 0;
  for (const Gres& one : list) {
    count += one.count;
    if (one.count == 0 || one.type.empty()) continue;
    if (auto [type, profile] = split_profile(one.type); !profile.empty()) {
      if ((!ask.profile.empty() && ask.profile != profile) ||
          (!ask.type.empty() && !type.empty() && ask.type != type))
        return lowering.refuse(
            "One component of a job has one MIG profile: make it a heterogeneous job");
      ask.profile = profile;
      if (!type.empty()) ask.type = type;
      continue;
    }
    if (!ask.type.empty() && ask.type != one.type)
      return lowering.refuse(
          fmt::format("One component of a job has one type of GPU, not {} and {}: make it a "
                      "heterogeneous job",
                      ask.type, one.type));
    ask.type = one.type;
  }
  if (count >= 0x7FFFFFFF) return lowering.refuse(kBadGres);
  return static_cast<std::uint32_t>(count);
}

Parsed<std::vector<std::string>> node_names(Lowering& lowering, const std::string& text) {
  std::string list = text;
  // A name with a slash is a file with names, as srun -w and -F take it.
  if (text.find('/') != text.npos) {
    auto file = read_file(lowering.context.open_file, absolute_path(lowering.context, text),
                          kMaxNodeFileBytes);
    if (!file) return lowering.refuse("Invalid --nodefile node file", 255);
    list.clear();
    for (std::string_view line : split(*file, '\n', EmptyPieces::kDrop)) {
      std::string_view name = trim(split(line, '#').front());
      if (name.empty()) continue;
      if (!list.empty()) list += ',';
      list += name;
    }
  }
  auto names = expand_hostlist(trim(list));
  if (!names) return lowering.refuse_for(reason::kInvalidNode);
  std::vector<std::string> unique;
  for (std::string& name : *names)
    if (std::ranges::find(unique, name) == unique.end()) unique.push_back(std::move(name));
  return unique;
}

// Nodes from tasks and tasks from nodes.
void lower_counts(Lowering& lowering, const JobOptions& o, const GpuAsk& gpus, RoleAsk& role) {
  if (o.nodes) {
    role.nodes_min = std::max(o.nodes->min, 1U);
    role.nodes_max = std::max(o.nodes->max, role.nodes_min);
  }
  role.tasks_per_node = o.tasks_per_node.value_or(0);
  std::optional<std::uint32_t> tasks = o.tasks;
  if (!tasks && o.tasks_per_gpu && gpus.total > 0)
    tasks = capped_product(gpus.total, *o.tasks_per_gpu);
  if (!tasks && o.tasks_per_gpu && gpus.per_node && *gpus.per_node > 0)
    role.tasks_per_node = capped_product(*gpus.per_node, *o.tasks_per_gpu);
  if (!tasks && gpus.per_task > 0 && gpus.total > 0)
    tasks = std::max(gpus.total / gpus.per_task, 1U);
  if (tasks) {
    role.tasks = *tasks;
    if (role.tasks_per_node > 0 && o.nodes &&
        role.tasks > capped_product(role.tasks_per_node, role.nodes_max)) {
      lowering.warn(fmt::format(
          "can't honor --ntasks-per-node set to {} which doesn't match the requested tasks {} "
          "with the number of requested nodes {}. Ignoring --ntasks-per-node.",
          role.tasks_per_node, role.tasks, role.nodes_max));
      role.tasks_per_node = 0;
    }
    if (!o.nodes && role.tasks_per_node > 0)
      role.nodes_min = divided_up(role.tasks, role.tasks_per_node);
    if (role.tasks < role.nodes_min) {
      lowering.warn(fmt::format("can't run {} processes on {} nodes, setting nnodes to {}",
                                role.tasks, role.nodes_min, role.tasks));
      role.nodes_min = role.tasks;
      role.nodes_max = std::min(role.nodes_max, role.tasks);
    }
  } else {
    role.tasks = capped_product(role.nodes_min, std::max(role.tasks_per_node, 1U));
  }
}

Parsed<void> lower_memory(Lowering& lowering, const JobOptions& o, RoleAsk& role) {
  // The strongest word counts; two of equal weight contradict each other.
  struct Ask {
    const std::optional<std::uint64_t>& value;
    std::string_view option;
    std::uint64_t& target;
  };
  Ask asks[] = {{o.memory_mib, "mem", role.memory_mib_per_node},
                {o.memory_mib_per_cpu, "mem-per-cpu", role.memory_mib_per_cpu},
                {o.memory_mib_per_gpu, "mem-per-gpu", role.memory_mib_per_gpu}};
  Ask* best = nullptr;
  for (Ask& ask : asks) {
    if (!ask.value) continue;
    Origin origin = o.origin_of(ask.option);
    if (best && origin == o.origin_of(best->option))
      return lowering.fatal("--mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.");
    if (!best || origin > o.origin_of(best->option)) best = &ask;
  }
  if (!best) return {};
  best->target = *best->value;
  role.memory_whole_node = best->option == "mem" && *best->value == 0;
  return {};
}

Parsed<void> lower_nodes(Lowering& lowering, const JobOptions& o, RoleAsk& role) {
  const std::string& wanted = o.node_list.empty() ? o.node_file : o.node_list;
  if (!wanted.empty()) {
    std::string text = o.node_list.empty() && wanted.find('/') == wanted.npos
                           ? fmt::format("./{}", wanted)
                           : wanted;
    auto names = node_names(lowering, text);
    if (!names) return tl::unexpected(names.error());
    role.nodes_in = std::move(*names);
  }
  auto count = static_cast<std::uint32_t>(role.nodes_in.size());
  if (count > role.nodes_max) {
    if (lowering.command != Command::kSrun)
      return lowering.refuse(
          fmt::format("invalid number of nodes (-N {}-{})", count, role.nodes_max));
    lowering.warnings += fmt::format(
        "srun: error: Required nodelist includes more nodes than permitted by max-node count ({} > "
        "{}). Eliminating nodes from the nodelist.\n",
        count, role.nodes_max);
    role.nodes_in.resize(role.nodes_max);
  } else if (count > role.nodes_min) {
    bool tasks_follow =
        !o.tasks && role.tasks == capped_product(role.nodes_min, std::max(role.tasks_per_node, 1U));
    role.nodes_min = count;
    if (tasks_follow) role.tasks = capped_product(count, std::max(role.tasks_per_node, 1U));
  }
  if (!o.exclude.empty()) {
    auto names = node_names(lowering, o.exclude);
    if (!names) return tl::unexpected(names.error());
    role.nodes_out = std::move(*names);
  }
  return {};
}

}  // namespace

Parsed<GpuAsk> lower_gpus(Lowering& lowering, const JobOptions& o) {
  GpuAsk ask;
  auto number = [&](const std::vector<Gres>& list) { return count_gpus(lowering, list, ask); };
  // --gpus-per-node and --gres mean the same; the first is the newer and wins.
  bool per_node_given = !o.gpus_per_node.empty();
  if (per_node_given || !o.gres.empty() || o.gres_given) {
    auto list = take_shares(lowering, o.gres, ask);
    if (!list) return tl::unexpected(list.error());
    auto count = number(per_node_given ? o.gpus_per_node : *list);
    if (!count) return tl::unexpected(count.error());
    ask.per_node = *count;
  }
  if (!o.gpus_per_socket.empty()) {
    if (!o.sockets_per_node) {
      CommandError error = command_error(
          lowering.program(), "--gpus-per-socket option requires --sockets-per-node specification");
      error.text += fmt::format("{}: error: {}\n", lowering.program(), kBadGres);
      return tl::unexpected(std::move(error));
    }
    auto count = number(o.gpus_per_socket);
    if (!count) return tl::unexpected(count.error());
    ask.per_node = capped_product(*count, *o.sockets_per_node);
  }
  auto per_task = number(o.gpus_per_task);
  if (!per_task) return tl::unexpected(per_task.error());
  ask.per_task = *per_task;
  auto total = number(o.gpus);
  if (!total) return tl::unexpected(total.error());
  ask.total = *total;
  return ask;
}

Parsed<RoleAsk> lower_role(Lowering& lowering, const JobOptions& o) {
  auto gpus = lower_gpus(lowering, o);
  if (!gpus) return tl::unexpected(gpus.error());
  auto bad_gres = [&](std::string_view what) {
    CommandError error = command_error(lowering.program(), what);
    error.text += fmt::format("{}: error: {}\n", lowering.program(), kBadGres);
    return tl::unexpected(std::move(error));
  };
  if (gpus->per_task > 0 && o.tasks_per_gpu)
    return lowering.fatal(
        "--gpus-per-task is mutually exclusive with --ntasks-per-gpu and SLURM_NTASKS_PER_GPU");
  if (gpus->per_task > 0 && gpus->total == 0 && !o.tasks && !o.tasks_per_node)
    return bad_gres(
        "Failed to validate job spec. --gpus-per-task used without either --gpus or -n/--ntasks is "
        "not allowed.");
  if (o.cpus_per_gpu && o.cpus_per_task)
    return bad_gres("--cpus-per-gpu is mutually exclusive with --cpus-per-task");
  RoleAsk role;
  lower_counts(lowering, o, *gpus, role);
  role.gpu_type = gpus->type;
  role.gpu_profile = gpus->profile;
  role.gpu_memory_mib = gpus->memory_mib;
  role.gpu_share_permille = gpus->share_permille;
  if (!role.gpu_profile.empty() && role.gpu_memory_mib + role.gpu_share_permille > 0)
    return bad_gres("A MIG instance is not shared: give a profile, or mps and gpumem");
  role.gpus_per_node = gpus->per_node.value_or(0);
  role.gpus_per_task = gpus->per_task;
  role.gpus_total = gpus->total;
  if (gpus->total == 0 && !gpus->per_node && o.tasks_per_gpu)
    role.gpus_total = divided_up(role.tasks, *o.tasks_per_gpu);
  role.cpus_per_task = o.cpus_per_task.value_or(1);
  role.cpus_per_gpu = o.cpus_per_gpu.value_or(0);
  role.cpus_per_node = o.min_cpus.value_or(0);
  role.exclusive = o.exclusive;
  role.contiguous = o.contiguous;
  if (auto done = lower_memory(lowering, o, role); !done) return tl::unexpected(done.error());
  if (auto done = lower_nodes(lowering, o, role); !done) return tl::unexpected(done.error());
  role.features = std::string(trim(o.constraint));
  if (!role.features.empty() && !parse_node_constraint(role.features))
    return lowering.refuse_for(reason::kInvalidFeature);
  return role;
}

}  // namespace tutti::slurm
