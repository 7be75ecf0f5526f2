// sbatch, srun, salloc: lowering is the front end's, the rest is asking and waiting.
#include <csignal>
#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/process.h"
#include "cli/api_client.h"
#include "cli/help_texts.h"
#include "cli/slurm_commands.h"
#include "cli/slurm_context.h"
#include "cli/slurm_reading.h"
#include "cli/step_client.h"
#include "cli/system_names.h"
#include "cli/version.h"
#include "base/hostlist.h"
#include "base/local_time.h"
#include "frontend/slurm/lowering.h"
#include "model/views.h"

namespace tutti::cli {

namespace {

// One submission; the id or the command's end.
slurm::Parsed<SubmitResult> submit(ApiClient& api, std::string_view program, Submission submission,
                                   const slurm::RefusedRequest& refused, bool test_only = false) {
  SubmitRequest request;
  request.submissions.push_back(std::move(submission));
  request.test_only = test_only;
  auto reply = api.submit(request);
  if (!reply) return tl::unexpected(slurm::submit_error(program, slurm::as_api_error(reply.error()), refused));
  if (reply->results.empty()) return tl::unexpected(slurm::command_error(program, "the controller gave no answer"));
  if (reply->results[0].error) return tl::unexpected(slurm::submit_error(program, *reply->results[0].error, refused));
  return std::move(reply->results[0]);
}

std::string planned_text(std::string_view program, const SubmitResult& result, const Workload& w, const TimeZone& zone) {
  std::string nodes = fold_hostlist(result.planned_nodes);
  std::string when = result.planned_start.is_set() ? format_time(result.planned_start, zone) : "Unknown";
  std::uint32_t processors = 0;
  for (const RoleAsk& role : w.roles) processors += role.tasks * role.cpus_per_task;
  return fmt::format("{}: Job {} to start at {} using {} processors on nodes {} in partition {}\n", program, result.id.value(), when,
                     processors, nodes.empty() ? "(null)" : nodes, result.partition);
}

// Waits for every gang of the job; the exit code of sbatch --wait.
int wait_for_end(ApiClient& api, std::uint32_t job) {
  api.deadline = Duration::seconds(120);
  while (true) {
    auto view = api.get_as<StateView>(fmt::format("/v1/wait?job={}&until=done&timeout_ms=60000", job));
    if (!view) {
      print_err(fmt::format("sbatch: error: {}\n", view.error().message));
      return 1;
    }
    bool open = false;
    int code = 0;
    for (const WorkloadView& w : view->workloads) {
      open |= w.simple_unstarted || !w.unstarted.empty();
      if (w.outcome == Outcome::kCancelled) code = std::max(code, 1);
      for (const GangView& g : w.gangs) {
        open |= g.gang.state != GangState::kDone;
        const ExitStatus& exit = g.gang.exit;
        code = std::max(code, exit.signal ? 128 + exit.signal : exit.code);
        if (code == 0 && g.gang.outcome != Outcome::kCompleted) code = 1;
      }
    }
    if (!open) return code;
  }
}

}  // namespace

int run_sbatch(Words words) {
  LocalZone zone;
  slurm::ClientContext context = client_context(zone);
  auto lowered = slurm::lower_sbatch(words, context);
  if (!lowered) return finish(lowered.error());
  if (auto code = shown(lowered->show, "sbatch")) return *code;
  print_err(lowered->warnings);
  ApiClient api;
  Workload shape = lowered->submission.workload;
  auto result = submit(api, "sbatch", std::move(lowered->submission), lowered->refused, lowered->test_only);
  if (!result) return finish(result.error());
  if (lowered->test_only) {
    print_err(planned_text("sbatch", *result, shape, zone));
    return 0;
  }
  std::uint32_t id = result->id.value();
  if (lowered->parsable)
    print_out(lowered->clusters.empty() ? fmt::format("{}\n", id) : fmt::format("{};{}\n", id, lowered->clusters));
  else if (!lowered->quiet)
    print_out(fmt::format("Submitted batch job {}\n", id));
  return lowered->wait ? wait_for_end(api, id) : 0;
}

int run_srun(Words words) {
  LocalZone zone;
  slurm::ClientContext context = client_context(zone);
  auto lowered = slurm::lower_srun(words, context);
  if (!lowered) return finish(lowered.error());
  if (auto code = shown(lowered->show, "srun")) return *code;
  print_err(lowered->warnings);
  ApiClient api;
  StepClientOptions options;
  options.owns_allocation = lowered->allocation.has_value();
  options.label = lowered->label;
  options.unbuffered = lowered->unbuffered;
  options.pty = lowered->pty;
  options.quiet = lowered->quiet;
  options.kill_on_bad_exit = lowered->kill_on_bad_exit;
  options.quit_on_interrupt = lowered->quit_on_interrupt;
  options.wait_s = lowered->wait_s;
  options.immediate_s = lowered->immediate_s;
  for (StepRequest& step : lowered->steps) step.order.launcher_host = numeric_address(context.host);
  if (options.label)
    for (StepRequest& step : lowered->steps) options.labelled.push_back(take_files(step.order));
  std::uint32_t job = lowered->job;
  if (lowered->allocation) {
    Workload shape = lowered->allocation->workload;
    auto result = submit(api, "srun", std::move(*lowered->allocation), lowered->refused, lowered->test_only);
    if (!result) return finish(result.error());
    if (lowered->test_only) {
      print_err(planned_text("srun", *result, shape, zone));
      return 0;
    }
    job = result->id.value();
  }
  return StepClient(api, std::move(options)).run(job, std::move(lowered->steps));
}

namespace {

std::vector<std::string> allocation_environment(const to_client::GangChanged& gang, const StateView& view, const slurm::ClientContext& context) {
  std::vector<std::string> environment = context.environment.pairs();
  auto set = [&](std::string name, std::string value) {
    std::erase_if(environment, [&](const std::string& e) { return e.starts_with(name + "="); });
    environment.push_back(name + "=" + value);
  };
  std::string nodes = fold_hostlist(gang.nodes);
  std::string id = std::to_string(gang.gang.value());
  set("SLURM_JOB_ID", id);
  set("SLURM_JOBID", id);
  set("SLURM_JOB_NODELIST", nodes);
  set("SLURM_NODELIST", nodes);
  set("SLURM_NNODES", std::to_string(gang.nodes.size()));
  set("SLURM_JOB_NUM_NODES", std::to_string(gang.nodes.size()));
  set("SLURM_CLUSTER_NAME", view.cluster);
  set("SLURM_SUBMIT_DIR", context.work_dir);
  set("SLURM_SUBMIT_HOST", context.host);
  if (view.workloads.empty() || view.workloads[0].gangs.empty()) return environment;
  const WorkloadView& w = view.workloads[0];
  const Gang& g = w.gangs[0].gang;
  std::vector<std::uint32_t> cpus, tasks;
  std::uint32_t total = 0, gpus = 0;
  for (const Slot& slot : g.slots) {
    cpus.push_back(static_cast<std::uint32_t>(slot.cpu_ids.size()));
    tasks.push_back(slot.tasks);
    total += slot.tasks;
    gpus = std::max<std::uint32_t>(gpus, static_cast<std::uint32_t>(slot.gpus.size()));
  }
  const RoleAsk& role = w.workload.roles[0];
  set("SLURM_JOB_NAME", w.workload.name);
  set("SLURM_JOB_PARTITION", g.partition);
  set("SLURM_JOB_CPUS_PER_NODE", fold_counts(cpus));
  set("SLURM_TASKS_PER_NODE", fold_counts(tasks));
  if (!w.workload.account.empty()) set("SLURM_JOB_ACCOUNT", w.workload.account);
  if (role.tasks > 1 || role.tasks_per_node > 0) {
    set("SLURM_NTASKS", std::to_string(total));
    set("SLURM_NPROCS", std::to_string(total));
  }
  if (role.tasks_per_node) set("SLURM_NTASKS_PER_NODE", std::to_string(role.tasks_per_node));
  if (w.workload.cpus_per_task_given) set("SLURM_CPUS_PER_TASK", std::to_string(role.cpus_per_task));
  if (gpus) set("SLURM_GPUS_ON_NODE", std::to_string(gpus));
  return environment;
}

// Runs the command on this machine while the allocation lives.
int run_local(GangSession& session, const slurm::LoweredAllocation& lowered, std::vector<std::string> environment, const slurm::ClientContext& context, std::uint32_t job, int signals) {
  agent::SpawnOptions options;
  std::string shell(context.environment.get("SHELL").value_or("/bin/sh"));
  options.arguments = lowered.command.empty() ? std::vector<std::string>{shell} : lowered.command;
  options.program = find_program(options.arguments[0], std::string(context.environment.get("PATH").value_or("/usr/bin:/bin")));
  options.environment = std::move(environment);
  options.descriptors = {{0, 0}, {1, 1}, {2, 2}};
  options.new_session = false;
  auto child = agent::spawn(options);
  if (!child) {
    print_err(fmt::format("salloc: error: {}: {}\n", options.arguments[0], child.error().message));
    return 1;
  }
  bool over = false;
  while (true) {
    for (const auto& [message, payload] : session.pump())
      if (const auto* m = std::get_if<to_client::GangChanged>(&message))
        if (m->state == GangState::kEnding || m->state == GangState::kDone) {
          if (!std::exchange(over, true)) {
            print_err(fmt::format("salloc: Job allocation {} has been revoked.\n", job));
            kill(child->pid, lowered.kill_command.value_or(SIGHUP));
          }
        }
    pollfd fds[3] = {{child->pidfd.get(), POLLIN, 0}, {session.fd(), POLLIN, 0}, {signals, POLLIN, 0}};
    poll(fds, 3, 1000);
    signalfd_siginfo info;
    // Ctrl-C belongs to the command; it gets it from the terminal itself.
    while (read(signals, &info, sizeof info) == sizeof info)
      if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGHUP) kill(child->pid, static_cast<int>(info.ssi_signo));
    int status = 0;
    if (waitpid(child->pid, &status, WNOHANG) == child->pid)
      return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
}

}  // namespace

int run_salloc(Words words) {
  LocalZone zone;
  slurm::ClientContext context = client_context(zone);
  auto lowered = slurm::lower_salloc(words, context);
  if (!lowered) return finish(lowered.error());
  if (auto code = shown(lowered->show, "salloc")) return *code;
  print_err(lowered->warnings);
  ApiClient api;
  auto result = submit(api, "salloc", std::move(lowered->submission), lowered->refused);
  if (!result) return finish(result.error());
  std::uint32_t job = result->id.value();
  sigset_t set;
  sigemptyset(&set);
  for (int s : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, s);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  int signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  GangSession session(api, GangId(job), GangSession::Role::kOwner);
  if (Status opened = session.open(); !opened) {
    print_err(fmt::format("salloc: error: {}\n", opened.error().message));
    return 1;
  }
  std::optional<to_client::GangChanged> gang;
  auto begun = std::chrono::steady_clock::now();
  bool told = false;
  while (!gang || gang->state != GangState::kRunning) {
    for (const auto& [message, payload] : session.pump())
      if (const auto* m = std::get_if<to_client::GangChanged>(&message)) gang = *m;
    if (gang && (gang->state == GangState::kDone || gang->state == GangState::kEnding)) {
      print_err(fmt::format("salloc: Job allocation {} has been revoked.\n", job));
      return 1;
    }
    if (gang && gang->state == GangState::kRunning) break;
    auto waited = std::chrono::steady_clock::now() - begun;
    if (!told && waited > std::chrono::milliseconds(300)) {
      told = true;
      if (!lowered->quiet) print_err(fmt::format("salloc: Pending job allocation {0}\nsalloc: job {0} queued and waiting for resources\n", job));
    }
    bool too_long = lowered->immediate_s && waited > std::chrono::seconds(*lowered->immediate_s);
    pollfd fds[2] = {{session.fd(), POLLIN, 0}, {signals, POLLIN, 0}};
    poll(fds, 2, 50);
    signalfd_siginfo info;
    bool stop = read(signals, &info, sizeof info) == sizeof info;
    if (too_long || stop) {
      if (too_long) print_err("salloc: error: Unable to allocate resources: Requested nodes are busy\n");
      if (stop && !lowered->quiet) print_err(fmt::format("salloc: Job allocation {} has been revoked.\n", job));
      session.leave(false);
      return 1;
    }
  }
  if (told && !lowered->quiet) print_err(fmt::format("salloc: job {} has been allocated resources\n", job));
  if (!lowered->quiet) print_err(fmt::format("salloc: Granted job allocation {}\n", job));
  if (lowered->no_shell) {
    session.leave(true);
    return 0;
  }
  auto view = api.get_as<StateView>(fmt::format("/v1/state?jobs={}&states=all", job));
  int code = run_local(session, *lowered, allocation_environment(*gang, view ? *view : StateView{}, context), context, job, signals);
  if (!lowered->quiet) print_err(fmt::format("salloc: Relinquishing job allocation {}\n", job));
  session.leave(false);
  return code;
}

}  // namespace tutti::cli
