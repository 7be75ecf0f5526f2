// scontrol.
#include <fmt/format.h>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

#include "base/local_time.h"
#include "cli/api_client.h"
#include "cli/cluster_setup.h"
#include "cli/help_texts.h"
#include "cli/slurm_commands.h"
#include "cli/slurm_context.h"
#include "cli/slurm_reading.h"
#include "cli/version.h"
#include "frontend/slurm/command_options.h"
#include "frontend/slurm/scontrol_show.h"
#include "model/reasons.h"
#include "model/views.h"

namespace tutti::cli {

namespace {

using slurm::ScontrolCommand;
using slurm::ScontrolVerb;

slurm::ShowOptions show_options(const ScontrolCommand& command, const TimeZone& zone, const StateView& view) {
  slurm::ShowOptions options;
  options.one_line = command.one_line;
  options.details = command.details;
  options.users = user_names(view);
  options.times = times(zone, view.now);
  return options;
}

std::vector<slurm::JobName> job_names(const std::vector<std::string>& words, std::string& bad) {
  std::vector<slurm::JobName> names;
  for (const std::string& word : words) {
    std::size_t at = 0;
    while (at <= word.size()) {
      std::size_t end = word.find(',', at);
      if (end == std::string::npos) end = word.size();
      std::string one = word.substr(at, end - at);
      at = end + 1;
      if (one.empty()) continue;
      auto name = slurm::parse_job_name(one);
      if (name)
        names.push_back(std::move(*name));
      else
        bad = one;
    }
  }
  return names;
}

slurm::Reader reader_of(ScontrolVerb verb) {
  switch (verb) {
    case ScontrolVerb::kShowNodes:
      return slurm::Reader::kScontrolNodes;
    case ScontrolVerb::kShowPartitions:
      return slurm::Reader::kScontrolPartitions;
    case ScontrolVerb::kShowSteps:
      return slurm::Reader::kScontrolSteps;
    case ScontrolVerb::kShowReservations:
      return slurm::Reader::kScontrolReservations;
    case ScontrolVerb::kShowConfig:
      return slurm::Reader::kScontrolConfig;
    default:
      return slurm::Reader::kScontrolJobs;
  }
}

int show(const ScontrolCommand& command, const TimeZone& zone) {
  std::string bad;
  bool of_jobs = command.verb == ScontrolVerb::kShowJobs || command.verb == ScontrolVerb::kShowSteps;
  std::vector<slurm::JobName> names = of_jobs ? job_names(command.arguments, bad) : std::vector<slurm::JobName>{};
  if (!bad.empty()) {
    print_err("slurm_load_jobs error: Invalid job id specified\n");
    return 1;
  }
  std::string target = "/v1/state?with=workloads,nodes,partitions,reservations,spec";
  if (command.verb == ScontrolVerb::kShowJobs || command.verb == ScontrolVerb::kShowSteps) {
    target += "&states=all";
    std::vector<std::string> jobs;
    for (const slurm::JobName& name : names) jobs.push_back(std::to_string(name.job.job));
    if (!jobs.empty()) target += "&jobs=" + joined(jobs);
  }
  ApiClient api;
  auto view = api.get_as<StateView>(target);
  if (!view) return finish(slurm::read_error(reader_of(command.verb), slurm::as_api_error(view.error())));
  slurm::ShowOptions options = show_options(command, zone, *view);
  switch (command.verb) {
    case ScontrolVerb::kShowJobs:
      return print(command.json ? slurm::show_jobs_json(*view, selectors(names), options) : slurm::show_jobs(*view, selectors(names), options));
    case ScontrolVerb::kShowSteps:
      return print(slurm::show_steps(*view, selectors(names), options));
    case ScontrolVerb::kShowNodes:
      return print(slurm::show_nodes(*view, command.arguments, options));
    case ScontrolVerb::kShowReservations:
      return print(slurm::show_reservations(*view, command.arguments, options));
    case ScontrolVerb::kShowPartitions:
      return print(slurm::show_partitions(*view, command.arguments, options));
    default:
      return print(slurm::show_config(*view, options));
  }
}

std::string node_list_text(const ScontrolCommand& command, const slurm::ClientContext& context) {
  if (!command.arguments.empty()) return command.arguments[0];
  for (const char* name : {"SLURM_NODELIST", "SLURM_JOB_NODELIST"})
    if (auto value = context.environment.get(name)) return std::string(*value);
  return "";
}

int ping() {
  ApiClient api;
  api.patience = Duration();
  auto text = api.get("/v1/ping");
  std::string host = "localhost";
  if (text)
    if (auto document = JsonDocument::parse(*text)) host = document->root().find("host").as_string("localhost");
  return print(slurm::show_ping(host, text ? slurm::Reachable::kUp : slurm::Reachable::kDown));
}

int act(const ScontrolCommand& command) {
  ApiClient api;
  auto reply = api.post_as<ActionReply>("/v1/actions", command.action);
  if (!reply) return finish(slurm::scontrol_error(slurm::as_api_error(reply.error()), {}));
  int code = 0;
  for (const ActionResult& result : reply->results) {
    if (!result.error) continue;
    slurm::CommandError error = slurm::scontrol_error(*result.error, {"", result.job});
    print_err(error.text);
    code = error.exit_code;
  }
  return code;
}

template <class Request>
int change(std::string_view path, const Request& request) {
  ApiClient api;
  auto reply = api.post_as<ActionReply>(path, request);
  std::optional<ApiError> error;
  if (!reply) error = slurm::as_api_error(reply.error());
  if (reply)
    for (const ActionResult& result : reply->results)
      if (result.error) error = result.error;
  if (!error) return 0;
  std::string text = error->reason == reason::kNotOperator ? "Invalid user id" : slurm::slurm_sentence(*error);
  print_err(fmt::format("slurm_update error: {}\n", text));
  return 1;
}

int change_reservation(const ReservationRequest& request) {
  ApiClient api;
  auto reply = api.post_as<ActionReply>("/v1/reservations", request);
  if (!reply) {
    ApiError error = slurm::as_api_error(reply.error());
    std::string text = error.reason == reason::kNotOperator ? "Access/permission denied" : slurm::slurm_sentence(error);
    std::string head = request.action == "create"   ? "Error creating the reservation"
                       : request.action == "update" ? "Error updating the reservation"
                                                    : "slurm_delete_reservation error";
    print_err(fmt::format("{}: {}\n", head, text));
    if (text != error.message && !error.message.empty()) print_err(fmt::format("scontrol: {}\n", error.message));
    return 1;
  }
  for (const std::string& word : request.not_honoured) print_err(fmt::format("scontrol: warning: {} has no effect here\n", word));
  std::string name = reply->results.empty() ? request.name : reply->results.front().job;
  if (request.action == "create") print_out(fmt::format("Reservation created: {}\n", name));
  if (request.action == "update") print_out("Reservation updated.\n");
  return 0;
}

int write_script(const ScontrolCommand& whole) {
  // "batch_script JOB [FILE]"
  ScontrolCommand command = whole;
  if (command.arguments.empty() || command.arguments[0] != "batch_script")
    return finish(slurm::command_error("scontrol", "invalid entity for keyword \"write\": expected batch_script"));
  command.arguments.erase(command.arguments.begin());
  if (command.arguments.empty()) return finish(slurm::command_error("scontrol", "too few arguments for keyword:write batch_script"));
  ApiClient api;
  auto text = api.get("/v1/script?job=" + command.arguments[0]);
  if (!text) {
    print_err(fmt::format("scontrol: error: failed to get batch script for job {}: {}\n", command.arguments[0], slurm::slurm_sentence(slurm::as_api_error(text.error()))));
    return 1;
  }
  std::string path = command.arguments.size() > 1 ? command.arguments[1] : fmt::format("slurm-{}.sh", command.arguments[0]);
  if (path == "-") {
    print_out(*text);
    return 0;
  }
  std::ofstream out(path, std::ios::binary);
  out << *text;
  out.close();
  if (!out) return finish(slurm::command_error("scontrol", fmt::format("failed to write {}", path)));
  chmod(path.c_str(), 0700);
  print_out(fmt::format("batch script for job {} written to {}\n", command.arguments[0], path));
  return 0;
}

int reconfigure() {
  std::string dir = client_state_dir();
  auto file = read_cluster_file(dir);
  if (!file) return finish(slurm::command_error("scontrol", file.error().message));
  if (file->asked.slurm_conf.empty()) return 0;  // nothing outside the state to read again
  std::vector<std::string> notes;
  auto spec = make_spec(file->asked, notes);
  if (!spec) return finish(slurm::command_error("scontrol", spec.error().message));
  if (is_virtual(*spec) && !is_virtual(file->spec))
    if (Status possible = allow_virtual_nodes(*file); !possible) return finish(slurm::command_error("scontrol", possible.error().message));
  ApiClient api;
  auto reply = api.post_as<ActionReply>("/v1/configure", ConfigureRequest{*spec});
  if (!reply) {
    print_err(fmt::format("slurm_reconfigure error: {}\n", reply.error().message));
    return 1;
  }
  file->spec = std::move(*spec);
  auto lock = lock_setup(dir);
  if (!lock) return finish(slurm::command_error("scontrol", lock.error().message));
  Status followed = follow_spec(dir, *file, notes);
  for (const std::string& note : notes) print_err(fmt::format("scontrol: {}\n", note));
  if (!followed) return finish(slurm::command_error("scontrol", followed.error().message));
  return 0;
}

int wait_job(const ScontrolCommand& command) {
  if (command.arguments.empty()) return finish(slurm::command_error("scontrol", "too few arguments for keyword:wait_job"));
  ApiClient api;
  api.deadline = Duration::seconds(120);
  while (true) {
    auto view = api.get_as<StateView>(fmt::format("/v1/wait?job={}&until=started&timeout_ms=60000", command.arguments[0]));
    if (!view) return finish(slurm::command_error("scontrol", view.error().message));
    bool waiting = false;
    for (const WorkloadView& w : view->workloads) {
      waiting |= w.simple_unstarted || !w.unstarted.empty();
      for (const GangView& g : w.gangs) waiting |= g.gang.state == GangState::kPending || g.gang.state == GangState::kPreparing;
    }
    if (!waiting) return 0;
  }
}

}  // namespace

int run_scontrol(Words words) {
  LocalZone zone;
  slurm::ClientContext context = client_context(zone);
  auto command = slurm::parse_scontrol(words, context);
  if (!command) return finish(command.error());
  if (auto code = shown(command->show, "scontrol")) return *code;
  switch (command->verb) {
    case ScontrolVerb::kVersion:
      print_out(fmt::format("slurm {}\n", kSlurmVersion));
      return 0;
    case ScontrolVerb::kPing:
      return ping();
    case ScontrolVerb::kReconfigure:
      return reconfigure();
    case ScontrolVerb::kShowHostNames:
      return print(slurm::show_hostnames(node_list_text(*command, context)));
    case ScontrolVerb::kShowHostList:
      return print(slurm::show_hostlist(node_list_text(*command, context)));
    case ScontrolVerb::kShowHostListSorted:
      return print(slurm::show_hostlistsorted(node_list_text(*command, context)));
    case ScontrolVerb::kShowLicenses:
      return print(slurm::show_licenses());
    case ScontrolVerb::kShowJobs:
    case ScontrolVerb::kShowSteps:
    case ScontrolVerb::kShowNodes:
    case ScontrolVerb::kShowPartitions:
    case ScontrolVerb::kShowConfig:
    case ScontrolVerb::kShowReservations:
      return show(*command, zone);
    case ScontrolVerb::kAct:
      return act(*command);
    case ScontrolVerb::kUpdateNode:
      return change("/v1/nodes", command->node);
    case ScontrolVerb::kUpdatePartition:
      return change("/v1/partitions", command->partition);
    case ScontrolVerb::kReservation:
      return change_reservation(command->reservation);
    case ScontrolVerb::kWriteBatchScript:
      return write_script(*command);
    case ScontrolVerb::kWaitJob:
      return wait_job(*command);
    case ScontrolVerb::kHelp:
      print_out(help_text("scontrol"));
      return 0;
    default:
      return finish(slurm::command_error("scontrol", "this keyword is not supported by Tutti"));
  }
}

}  // namespace tutti::cli
