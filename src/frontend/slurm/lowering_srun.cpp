// srun: an allocation of its own and a step in it, or a step of the job it runs in.
#include <fmt/format.h>

#include <algorithm>

#include "base/hostlist.h"
#include "base/text.h"
#include "frontend/slurm/lowering_parts.h"
#include "model/reasons.h"

namespace tutti::slurm {
namespace {

// The job that srun is in: --jobid, else the variables of the job.
Parsed<std::optional<std::uint32_t>> job_of(const JobOptions& o, const ClientContext& context) {
  if (o.job_id) return o.job_id;
  auto text = context.environment.get("SLURM_JOB_ID");
  if (!text) text = context.environment.get("SLURM_JOBID");
  if (!text) return std::optional<std::uint32_t>();
  auto job = parse_integer<std::uint32_t>(trim(*text));
  if (!job || *job == 0)
    return tl::unexpected(command_error(
        "srun", fmt::format("Invalid numeric value \"{}\" for SLURM_JOB_ID.", *text)));
  return std::optional<std::uint32_t>(*job);
}

// Inside a job the command line outweighs what the allocation's variables repeat: a step that says
// how many tasks a node gets, or on which nodes it runs, does not inherit the totals.
void drop_overruled(JobOptions& o) {
  auto given = [&](std::string_view name) { return o.origin_of(name) == Origin::kCommandLine; };
  bool per_node = given("ntasks-per-node") || given("tasks-per-node");
  if (per_node && !given("ntasks")) o.tasks.reset();
  if ((given("nodelist") || given("relative")) && !given("nodes")) o.nodes.reset();
  if (given("nodes") && !given("ntasks") && !per_node && o.tasks && o.nodes && o.tasks_per_node) {
    // "srun -N 1" in a job of two nodes with four tasks each: four tasks.
    o.tasks.reset();
  }
  if (given("mem") || given("mem-per-cpu") || given("mem-per-gpu")) {
    if (!given("mem")) o.memory_mib.reset();
    if (!given("mem-per-cpu")) o.memory_mib_per_cpu.reset();
    if (!given("mem-per-gpu")) o.memory_mib_per_gpu.reset();
  }
  bool gpus = given("gres") || given("gpus") || given("gpus-per-node") || given("gpus-per-task");
  if (gpus) {
    if (!given("gres")) o.gres.clear(), o.gres_given = false;
    if (!given("gpus")) o.gpus.clear();
    if (!given("gpus-per-node")) o.gpus_per_node.clear();
    if (!given("gpus-per-task")) o.gpus_per_task.clear();
  }
}

// "can't run 1 processes on 2 nodes" is said when -N was typed, not when a job's variable has it.
void fit_nodes(Lowering& lowering, const JobOptions& o, StepRequest& step) {
  if (step.tasks == 0 || step.nodes_min == 0 || step.tasks >= step.nodes_min) return;
  if (o.origin_of("nodes") == Origin::kCommandLine)
    lowering.warn(fmt::format("can't run {} processes on {} nodes, setting nnodes to {}",
                              step.tasks, step.nodes_min, step.tasks));
  step.nodes_min = step.tasks;
  step.nodes_max = std::min(step.nodes_max, step.tasks);
}

Parsed<std::vector<std::string>> hosts(const Lowering& lowering, const std::string& text) {
  if (text.empty()) return std::vector<std::string>();
  auto names = expand_hostlist(trim(text));
  if (!names) return lowering.refuse_for(reason::kInvalidNode);
  return std::move(*names);
}

Parsed<void> lower_sizes(Lowering& lowering, const JobOptions& o, StepRequest& step) {
  if (o.nodes) {
    step.nodes_min = std::max(o.nodes->min, 1U);
    step.nodes_max = std::max(o.nodes->max, step.nodes_min);
  }
  step.tasks = o.tasks.value_or(0);
  step.tasks_per_node = o.tasks_per_node.value_or(0);
  step.cpus_per_task = o.cpus_per_task.value_or(0);
  auto in = hosts(lowering, o.node_list);
  auto out = hosts(lowering, o.exclude);
  if (!in) return tl::unexpected(in.error());
  if (!out) return tl::unexpected(out.error());
  step.nodes_in = std::move(*in);
  step.nodes_out = std::move(*out);
  auto count = static_cast<std::uint32_t>(step.nodes_in.size());
  if (count > 0 && !o.nodes) step.nodes_min = step.nodes_max = count;
  if (count > 0 && o.nodes && count > step.nodes_max) {
    lowering.warnings += fmt::format(
        "srun: error: Required nodelist includes more nodes than permitted by max-node count ({} > "
        "{}). Eliminating nodes from the nodelist.\n",
        count, step.nodes_max);
    step.nodes_in.resize(step.nodes_max);
  }
  if (step.tasks == 0 && step.tasks_per_node > 0 && step.nodes_min > 0)
    step.tasks = step.tasks_per_node * step.nodes_min;
  fit_nodes(lowering, o, step);
  auto gpus = lower_gpus(lowering, o);
  if (!gpus) return tl::unexpected(gpus.error());
  step.gpus_per_node = gpus->per_node;
  step.gpus_per_task = gpus->per_task;
  step.gpus_total = gpus->total;
  step.gpu_type = gpus->type;
  if (o.relative) step.relative = *o.relative;
  step.overlap = o.overlap;
  step.exact = o.exact || o.exclusive;
  step.distribution = o.distribution;
  return {};
}

Parsed<StepRequest> lower_step(Lowering& lowering, const JobOptions& o,
                               const std::vector<std::string>& command) {
  const ClientContext& context = lowering.context;
  StepRequest step;
  if (auto done = lower_sizes(lowering, o, step); !done) return tl::unexpected(done.error());
  step.interactive = o.pty;
  StepOrder& order = step.order;
  // The name of the job is inherited by its steps only when it was typed for srun.
  order.name = o.origin_of("job-name") == Origin::kCommandLine ? o.job_name
               : command.empty()                               ? ""
                                                               : base_name(command.front());
  order.argv = command;
  auto environment = exported_environment(Command::kSrun, o, context);
  if (!environment) return tl::unexpected(environment.error());
  order.environment = environment->pairs();
  order.work_dir = o.chdir.empty() ? context.work_dir : absolute_path(context, o.chdir);
  std::uint32_t tasks = step.tasks > 0 ? step.tasks : 1;
  order.in = o.input.empty() ? stream_target("all", tasks) : stream_target(o.input, tasks);
  order.out = o.output.empty() ? stream_target("all", tasks) : stream_target(o.output, tasks);
  if (!o.error.empty()) {
    order.err = stream_target(o.error, tasks);
    // An empty target would mean "where the output goes".
    if (order.err.kind == StreamKind::kNull) order.err = {StreamKind::kFile, "/dev/null", {}};
  } else if (o.output.empty()) {
    order.err = stream_target("all", tasks);
  }
  if (o.pty) {
    order.pty = true;
    order.in = order.out = order.err = {StreamKind::kAttached, "", 0U};
  }
  order.append = o.open_mode == "append";
  order.unbuffered = o.unbuffered;
  order.umask = context.umask;
  order.limits = context.limits;
  order.mpi = o.mpi.empty() ? "none" : o.mpi;
  order.cpus_per_task = o.cpus_per_task.value_or(1);
  order.cpus_per_task_given = o.cpus_per_task.has_value();
  order.launcher_host = context.host;
  order.launcher_pid = context.pid;
  return step;
}

void lower_client(const JobOptions& o, LoweredRun& out) {
  out.label = o.label;
  out.unbuffered = o.unbuffered;
  out.pty = o.pty;
  out.quiet = o.quiet;
  out.test_only = o.test_only;
  out.disable_status = o.disable_status;
  out.quit_on_interrupt = o.quit_on_interrupt;
  out.verbose = o.verbose;
  out.wait_s = o.wait_s;
  out.kill_on_bad_exit = o.kill_on_bad_exit.value_or(0) != 0;
  out.immediate_s = o.immediate_s;
  out.het_group = o.het_group;
  out.refused.partition = o.partition;
}

Parsed<void> lower_own_allocation(Lowering& lowering, const ParsedCommand& parsed,
                                  LoweredRun& out) {
  auto workload = lower_workload(lowering, parsed.components);
  if (!workload) return tl::unexpected(workload.error());
  workload->kind = WorkloadKind::kSession;
  workload->extras.edit().submit_pid = lowering.context.pid;
  if (workload->name.empty() && !parsed.commands.front().empty())
    workload->name = base_name(parsed.commands.front().front());
  // The step's streams are not the job's.
  workload->launch.stdin_path.clear();
  workload->launch.stdout_path.clear();
  workload->launch.stderr_path.clear();
  out.allocation.emplace();
  out.allocation->workload = std::move(*workload);
  return {};
}

}  // namespace

StreamTarget stream_target(std::string_view mode, std::uint32_t tasks) {
  if (equals_ci(mode, "none")) return {StreamKind::kNull, "", {}};
  if (equals_ci(mode, "all")) return {StreamKind::kAttached, "", {}};
  if (auto rank = parse_integer<std::uint32_t>(mode); rank && *rank < tasks)
    return {StreamKind::kAttached, "", *rank};
  return {StreamKind::kFile, std::string(mode), {}};
}

Parsed<LoweredRun> lower_srun(std::span<const std::string> words, const ClientContext& context) {
  auto parsed = parse_command(Command::kSrun, words, context);
  if (!parsed) return tl::unexpected(parsed.error());
  LoweredRun out;
  out.show = show_of(parsed->components.front());
  if (parsed->components.front().mpi == "list") out.show = Show::kMpiTypes;
  if (out.show != Show::kNothing) return out;
  Lowering lowering{Command::kSrun, context, {}};
  auto job = job_of(parsed->components.front(), context);
  if (!job) return tl::unexpected(job.error());
  bool test_only = parsed->components.front().test_only;
  // The last command serves the components before it that have none.
  for (std::size_t i = parsed->commands.size(); i-- > 0;) {
    if (parsed->commands[i].empty() && i + 1 < parsed->commands.size())
      parsed->commands[i] = parsed->commands[i + 1];
    if (parsed->commands[i].empty() && !test_only)
      return lowering.fatal("No command given to execute.");
  }
  if (*job) {
    out.job = **job;
    for (JobOptions& o : parsed->components) drop_overruled(o);
  } else if (auto done = lower_own_allocation(lowering, *parsed, out); !done) {
    return tl::unexpected(done.error());
  }
  // What is said about sizes was said for the allocation.
  std::string allocation_warnings = lowering.warnings;
  for (std::size_t i = 0; i < parsed->components.size(); ++i) {
    auto step = lower_step(lowering, parsed->components[i], parsed->commands[i]);
    if (!step) return tl::unexpected(step.error());
    if (*job) step->gang = GangId(**job);
    out.steps.push_back(std::move(*step));
  }
  if (!*job) lowering.warnings = std::move(allocation_warnings);
  if (const std::string& mpi = parsed->components.front().mpi; !mpi.empty() && mpi != "none")
    lowering.warn(
        fmt::format("--mpi={}: there is no PMI server: each rank of an MPI program would be "
                    "a world of its own. Start MPI programs with mpirun; others run as they are",
                    mpi));
  out.warnings = std::move(lowering.warnings);
  lower_client(parsed->components.front(), out);
  return out;
}

}  // namespace tutti::slurm
