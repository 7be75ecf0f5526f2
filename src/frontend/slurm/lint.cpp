#include "frontend/slurm/lint.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/duration_text.h"
#include "base/text.h"
#include "frontend/slurm/lint_parts.h"
#include "frontend/slurm/lowering_parts.h"
#include "frontend/slurm/options_table.h"
#include "frontend/slurm/sbatch_script.h"

namespace tutti::slurm {
namespace {

// Slurm's text without the program's name and the line about --help.
std::string plain(const CommandError& error) {
  std::string out;
  for (std::string_view line : split(error.text, '\n', EmptyPieces::kDrop)) {
    if (line.starts_with("Try \"")) continue;
    for (std::string_view head :
         {"sbatch: error: ", "sbatch: fatal: ", "sbatch: ", "srun: error: "})
      if (line.starts_with(head)) {
        line.remove_prefix(head.size());
        break;
      }
    out += (out.empty() ? "" : "; ") + std::string(line);
  }
  return out;
}

void read_options(Lint& lint, const ClientContext& context) {
  auto directives = script_directives(lint.request.text, lint.request.file);
  if (!directives) {
    lint.add(Severity::kError, "option-invalid", directives.error().span,
             plain(directives.error()));
    return;
  }
  std::vector<JobOptions> components(1);
  for (const ScriptDirective& directive : directives->list) {
    if (directive.starts_component) components.emplace_back();
    JobOptions& options = components.back();
    std::size_t known = options.not_honoured.size();
    std::map<std::size_t, Origin> before = options.origins;
    auto done = add_script_words(options, directive.words, context, directive.span);
    if (!done) lint.add(Severity::kError, "option-invalid", directive.span, plain(done.error()));
    for (const auto& [row, origin] : options.origins)
      if (!before.contains(row))
        lint.places.emplace(std::string(option_rows()[row].name), directive.span);
    for (std::size_t i = known; i < options.not_honoured.size(); ++i)
      lint.add(Severity::kWarning, "option-not-honoured", directive.span,
               fmt::format("--{} is accepted but has no effect here", options.not_honoured[i]));
  }
  Lowering lowering{Command::kSbatch, context, {}};
  auto workload = lower_workload(lowering, components);
  if (workload)
    lint.workload = std::move(*workload);
  else
    lint.add(Severity::kError, "option-invalid", {lint.request.file, 1, 1},
             plain(workload.error()));
}

const PartitionSpec* find_partition(const ClusterSpec& cluster, const std::string& name) {
  for (const PartitionSpec& one : cluster.partitions)
    if (name.empty() ? one.is_default : one.name == name) return &one;
  return nullptr;
}

// Whether a node can be one of a role's, taken for itself.
bool node_serves(const NodeSpec& node, const RoleAsk& role, std::string& most) {
  std::uint32_t gpus = 0;
  for (const DeviceSpec& device : node.devices)
    gpus += device.kind == "gpu" && (role.gpu_type.empty() || device.type == role.gpu_type);
  std::uint64_t cpus = std::max<std::uint64_t>(
      role.cpus_per_node, std::uint64_t{std::max(role.tasks_per_node, 1U)} * role.cpus_per_task);
  std::uint32_t gpus_wanted =
      std::max(role.gpus_per_node, role.gpus_per_task * std::max(role.tasks_per_node, 1U));
  if (gpus < gpus_wanted)
    most = fmt::format("{} GPUs{} on a node", gpus_wanted,
                       role.gpu_type.empty() ? "" : " of type " + role.gpu_type);
  else if (node.cpus < cpus)
    most = fmt::format("{} CPUs on a node", cpus);
  else if (node.memory_mib < role.memory_mib_per_node)
    most = fmt::format("{} MiB of memory on a node", role.memory_mib_per_node);
  else
    return true;
  return false;
}

void check_fits(Lint& lint, const PartitionSpec& partition, const RoleAsk& role) {
  std::uint32_t serving = 0;
  std::string missing;
  for (const NodeSpec& node : lint.request.cluster->nodes) {
    if (std::ranges::find(partition.nodes, node.name) == partition.nodes.end()) continue;
    if (node_serves(node, role, missing)) ++serving;
  }
  if (serving >= role.nodes_min) return;
  Span span = lint.place_of(serving == 0 ? "gres" : "nodes");
  if (serving == 0 && !missing.empty())
    lint.add(Severity::kError, "never-fits", span,
             fmt::format("asks for {}: no node of partition {} has that", missing, partition.name));
  else
    lint.add(Severity::kError, "never-fits", span,
             fmt::format("asks for {} nodes: partition {} has {} that can serve it", role.nodes_min,
                         partition.name, serving));
}

void check_partition(Lint& lint, const std::string& name) {
  const PartitionSpec* partition = find_partition(*lint.request.cluster, name);
  Span span = lint.place_of("partition");
  if (!partition) {
    lint.add(Severity::kError, "unknown-partition", span,
             name.empty() ? "the cluster has no default partition: name one with --partition"
                          : fmt::format("the cluster has no partition {}", name));
    return;
  }
  const auto& limit = lint.workload.time_limit;
  if (limit && partition->max_time && *limit > *partition->max_time)
    lint.add(Severity::kError, "over-partition-limit", lint.place_of("time"),
             fmt::format("asks for {}, partition {} allows {}: the job will wait for ever",
                         format_duration(*limit), partition->name,
                         format_duration(*partition->max_time)));
  if (!limit && !partition->max_time && !partition->default_time)
    lint.add(Severity::kWarning, "no-time-limit", span,
             fmt::format("no --time, and partition {} has no limit of its own: nothing can be "
                         "planned behind this job",
                         partition->name));
  for (const RoleAsk& role : lint.workload.roles) {
    if (role.nodes_min > partition->max_nodes)
      lint.add(Severity::kError, "over-partition-limit", lint.place_of("nodes"),
               fmt::format("asks for {} nodes, partition {} allows {}: the job will wait for ever",
                           role.nodes_min, partition->name, partition->max_nodes));
    else
      check_fits(lint, *partition, role);
  }
}

// The folder of an output pattern, as far as it is fixed: "logs/%x/%j.out" is "logs".
void check_output(Lint& lint, std::string_view option, const std::string& pattern) {
  if (pattern.empty() || !lint.request.directory_exists) return;
  std::string_view fixed = std::string_view(pattern).substr(0, pattern.find('%'));
  std::size_t slash = fixed.rfind('/');
  if (slash == fixed.npos || slash == 0) return;
  std::string folder(fixed.substr(0, slash));
  if (lint.request.directory_exists(folder)) return;
  lint.add(Severity::kWarning, "output-directory-missing", lint.place_of(option),
           fmt::format("there is no directory {}: the job will be accepted and fail at once. "
                       "Make it before submitting; the script is too late",
                       folder));
}

}  // namespace

void Lint::add(Severity severity, std::string_view code, const Span& span, std::string message) {
  found.push_back({severity, std::string(code), std::move(message), span});
}

Span Lint::place_of(std::string_view option) const {
  // Options that say the same thing stand in for each other.
  for (std::string_view name : {option, std::string_view("gpus-per-node"), std::string_view("gpus"),
                                std::string_view("nodes")}) {
    auto place = places.find(std::string(name));
    if (place != places.end() && (name == option || option == "gres")) return place->second;
  }
  return {request.file, 1, 1};
}

void lint_request(Lint& lint) {
  if (lint.request.cluster) {
    if (lint.workload.partitions.empty()) check_partition(lint, "");
    for (const std::string& name : lint.workload.partitions) check_partition(lint, name);
  }
  check_output(lint, "output", lint.workload.launch.stdout_path);
  check_output(lint, "error", lint.workload.launch.stderr_path);
}

std::vector<Diagnostic> lint_script(const LintRequest& request) {
  Lint lint{request, {}, {}, {}};
  if (request.text.size() > kMaxScriptBytes) {
    lint.add(Severity::kError, "script-invalid", {request.file, 0, 0},
             "larger than a batch script may be (4 MiB)");
    return lint.found;
  }
  if (auto checked = check_script(request.text); !checked) {
    lint.add(Severity::kError, "script-invalid", {request.file, 1, 1}, plain(checked.error()));
    return lint.found;
  }
  ClientContext context;
  context.work_dir = "/";
  read_options(lint, context);
  lint_request(lint);
  lint_commands(lint);
  std::ranges::stable_sort(lint.found, {}, [](const Diagnostic& one) {
    return std::pair(one.span.line, one.span.column);
  });
  return lint.found;
}

}  // namespace tutti::slurm
