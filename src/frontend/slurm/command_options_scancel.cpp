#include "base/signal_text.h"
#include "frontend/slurm/command_options_parts.h"

namespace tutti::slurm {
namespace {

using enum Argument;
constexpr int kKill = 9;

// What the options of scancel say before they become requests.
struct Options {
  Show show = Show::kNothing;
  std::string account, partition, qos, name, nodes, user, clusters;
  std::vector<std::string> states;
  bool batch = false, full = false, hurry = false, interactive = false, quiet = false, me = false,
       unfulfilled = false;
  int signal = 0;
  std::uint32_t verbose = 0;
};

Parsed<void> set_signal(Options& out, const CommandSetting& v) {
  auto signal = parse_signal(trim(v.value));
  if (!signal) return v.refuse_plainly(fmt::format("Unknown job signal: {}\n", v.value));
  out.signal = *signal;
  return {};
}
Parsed<void> set_states(Options& out, const CommandSetting& v) {
  for (std::string_view word : split(v.value, ',', EmptyPieces::kDrop)) {
    auto state = job_state_name(trim(word));
    if (!state || (*state != "PENDING" && *state != "RUNNING" && *state != "SUSPENDED"))
      return v.refuse_plainly(
          fmt::format("Invalid job state specified: {}\n"
                      "Valid job states are PENDING, RUNNING, and SUSPENDED\n",
                      trim(word)));
    out.states.push_back(lower(*state));
  }
  return {};
}

constexpr auto kRows = std::to_array<CommandRow<Options>>({
    {"account", 'A', kRequired, &Options::account, "SCANCEL_ACCOUNT"},
    {"batch", 'b', kNone, &Options::batch, "SCANCEL_BATCH"},
    {"cluster", 0, kRequired, &Options::clusters},
    {"clusters", 'M', kRequired, &Options::clusters, "SLURM_CLUSTERS"},
    {"ctld", 0, kNone},
    {"full", 'f', kNone, &Options::full, "SCANCEL_FULL"},
    {"help", 0, kNone, Show::kHelp},
    {"hurry", 'H', kNone, &Options::hurry, "SCANCEL_HURRY"},
    {"interactive", 'i', kNone, &Options::interactive, "SCANCEL_INTERACTIVE"},
    {"jobname", 0, kRequired, &Options::name},
    {"me", 0, kNone, &Options::me},
    {"name", 'n', kRequired, &Options::name, "SCANCEL_NAME"},
    {"nodelist", 'w', kRequired, &Options::nodes},
    {"partition", 'p', kRequired, &Options::partition, "SCANCEL_PARTITION"},
    {"qos", 'q', kRequired, &Options::qos, "SCANCEL_QOS"},
    {"quiet", 'Q', kNone, &Options::quiet},
    {"reservation", 'R', kRequired},
    {"sibling", 0, kRequired},
    {"signal", 's', kRequired, &set_signal, "SCANCEL_SIGNAL"},
    {"state", 't', kRequired, &set_states, "SCANCEL_STATE"},
    {"usage", 0, kNone, Show::kUsage},
    {"user", 'u', kRequired, &Options::user, "SCANCEL_USER"},
    {"verbose", 'v', kNone, &Options::verbose, "SCANCEL_VERBOSE"},
    {"version", 'V', kNone, Show::kVersion},
    {"wckey", 0, kRequired, {}, "SCANCEL_WCKEY"},
});

ActionRequest request_from(const Options& options) {
  ActionRequest request;
  // KILL ends the job itself as no signal does; any other one leaves it running.
  request.signal = options.signal;
  bool ends = options.signal == 0 || (options.signal == kKill && !options.batch && !options.full);
  request.verb = ends ? Verb::kCancel : Verb::kSignal;
  if (ends) request.signal = 0;
  request.to_batch = options.batch || options.full;
  request.to_steps = !options.batch;
  request.hurry = options.hurry;
  request.user = options.user;
  request.account = options.account;
  request.partition = options.partition;
  request.qos = options.qos;
  request.name = options.name;
  request.nodes = options.nodes;
  request.states = options.states;
  return request;
}

}  // namespace

std::vector<KnownOption> scancel_options() { return known_rows(kRows); }

Parsed<ScancelCommand> parse_scancel(std::span<const std::string> words,
                                     const ClientContext& context) {
  Options options;
  auto operands = parse_rows<Options>(std::span<const CommandRow<Options>>(kRows), "scancel", words,
                                      context, options);
  if (!operands) return tl::unexpected(operands.error());
  if (options.me) options.user = context.user.empty() ? std::to_string(context.uid) : context.user;
  ScancelCommand out{options.show,   {}, {}, options.clusters, options.interactive, options.quiet,
                     options.verbose};
  if (out.show != Show::kNothing) return out;
  ActionRequest jobs = request_from(options);
  for (const std::string& operand : *operands)
    for (std::string_view piece : split_outside_brackets(operand, ',', EmptyPieces::kDrop)) {
      auto job = parse_job_name(trim(piece));
      if (!job)
        return tl::unexpected(
            command_error("scancel", fmt::format("Invalid job id {}", trim(piece))));
      out.names.push_back(job->text);
      if (job->step) {
        ActionRequest step = request_from(options);
        step.jobs = {job->job};
        step.step = job->step;
        out.requests.push_back(std::move(step));
      } else {
        jobs.jobs.push_back(job->job);
      }
    }
  bool filters = !options.user.empty() || !options.account.empty() || !options.partition.empty() ||
                 !options.qos.empty() || !options.name.empty() || !options.nodes.empty() ||
                 !options.states.empty();
  if (out.names.empty() && !filters)
    return tl::unexpected(command_error("scancel", "No job identification provided"));
  if (!jobs.jobs.empty() || out.names.empty()) out.requests.insert(out.requests.begin(), jobs);
  return out;
}

}  // namespace tutti::slurm
