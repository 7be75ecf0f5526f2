// The grammar of `tutti`, and nothing else: each command is in a file of its own.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fmt/format.h>

#include "base/text.h"
#include "cli/controller_command.h"
#include "cli/help_texts.h"
#include "cli/slurm_context.h"
#include "cli/tutti_commands.h"
#include "cli/version.h"

namespace tutti::cli {

namespace {

const CLI::Validator kCount(
    [](const std::string& text) {
      auto number = parse_integer<std::uint32_t>(text);
      return number && *number > 0 ? std::string() : fmt::format("expected a whole number of at least 1, not `{}`", text);
    },
    "N", "count");

void add_up(CLI::App& app, int& code) {
  auto* up = app.add_subcommand("up", "Make this machine a cluster: find its GPUs, start controller and agents");
  auto options = std::make_shared<UpOptions>();
  options->state_dir = default_state_dir();
  up->add_option("--nodes", options->nodes, "Start N virtual nodes (node01...) with networks of their own")->check(kCount);
  up->add_option("--slurm-conf", options->slurm_conf, "Take nodes and partitions from this slurm.conf (and the gres.conf beside it)");
  up->add_option("--state", options->state_dir, "State directory");
  up->add_option("--planned", options->planned, "Add M nodes that exist only in the plan (big0001..., partition big)");
  up->add_option("--cpus", options->cpus, "CPUs of each virtual node (default 128)")->check(kCount);
  up->add_option("--gpus", options->gpus, "GPUs of each virtual node, [TYPE:]N (default rtxpro6000:8)");
  up->add_option("--mem", options->memory, "Memory of each virtual node (default 1000000M)");
  up->add_option("--listen", options->listen, "Serve programs at [ADDRESS:]PORT over TCP too, with the token in DIR/token; loopback unless an address is given; none = no longer");
  up->callback([options, &code] { code = run_up(*options); });
}

void add_down(CLI::App& app, int& code) {
  auto* down = app.add_subcommand("down", "End the cluster; jobs are requeued, the state is kept");
  auto options = std::make_shared<DownOptions>();
  options->state_dir = default_state_dir();
  down->add_option("--state", options->state_dir, "State directory");
  down->add_flag("--no-requeue", options->no_requeue, "End running jobs for good instead of queueing them again");
  down->add_flag("--purge", options->purge, "Delete the state directory afterwards");
  down->add_flag("-y,--yes", options->yes, "Do not ask");
  down->callback([options, &code] { code = run_down(*options); });
}

void add_run(CLI::App& app, int& code) {
  auto* run = app.add_subcommand("run", "Queue a command, wait, run it and stream its output; Ctrl-B D detaches");
  auto options = std::make_shared<RunOptions>();
  run->add_option("--gpus", options->gpus, "GPUs in total, [TYPE:]N");
  run->add_option("--nodes", options->nodes, "Nodes (default 1)")->check(kCount);
  run->add_option("--tasks", options->tasks, "Copies of the command (default one per node)");
  run->add_option("--cpus", options->cpus, "CPUs per task");
  run->add_option("--mem", options->memory, "Memory per node");
  run->add_option("--time", options->time, "Time limit, as sbatch takes it");
  run->add_option("--partition", options->partition, "Partition");
  run->add_option("--name", options->name, "Job name");
  run->add_option("command", options->command, "The command and its arguments")->required();
  run->positionals_at_end();
  run->prefix_command(false);
  run->callback([options, &code] { code = run_run(*options); });
}

void add_whatif(CLI::App& app, int& code) {
  auto* whatif = app.add_subcommand("whatif", "What would become of the jobs that wait if something were different; nothing is changed");
  auto options = std::make_shared<WhatIfOptions>();
  whatif->add_flag("--json", options->json, "As JSON");
  whatif->require_subcommand(1);
  whatif->fallthrough();
  auto run = [options, &code] { code = run_whatif(*options); };
  auto* submit = whatif->add_subcommand("submit", "These batch scripts were submitted too");
  submit->add_option("script", options->scripts, "Batch scripts")->required();
  submit->callback(run);
  auto* drain = whatif->add_subcommand("drain", "These nodes took no new work");
  drain->add_option("nodes", options->drain, "Host list, node[01-04]")->required();
  drain->callback(run);
  auto* quota = whatif->add_subcommand("quota", "Queues owned other amounts");
  quota->add_option("quota", options->quotas, "QUEUE:RESOURCE=AMOUNT, research:gpu=16")->required();
  quota->callback(run);
  auto* nodes = whatif->add_subcommand("add-nodes", "There were more nodes");
  nodes->add_option("nodes", options->add_nodes, "N:like=NODE, or N:cpus=64,gpus=h100:8,mem=512000[,partition=P]")->required();
  nodes->callback(run);
}

void add_questions(CLI::App& app, int& code) {
  auto* why = app.add_subcommand("why", "Why a job waits, until when, what would start it now; and its story so far");
  auto w = std::make_shared<WhyOptions>();
  why->add_option("job", w->job, "Job number, 12 or 12_3")->required();
  why->add_flag("--json", w->json, "As JSON");
  why->callback([w, &code] { code = run_why(*w); });
  add_whatif(app, code);
  auto* top = app.add_subcommand("top", "Who holds which GPU");
  auto t = std::make_shared<TopOptions>();
  top->add_flag("--json", t->json, "As JSON");
  top->add_flag("--once", t->once, "Print once instead of refreshing");
  top->callback([t, &code] { code = run_top(*t); });
  auto* logs = app.add_subcommand("logs", "The output of a batch job");
  auto l = std::make_shared<LogsOptions>();
  logs->add_option("job", l->job, "Job number, 12 or 12_3")->required();
  logs->add_flag("-f,--follow", l->follow, "Go on until the job ends");
  logs->add_flag("--stderr", l->error, "The error file, where it is a separate one");
  logs->callback([l, &code] { code = run_logs(*l); });
  auto* lint = app.add_subcommand("lint", "What a script will not do that its author thinks it does");
  auto n = std::make_shared<LintOptions>();
  lint->add_option("file", n->files, "Batch scripts")->required();
  lint->add_flag("--json", n->json, "As JSON");
  lint->callback([n, &code] { code = run_lint(*n); });
  auto* doctor = app.add_subcommand("doctor", "This installation: GPUs, cgroups, namespaces, journal, versions");
  auto d = std::make_shared<DoctorOptions>();
  d->state_dir = client_state_dir();
  doctor->add_option("--state", d->state_dir, "State directory");
  doctor->add_flag("--json", d->json, "As JSON");
  doctor->callback([d, &code] { code = run_doctor(*d); });
}

void add_compare(CLI::App& app, int& code) {
  auto* compare = app.add_subcommand("compare", "Replay a job log under several schedulers' rules and say which fits it");
  auto options = std::make_shared<CompareOptions>();
  compare->add_option("--trace", options->trace, "The log: SWF, what `sacct --parsable2` prints, or CSV; also gzipped")->required();
  compare->add_option("--cluster", options->cluster, "COUNTxGPUS[:TYPE] (1000x8:h100) or COUNTxCPUSc, joined by +; a slurm.conf; a node list (.csv). Default: what an SWF log says");
  compare->add_option("--profiles", options->profiles, "Names, by commas (default tutti,easy,fcfs)");
  compare->add_option("--columns", options->columns, "For CSV: the name of a public trace, or FIELD=COLUMN[:UNIT]...");
  compare->add_option("--start-delay", options->start_delay_ms, "Milliseconds from the decision to start until ranks run")->check(CLI::NonNegativeNumber);
  compare->add_option("--release-delay", options->release_delay_ms, "Milliseconds from the end of a job until its GPUs are free")->check(CLI::NonNegativeNumber);
  compare->add_option("--price", options->price, "Of a GPU-hour, for the verdict")->check(CLI::NonNegativeNumber);
  compare->add_flag("--skip-bad", options->skip_bad, "Leave out jobs that cannot be used, after listing them");
  compare->add_flag("--json", options->json, "As JSON");
  compare->add_option("--html", options->html, "Also write a page with plots to this file");
  compare->callback([options, &code] { code = run_compare(*options); });
}

void add_daemons(CLI::App& app, int& code) {
  auto* controller = app.add_subcommand("controller", "Run the controller in the foreground (`up` does it)");
  auto state = std::make_shared<std::string>(default_state_dir());
  controller->add_option("--state", *state, "State directory");
  controller->callback([state, &code] { code = run_controller(*state); });
  auto* agent = app.add_subcommand("agent", "Run a node's agent in the foreground (`up` does it)");
  auto agent_state = std::make_shared<std::string>(default_state_dir());
  auto node = std::make_shared<std::string>();
  agent->add_option("--state", *agent_state, "State directory");
  agent->add_option("--node", *node, "Name of the node")->required();
  agent->callback([agent_state, node, &code] { code = run_agent_command(*agent_state, *node); });
}

// CLI11 only says that a subcommand is required.
std::string unknown_command(const CLI::App& app, Words words) {
  if (words.empty() || words[0].starts_with("-")) return {};
  std::string all;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_name() == words[0]) return {};
    all += (all.empty() ? "" : " ") + command->get_name();
  }
  return fmt::format("tutti: there is no command `{}`; there are: {}\n", words[0], all);
}

}  // namespace

int run_tutti(Words words) {
  int code = 0;
  CLI::App app{"Tutti: a workload manager for GPU clusters. Slurm's commands are links to this program.", "tutti"};
  app.set_version_flag("--version", std::string("tutti ") + std::string(kVersion));
  app.require_subcommand(1);
  app.footer("Also: sbatch srun salloc scancel squeue sinfo sacct scontrol sprio sdiag, as links or as\n`tutti sbatch ...`. TUTTI_STATE names the state directory for every command.");
  add_up(app, code);
  add_down(app, code);
  add_run(app, code);
  add_questions(app, code);
  add_compare(app, code);
  add_daemons(app, code);
  if (auto unknown = unknown_command(app, words); !unknown.empty()) {
    print_err(unknown);
    return 2;
  }
  std::vector<std::string> reversed(words.rbegin(), words.rend());
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    int exit = app.exit(error);
    return exit == 0 ? 0 : 2;
  }
  return code;
}

}  // namespace tutti::cli
