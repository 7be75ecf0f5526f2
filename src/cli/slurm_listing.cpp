// squeue, sinfo, sacct, sprio, sdiag: options to a question, the answer to the front end's text.
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fmt/format.h>

#include "base/text.h"
#include "base/local_time.h"
#include "cli/api_client.h"
#include "cli/help_texts.h"
#include "cli/slurm_commands.h"
#include "cli/slurm_context.h"
#include "cli/slurm_reading.h"
#include "cli/system_names.h"
#include "cli/version.h"
#include "frontend/slurm/command_options.h"
#include "frontend/slurm/sacct_render.h"
#include "frontend/slurm/sdiag_render.h"
#include "frontend/slurm/sinfo_render.h"
#include "frontend/slurm/sprio_render.h"
#include "frontend/slurm/squeue_render.h"
#include "model/listing_reader.h"
#include "model/views.h"
#include "wire/http.h"

namespace tutti::cli {

std::optional<int> shown(slurm::Show show, std::string_view program) {
  switch (show) {
    case slurm::Show::kVersion:
      print_out(fmt::format("slurm {}\n", kSlurmVersion));
      return 0;
    case slurm::Show::kHelp:
      print_out(help_text(program));
      return 0;
    case slurm::Show::kMpiTypes:
      print_out("MPI plugin types are...\n\tnone\n");
      return 0;
    case slurm::Show::kUsage:
      print_out(usage_text(program));
      return 0;
    default:
      return std::nullopt;
  }
}

int print(const slurm::Output& output) {
  print_out(output.text);
  print_err(output.errors);
  return output.exit_code;
}

slurm::TimeText times(const TimeZone& zone, Instant now) {
  const char* format = std::getenv("SLURM_TIME_FORMAT");
  return slurm::TimeText(zone, format ? format : "", now);
}

slurm::UserNames user_names(const StateView& view) {
  slurm::UserNames names;
  auto add = [&](std::uint32_t uid) {
    auto [it, is_new] = names.try_emplace(uid);
    if (!is_new) return;
    it->second = user_name(uid).value_or(std::to_string(uid));
  };
  add(0);
  for (const NodeView& node : view.nodes) add(node.state.reason_uid);
  for (const WorkloadView& w : view.workloads)
    for (const GangView& g : w.gangs)
      if (g.gang.ended_by_uid) add(*g.gang.ended_by_uid);
  return names;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return wire::encode_url(text);
}

std::vector<slurm::JobSelector> selectors(const std::vector<slurm::JobName>& names) {
  std::vector<slurm::JobSelector> result;
  for (const slurm::JobName& name : names) {
    auto indices = parse_index_set(name.job.array, kNoLimit - 1);
    if (name.job.array.empty() || !indices) {
      result.push_back({name.job.job, std::nullopt, name.step});
      continue;
    }
    for (auto index = indices->first(); index && result.size() < 100'000; index = indices->next(*index + 1))
      result.push_back({name.job.job, *index, name.step});
  }
  return result;
}

namespace {

std::string job_list(const std::vector<slurm::JobName>& names) {
  std::vector<std::string> words;
  for (const slurm::JobName& name : names)
    words.push_back(name.job.array.empty() ? std::to_string(name.job.job) : fmt::format("{}_[{}]", name.job.job, name.job.array));
  return joined(words);
}

std::vector<slurm::JobState> job_states(const std::vector<std::string>& words) {
  std::vector<slurm::JobState> states;
  for (const std::string& word : words)
    if (auto state = slurm::parse_job_state(word)) states.push_back(*state);
  return states;
}

slurm::SqueueOptions squeue_options(const slurm::SqueueCommand& c, const std::string& me) {
  slurm::SqueueOptions o;
  o.kind = c.steps ? slurm::SqueueOptions::Kind::kSteps : c.start ? slurm::SqueueOptions::Kind::kStart : slurm::SqueueOptions::Kind::kJobs;
  o.format = c.format;
  o.name_format = c.name_format;
  o.long_form = c.long_form;
  o.no_header = c.no_header;
  o.only_job_state = c.only_job_state;
  o.units = c.no_convert ? slurm::Units::kKeep : slurm::Units::kConvert;
  o.arrays = c.array || c.array_unique ? slurm::ArrayRows::kByElement : slurm::ArrayRows::kFolded;
  o.sort = c.sort;
  o.filter.jobs = selectors(c.steps && !c.step_names.empty() ? c.step_names : c.jobs);
  o.filter.users = c.users;
  if (c.me) o.filter.users.push_back(me);
  o.filter.partitions = c.partitions;
  o.filter.accounts = c.accounts;
  o.filter.qos = c.qos;
  o.filter.names = c.names;
  o.filter.nodes = c.nodes;
  o.filter.reservations = c.reservations;
  o.filter.licenses = c.licenses;
  o.filter.states = job_states(c.states);
  o.filter.all_states = c.all_states;
  if (c.start && o.filter.states.empty()) o.filter.states = {slurm::JobState::kPending};
  return o;
}

// The everyday table from a listing; nothing if the controller knows no listing of this form.
std::optional<int> squeue_listing(ApiClient& api, slurm::SqueueOptions& options, const TimeZone& zone, bool only_active) {
  auto text = api.get(only_active ? "/v1/listing" : "/v1/listing?states=all");
  if (!text && text.error().code == ErrorCode::kNotFound) return std::nullopt;
  if (!text) return finish(slurm::read_error(slurm::Reader::kSqueue, slurm::as_api_error(text.error())));
  auto listing = ListingReader::open(*text);
  if (!listing) return std::nullopt;
  options.times = times(zone, listing->now());
  auto output = slurm::render_squeue(*listing, options, print_out);
  if (!output) return finish(slurm::command_error("squeue", output.error().message));
  return print(*output);
}

// Numbers become names. Who does not exist is said, as squeue says it, and has no jobs.
void resolve_users(std::vector<std::string>& users) {
  for (std::string& user : users) {
    auto uid = parse_integer<std::uint32_t>(user);
    if (uid) {
      if (auto name = user_name(*uid)) user = *name;
    } else if (!user_exists(user)) {
      print_err(fmt::format("squeue: error: Invalid user: {}\n\n", user));
    }
  }
}

int squeue_once(slurm::SqueueCommand command, const TimeZone& zone, const slurm::ClientContext& context) {
  resolve_users(command.users);
  slurm::SqueueOptions options = squeue_options(command, context.user);
  ApiClient api;
  std::string target = "/v1/state?states=";
  bool only_active = options.filter.states.empty() && !options.filter.all_states && command.jobs.empty();
  if (!command.json && slurm::listing_suffices(options))
    if (auto code = squeue_listing(api, options, zone, only_active)) return *code;
  target += only_active ? "pending,running" : "all";
  slurm::ViewNeeds needs = slurm::squeue_needs(options);
  target += "&waits=reasons&with=workloads";
  if (needs.nodes || command.json) target += ",nodes";
  if (needs.partitions || command.json) target += ",partitions";
  if (needs.spec || command.json) target += ",spec";
  if (!options.filter.users.empty()) target += "&users=" + joined(options.filter.users);
  if (!command.accounts.empty()) target += "&accounts=" + joined(command.accounts);
  if (!command.jobs.empty()) target += "&jobs=" + job_list(command.jobs);
  auto view = api.get_as<StateView>(target);
  if (!view) return finish(slurm::read_error(slurm::Reader::kSqueue, slurm::as_api_error(view.error())));
  options.times = times(zone, view->now);
  return print(command.json ? slurm::render_squeue_json(*view, options) : slurm::render_squeue(*view, options));
}

void pause_seconds(std::uint32_t seconds) {
  timespec pause{static_cast<time_t>(seconds), 0};
  nanosleep(&pause, nullptr);
}

}  // namespace

int run_squeue(Words words) {
  LocalZone zone;
  slurm::ClientContext context = client_context(zone);
  auto command = slurm::parse_squeue(words, context);
  if (!command) return finish(command.error());
  if (auto code = shown(command->show, "squeue")) return *code;
  while (true) {
    int code = squeue_once(*command, zone, context);
    if (command->iterate_s == 0) return code;
    pause_seconds(command->iterate_s);
  }
}

int run_sinfo(Words words) {
  LocalZone zone;
  slurm::ClientContext context = client_context(zone);
  auto command = slurm::parse_sinfo(words, context);
  if (!command) return finish(command.error());
  if (auto code = shown(command->show, "sinfo")) return *code;
  slurm::SinfoOptions options;
  options.format = command->format;
  options.name_format = command->name_format;
  options.long_form = command->long_form;
  options.by_node = command->by_node;
  options.summarize = command->summarize;
  options.reasons = command->reasons;
  options.exact = command->exact;
  options.no_header = command->no_header;
  options.all = command->all;
  options.responding = command->responding;
  options.dead = command->dead;
  options.partitions = command->partitions;
  options.nodes = command->nodes;
  options.sort = command->sort;
  for (const std::string& word : command->states) {
    auto state = slurm::parse_node_state(word);
    if (!state) return finish(slurm::command_error("sinfo", fmt::format("Bad state string: \"{}\"", word)));
    options.states.push_back(*state);
  }
  while (true) {
    ApiClient api;
    auto view = api.get_as<StateView>("/v1/state?with=nodes,partitions,reservations,spec");
    if (!view) return finish(slurm::read_error(slurm::Reader::kSinfo, slurm::as_api_error(view.error())));
    options.times = times(zone, view->now);
    options.users = user_names(*view);
    int code = command->reservation ? print(slurm::render_sinfo_reservations(*view, options.times, options.no_header))
               : print(command->json ? slurm::render_sinfo_json(*view, options) : slurm::render_sinfo(*view, options));
    if (command->iterate_s == 0) return code;
    pause_seconds(command->iterate_s);
  }
}

namespace {

slurm::SacctOptions sacct_options(const slurm::SacctCommand& c, const slurm::ClientContext& context) {
  slurm::SacctOptions o;
  o.format = c.format.empty() && c.brief ? std::string(slurm::kSacctBrief) : c.format;
  o.no_header = c.no_header;
  o.allocations = c.allocations;
  o.duplicates = c.duplicates;
  if (c.parsable) o.layout = slurm::SacctOptions::Layout::kParsable;
  if (c.parsable2) o.layout = slurm::SacctOptions::Layout::kParsable2;
  o.delimiter = c.delimiter;
  if (!c.units.empty()) o.units = c.units[0];
  o.convert = c.no_convert ? slurm::Units::kKeep : slurm::Units::kConvert;
  o.filter.jobs = selectors(c.jobs);
  o.filter.users = c.users;
  // Without a list of users or jobs it is one's own; root sees everybody's.
  if (c.users.empty() && !c.all_users && c.jobs.empty() && context.uid != 0) o.filter.users = {context.user};
  o.filter.accounts = c.accounts;
  o.filter.partitions = c.partitions;
  o.filter.qos = c.qos;
  o.filter.names = c.names;
  o.filter.nodes = c.nodes;
  o.filter.states = job_states(c.states);
  o.from = c.start;
  o.to = c.end;
  if (!o.from && c.jobs.empty()) {
    // Midnight, or now where a state is asked for (man sacct).
    CivilTime day = context.zone->to_civil(context.now);
    day.hour = day.minute = day.second = 0;
    o.from = c.states.empty() ? context.zone->to_instant(day) : context.now;
  }
  return o;
}

int sacct_script(ApiClient& api, const slurm::SacctCommand& command) {
  for (const slurm::JobName& name : command.jobs) {
    auto text = api.get(fmt::format("/v1/script?job={}", name.job.job));
    print_out(fmt::format("Batch Script for {}\n{:-<80}\n{}\n", name.text, "", text ? *text : "NONE\n"));
  }
  return 0;
}

}  // namespace

int run_sacct(Words words) {
  LocalZone zone;
  slurm::ClientContext context = client_context(zone);
  auto command = slurm::parse_sacct(words, context);
  if (!command) return finish(command.error());
  if (auto code = shown(command->show, "sacct")) return *code;
  if (command->help_format) {
    print_out(slurm::sacct_help_format());
    return 0;
  }
  ApiClient api;
  if (command->batch_script) return sacct_script(api, *command);
  slurm::SacctOptions options = sacct_options(*command, context);
  std::string target = "/v1/history?x=";
  if (!command->jobs.empty()) target += "&jobs=" + job_list(command->jobs);
  if (!options.filter.users.empty()) target += "&users=" + joined(options.filter.users);
  if (options.from) target += fmt::format("&from_ms={}", options.from->ms());
  if (options.to) target += fmt::format("&to_ms={}", options.to->ms());
  if (options.duplicates) target += "&duplicates=1";
  auto view = api.get_as<HistoryView>(target);
  if (!view) return finish(slurm::read_error(slurm::Reader::kSacct, slurm::as_api_error(view.error())));
  options.times = times(zone, view->now);
  return print(command->json ? slurm::render_sacct_json(std::move(*view), options) : slurm::render_sacct(std::move(*view), options));
}

int run_sprio(Words words) {
  LocalZone zone;
  slurm::ClientContext context = client_context(zone);
  auto command = slurm::parse_sprio(words, context);
  if (!command) return finish(command.error());
  if (auto code = shown(command->show, "sprio")) return *code;
  ApiClient api;
  std::string target = "/v1/state?states=pending&with=workloads,spec";
  if (!command->jobs.empty()) target += "&jobs=" + job_list(command->jobs);
  auto view = api.get_as<StateView>(target);
  if (!view) return finish(slurm::read_error(slurm::Reader::kSprio, slurm::as_api_error(view.error())));
  slurm::SprioOptions options;
  options.format = command->format;
  options.no_header = command->no_header;
  options.long_form = command->long_form;
  options.weights = command->weights;
  options.normalized = command->normalized;
  options.sort = command->sort;
  options.filter.jobs = selectors(command->jobs);
  options.filter.users = command->users;
  options.filter.partitions = command->partitions;
  return print(slurm::render_sprio(*view, options));
}

int run_sdiag(Words words) {
  LocalZone zone;
  slurm::ClientContext context = client_context(zone);
  auto command = slurm::parse_sdiag(words, context);
  if (!command) return finish(command.error());
  if (auto code = shown(command->show, "sdiag")) return *code;
  ApiClient api;
  auto view = api.get_as<DiagView>("/v1/diag");
  if (!view) return finish(slurm::read_error(slurm::Reader::kSdiag, slurm::as_api_error(view.error())));
  slurm::TimeText text = times(zone, view->now);
  return print(command->json ? slurm::render_sdiag_json(*view) : slurm::render_sdiag(*view, text));
}

}  // namespace tutti::cli
