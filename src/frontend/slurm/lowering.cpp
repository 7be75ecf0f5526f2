#include "frontend/slurm/lowering.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/dependency_text.h"
#include "base/index_set.h"
#include "base/text.h"
#include "frontend/slurm/lowering_parts.h"
#include "frontend/slurm/lowering_terms.h"
#include "frontend/slurm/sbatch_script.h"
#include "model/reasons.h"

namespace tutti::slurm {
namespace {

// The cluster may allow less (MaxArraySize); this is only what an index can be.
constexpr std::uint32_t kMaxArrayIndex = 4'000'001;

DependencyKind model_kind(DependencyWord word) {
  switch (word) {
    case DependencyWord::kAfter:
      return DependencyKind::kAfter;
    case DependencyWord::kAfterOk:
      return DependencyKind::kAfterOk;
    case DependencyWord::kAfterNotOk:
      return DependencyKind::kAfterNotOk;
    case DependencyWord::kAfterCorr:
      return DependencyKind::kAfterCorr;
    case DependencyWord::kSingleton:
      return DependencyKind::kSingleton;
    case DependencyWord::kAfterAny:
      break;
  }
  return DependencyKind::kAfterAny;
}

Parsed<void> lower_dependencies(Lowering& lowering, const JobOptions& o, WorkloadExtras& extras) {
  if (o.dependency.empty()) return {};
  auto list = parse_dependencies(o.dependency);
  if (!list) return lowering.refuse_for(reason::kInvalidDependency);
  extras.any_dependency = list->any;
  for (const DependencyTerm& term : list->dependencies) {
    DependencyKind kind = model_kind(term.kind);
    if (term.jobs.empty()) extras.dependencies.push_back({kind, 0, std::nullopt, 0});
    for (const JobReference& job : term.jobs)
      extras.dependencies.push_back({kind, job.job, job.task, job.minutes});
  }
  return {};
}

Parsed<void> lower_array(Lowering& lowering, const JobOptions& o, Workload& workload) {
  if (o.array.empty()) return {};
  auto spec = parse_array_spec(o.array, kMaxArrayIndex);
  if (!spec) return lowering.refuse_for(reason::kInvalidArray);
  workload.array = spec->indexes.to_string();
  workload.array_throttle = spec->max_at_once;
  return {};
}

Parsed<WorkloadExtras> lower_extras(Lowering& lowering, const std::vector<JobOptions>& components) {
  const JobOptions& o = components.front();
  WorkloadExtras extras;
  if (auto done = lower_dependencies(lowering, o, extras); !done)
    return tl::unexpected(done.error());
  if (o.signal)
    extras.warning_signal = {o.signal->signal, o.signal->seconds_before,
                             o.signal->batch_shell_only};
  extras.comment = o.comment;
  extras.reservation = o.reservation;
  extras.licenses = o.licenses;
  extras.mail_user = o.mail_user;
  extras.mail_type = o.mail_type;
  extras.wckey = o.wckey;
  for (std::string_view one : split(o.clusters, ',', EmptyPieces::kDrop))
    extras.clusters.emplace_back(trim(one));
  extras.fixed_priority = o.priority && *o.priority > 0 ? o.priority : std::nullopt;
  extras.terms.topology = o.topology;
  extras.submit_host = lowering.context.host;
  for (const JobOptions& one : components)
    for (const std::string& name : one.not_honoured)
      if (std::ranges::find(extras.not_honoured, name) == extras.not_honoured.end())
        extras.not_honoured.push_back(name);
  return extras;
}

LaunchAsk lower_launch(const Lowering& lowering, const JobOptions& o) {
  LaunchAsk launch;
  const ClientContext& context = lowering.context;
  launch.work_dir = o.chdir.empty() ? context.work_dir : absolute_path(context, o.chdir);
  launch.stdin_path = o.input;
  launch.stdout_path = o.output;
  launch.stderr_path = o.error;
  launch.append_output = o.open_mode == "append";
  launch.umask = context.umask;
  launch.limits = context.limits;
  return launch;
}

struct FoundScript {
  std::string text, path, name, given;
};

// As sbatch looks for it: the path as given, in the caller's directory, then along PATH.
Parsed<FoundScript> find_script(const ClientContext& context, const std::string& given) {
  auto unable = [&] {
    return tl::unexpected(command_error("sbatch", fmt::format("Unable to open file {}", given)));
  };
  std::vector<std::string> places;
  if (given.empty()) {
    places.emplace_back();
  } else {
    places.push_back(absolute_path(context, given));
    if (given.find('/') == given.npos)
      for (std::string_view dir :
           split(context.environment.get("PATH").value_or(""), ':', EmptyPieces::kDrop))
        places.push_back(fmt::format("{}/{}", dir, given));
  }
  if (!context.open_file) return unable();
  for (const std::string& place : places) {
    auto read = context.open_file(place);
    if (!read) continue;
    auto text = ScriptReader(std::move(*read), given.empty() ? "The standard input" : given).read();
    if (!text) return tl::unexpected(text.error());
    return FoundScript{std::move(*text), place, given.empty() ? "sbatch" : base_name(given), given};
  }
  return unable();
}

Parsed<void> apply_directives(std::vector<JobOptions>& components, const FoundScript& script,
                              Lowering& lowering) {
  std::string file = script.given.empty() ? "<stdin>" : script.given;
  auto directives = script_directives(script.text, file);
  if (!directives) return tl::unexpected(directives.error());
  lowering.warnings += directives->warnings;
  std::size_t component = 0;
  for (const ScriptDirective& directive : directives->list) {
    if (directive.starts_component && ++component >= components.size()) {
      auto more = environment_options(Command::kSbatch, lowering.context);
      if (!more) return tl::unexpected(more.error());
      components.push_back(std::move(*more));
    }
    auto done =
        add_script_words(components[component], directive.words, lowering.context, directive.span);
    if (!done) return done;
  }
  return {};
}

}  // namespace

tl::unexpected<CommandError> Lowering::fatal(std::string_view what) const {
  return tl::unexpected(CommandError{1, fmt::format("{}: fatal: {}\n", program(), what), {}});
}
tl::unexpected<CommandError> Lowering::refuse_for(std::string_view reason) const {
  return tl::unexpected(
      submit_error(program(), ApiError{ErrorCode::kInvalid, std::string(reason), ""}, {}));
}
void Lowering::warn(std::string_view what) {
  warnings += fmt::format("{}: Warning: {}\n", program(), what);
}

std::string absolute_path(const ClientContext& context, std::string_view path) {
  if (path.starts_with('/')) return std::string(path);
  while (path.starts_with("./")) path.remove_prefix(2);
  return context.work_dir.ends_with('/') ? context.work_dir + std::string(path)
                                         : fmt::format("{}/{}", context.work_dir, path);
}
std::string base_name(std::string_view path) {
  std::size_t slash = path.rfind('/');
  return std::string(slash == path.npos ? path : path.substr(slash + 1));
}
Show show_of(const JobOptions& options) {
  return options.help      ? Show::kHelp
         : options.usage   ? Show::kUsage
         : options.version ? Show::kVersion
                           : Show::kNothing;
}

Parsed<Workload> lower_workload(Lowering& lowering, const std::vector<JobOptions>& components) {
  const JobOptions& o = components.front();
  Workload workload;
  std::vector<RoleAsk> roles;
  for (std::size_t i = 0; i < components.size(); ++i) {
    auto role = lower_role(lowering, components[i]);
    if (!role) return tl::unexpected(role.error());
    if (components.size() > 1) role->name = std::to_string(i);
    roles.push_back(std::move(*role));
  }
  workload.roles = std::move(roles);
  workload.name = o.job_name;
  workload.user = lowering.context.user;
  workload.group = lowering.context.group;
  workload.account = o.account;
  workload.qos = o.qos;
  workload.uid = lowering.context.uid;
  workload.gid = lowering.context.gid;
  std::vector<std::string> partitions;
  for (std::string_view one : split(o.partition, ',', EmptyPieces::kDrop))
    if (std::string name(trim(one)); std::ranges::find(partitions, name) == partitions.end())
      partitions.push_back(std::move(name));
  workload.partitions = std::move(partitions);
  workload.time_limit = o.time_limit;
  workload.time_min = o.time_min;
  workload.begin = o.begin_at;
  workload.nice = o.nice.value_or(0);
  if (o.hold || (o.priority && *o.priority == 0)) workload.hold = Hold::kUser;
  workload.requeue = o.requeue.value_or(true);
  workload.immediate = o.immediate_s.has_value();
  workload.cpus_per_task_given = o.cpus_per_task.has_value();
  workload.kill_on_bad_exit = o.kill_on_bad_exit.value_or(0) != 0;
  if (auto done = lower_array(lowering, o, workload); !done) return tl::unexpected(done.error());
  auto extras = lower_extras(lowering, components);
  if (!extras) return tl::unexpected(extras.error());
  if (auto done = lower_terms(lowering, {}, {}, extras->terms); !done)
    return tl::unexpected(done.error());
  workload.extras = std::move(*extras);
  workload.launch = lower_launch(lowering, o);
  return workload;
}

namespace {
// As --gpus-per-node takes it: "8", "h100:8".
std::string gpu_list_text(const std::vector<Gres>& list) {
  std::string out;
  for (const Gres& one : list) {
    if (!out.empty()) out += ',';
    out += one.type.empty() ? fmt::format("{}", one.count)
                            : fmt::format("{}:{}", one.type, one.count);
  }
  return out;
}
}  // namespace

Parsed<LoweredBatch> lower_sbatch(std::span<const std::string> words,
                                  const ClientContext& context) {
  auto parsed = parse_command(Command::kSbatch, words, context);
  if (!parsed) return tl::unexpected(parsed.error());
  std::vector<JobOptions>& components = parsed->components;
  LoweredBatch out;
  out.show = show_of(components.front());
  if (out.show != Show::kNothing) return out;
  Lowering lowering{Command::kSbatch, context, {}};
  FoundScript script;
  const auto& wrap = components.front().wrap;
  if (wrap) {
    if (!parsed->operands.empty())
      return lowering.refuse("Script arguments not permitted with --wrap option");
    script = {wrapped_script(*wrap), "", "wrap", ""};
  } else {
    auto found = find_script(context, parsed->operands.empty() ? "" : parsed->operands.front());
    if (!found) return tl::unexpected(found.error());
    script = std::move(*found);
    if (auto done = check_script(script.text); !done) return tl::unexpected(done.error());
    if (auto done = apply_directives(components, script, lowering); !done)
      return tl::unexpected(done.error());
  }
  auto workload = lower_workload(lowering, components);
  if (!workload) return tl::unexpected(workload.error());
  if (script.text.find("#TUTTI") != script.text.npos)
    if (auto done = lower_terms(lowering, script.text, script.given.empty() ? "the script" : script.given,
                                workload->extras.edit().terms);
        !done)
      return tl::unexpected(done.error());
  const JobOptions& o = components.front();
  if (workload->name.empty()) workload->name = script.name;
  workload->launch.command = script.path;
  if (!parsed->operands.empty())
    workload->launch.argv.assign(parsed->operands.begin() + 1, parsed->operands.end());
  auto environment = exported_environment(Command::kSbatch, o, context);
  if (!environment) return tl::unexpected(environment.error());
  // What the script and its steps learn of the options (sbatch(1), OUTPUT ENVIRONMENT VARIABLES).
  environment->remove("TUTTI_GROUP");  // what the job submits is no member of its group
  environment->remove("SLURM_GPUS_PER_NODE");
  if (!o.gpus_per_node.empty()) environment->set("SLURM_GPUS_PER_NODE", gpu_list_text(o.gpus_per_node));
  out.submission = {std::move(*workload), std::move(script.text), environment->joined()};
  out.warnings = std::move(lowering.warnings);
  out.parsable = o.parsable;
  out.wait = o.wait;
  out.quiet = o.quiet;
  out.test_only = o.test_only;
  out.verbose = o.verbose;
  out.clusters = o.clusters;
  out.refused.partition = o.partition;
  return out;
}

Parsed<LoweredAllocation> lower_salloc(std::span<const std::string> words,
                                       const ClientContext& context) {
  auto parsed = parse_command(Command::kSalloc, words, context);
  if (!parsed) return tl::unexpected(parsed.error());
  const JobOptions& o = parsed->components.front();
  LoweredAllocation out;
  out.show = show_of(o);
  if (out.show != Show::kNothing) return out;
  Lowering lowering{Command::kSalloc, context, {}};
  auto workload = lower_workload(lowering, parsed->components);
  if (!workload) return tl::unexpected(workload.error());
  out.command = parsed->operands;
  workload->kind = WorkloadKind::kSession;
  workload->extras.edit().submit_pid = context.pid;
  if (workload->name.empty())
    workload->name = out.command.empty() ? "interactive" : base_name(out.command.front());
  out.submission.workload = std::move(*workload);
  out.warnings = std::move(lowering.warnings);
  out.no_shell = o.no_shell;
  out.bell = o.bell;
  out.quiet = o.quiet;
  out.verbose = o.verbose;
  out.immediate_s = o.immediate_s;
  out.kill_command = o.kill_command;
  out.refused.partition = o.partition;
  return out;
}

}  // namespace tutti::slurm
