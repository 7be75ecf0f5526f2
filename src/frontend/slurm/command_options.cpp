#include "frontend/slurm/command_options.h"

#include <array>

#include "base/hostlist.h"
#include "base/index_set.h"
#include "base/time_text.h"
#include "frontend/slurm/command_options_parts.h"

namespace tutti::slurm {
namespace {

using enum Argument;
const UtcZone kUtc;

struct StateName {
  std::string_view name, compact;
};
constexpr auto kStates = std::to_array<StateName>({
    {"PENDING", "PD"},    {"RUNNING", "R"},       {"SUSPENDED", "S"},     {"COMPLETED", "CD"},
    {"CANCELLED", "CA"},  {"FAILED", "F"},        {"TIMEOUT", "TO"},      {"NODE_FAIL", "NF"},
    {"PREEMPTED", "PR"},  {"BOOT_FAIL", "BF"},    {"DEADLINE", "DL"},     {"OUT_OF_MEMORY", "OOM"},
    {"COMPLETING", "CG"}, {"CONFIGURING", "CF"},  {"RESIZING", "RS"},     {"RESV_DEL_HOLD", "RD"},
    {"REQUEUED", "RQ"},   {"REQUEUE_FED", "RF"},  {"REQUEUE_HOLD", "RH"}, {"REVOKED", "RV"},
    {"SIGNALING", "SI"},  {"SPECIAL_EXIT", "SE"}, {"STAGE_OUT", "SO"},    {"STOPPED", "ST"},
});

template <class S>
Parsed<void> set_jobs(S& out, const CommandSetting& v) {
  return append_jobs(out.jobs, v);
}
template <class S>
Parsed<void> set_nodes(S& out, const CommandSetting& v) {
  return append_hosts(out.nodes, v);
}
template <class S>
Parsed<void> set_iterate(S& out, const CommandSetting& v) {
  auto seconds = parse_integer<std::uint32_t>(trim(v.value));
  if (!seconds || *seconds == 0) return v.refuse(fmt::format("--iterate={}\n", v.value));
  out.iterate_s = *seconds;
  return {};
}

// squeue

Parsed<void> set_squeue_states(SqueueCommand& out, const CommandSetting& v) {
  out.states.clear();
  for (std::string_view word : split(v.value, ',', EmptyPieces::kDrop)) {
    if (equals_ci(trim(word), "all")) {
      out.all_states = true;
      continue;
    }
    auto state = job_state_name(trim(word));
    if (!state) {
      std::string valid;
      for (const StateName& one : kStates)
        valid += (valid.empty() ? "" : ",") + std::string(one.name);
      return v.refuse_plainly(
          fmt::format("squeue: error: Invalid job state specified: {}\n"
                      "squeue: error: Valid job states include: {}\n\n",
                      trim(word), valid));
    }
    out.states.emplace_back(*state);
  }
  return {};
}
Parsed<void> set_squeue_steps(SqueueCommand& out, const CommandSetting& v) {
  out.steps = true;
  return append_jobs(out.step_names, v);
}
Parsed<void> set_squeue_me(SqueueCommand& out, const CommandSetting& v) {
  out.me = true;
  out.users.push_back(v.context.user.empty() ? std::to_string(v.context.uid) : v.context.user);
  return {};
}

using Q = SqueueCommand;
constexpr auto kSqueue = std::to_array<CommandRow<Q>>({
    {"account", 'A', kRequired, &Q::accounts, "SQUEUE_ACCOUNT"},
    {"all", 'a', kNone, &Q::all, "SQUEUE_ALL"},
    {"array", 'r', kNone, &Q::array, "SQUEUE_ARRAY"},
    {"array-unique", 0, kNone, &Q::array_unique, "SQUEUE_ARRAY_UNIQUE"},
    {"cluster", 0, kRequired, &Q::clusters},
    {"clusters", 'M', kRequired, &Q::clusters, "SLURM_CLUSTERS"},
    {"federation", 0, kNone},
    {"format", 'o', kRequired, &Q::format, "SQUEUE_FORMAT"},
    {"Format", 'O', kRequired, &Q::name_format, "SQUEUE_FORMAT2"},
    {"help", 0, kNone, Show::kHelp},
    {"hide", 0, kNone, &Q::hide},
    {"iterate", 'i', kRequired, &set_iterate<Q>},
    {"jobs", 'j', kMaybeNext, &set_jobs<Q>},
    {"json", 0, kOptional, &Q::json},
    {"licenses", 'L', kRequired, &Q::licenses, "SQUEUE_LICENSES"},
    {"local", 0, kNone},
    {"long", 'l', kNone, &Q::long_form},
    {"me", 0, kNone, &set_squeue_me},
    {"name", 'n', kRequired, &Q::names, "SQUEUE_NAMES"},
    {"noconvert", 0, kNone, &Q::no_convert},
    {"node", 0, kRequired, &set_nodes<Q>},
    {"nodes", 0, kRequired, &set_nodes<Q>},
    {"nodelist", 'w', kRequired, &set_nodes<Q>},
    {"noheader", 'h', kNone, &Q::no_header},
    {"only-job-state", 0, kNone, &Q::only_job_state},
    {"partition", 'p', kRequired, &Q::partitions, "SQUEUE_PARTITION"},
    {"priority", 'P', kNone, &Q::priority, "SQUEUE_PRIORITY"},
    {"qos", 'q', kRequired, &Q::qos, "SQUEUE_QOS"},
    {"reservation", 'R', kRequired, &Q::reservations},
    {"sibling", 0, kNone},
    {"sort", 'S', kRequired, &Q::sort, "SQUEUE_SORT"},
    {"start", 0, kNone, &Q::start},
    {"states", 't', kRequired, &set_squeue_states, "SQUEUE_STATES"},
    {"steps", 's', kMaybeNext, &set_squeue_steps},
    {"usage", 0, kNone, Show::kUsage},
    {"user", 'u', kRequired, &Q::users, "SQUEUE_USERS"},
    {"users", 0, kRequired, &Q::users},
    {"verbose", 'v', kNone, &Q::verbose},
    {"version", 'V', kNone, Show::kVersion},
    {"yaml", 0, kOptional, &Q::yaml},
});

// sinfo

Parsed<void> set_sinfo_states(SinfoCommand& out, const CommandSetting& v) {
  for (std::string_view word : split(v.value, ',', EmptyPieces::kDrop))
    if (!equals_ci(trim(word), "all")) out.states.push_back(lower(trim(word)));
  return {};
}

using I = SinfoCommand;
constexpr auto kSinfo = std::to_array<CommandRow<I>>({
    {"all", 'a', kNone, &I::all, "SINFO_ALL"},
    {"cluster", 0, kRequired, &I::clusters},
    {"clusters", 'M', kRequired, &I::clusters, "SLURM_CLUSTERS"},
    {"dead", 'd', kNone, &I::dead},
    {"exact", 'e', kNone, &I::exact},
    {"federation", 0, kNone},
    {"format", 'o', kRequired, &I::format, "SINFO_FORMAT"},
    {"Format", 'O', kRequired, &I::name_format},
    {"future", 'F', kNone, &I::future},
    {"help", 0, kNone, Show::kHelp},
    {"hide", 0, kNone, &I::hide},
    {"iterate", 'i', kRequired, &set_iterate<I>},
    {"json", 0, kOptional, &I::json},
    {"list-reasons", 'R', kNone, &I::reasons},
    {"local", 0, kNone},
    {"long", 'l', kNone, &I::long_form},
    {"noconvert", 0, kNone, &I::no_convert},
    {"Node", 'N', kNone, &I::by_node},
    {"nodes", 'n', kRequired, &set_nodes<I>},
    {"noheader", 'h', kNone, &I::no_header},
    {"partition", 'p', kRequired, &I::partitions, "SINFO_PARTITION"},
    {"reservation", 'T', kNone, &I::reservation},
    {"responding", 'r', kNone, &I::responding},
    {"sort", 'S', kRequired, &I::sort, "SINFO_SORT"},
    {"states", 't', kRequired, &set_sinfo_states},
    {"summarize", 's', kNone, &I::summarize},
    {"usage", 0, kNone, Show::kUsage},
    {"verbose", 'v', kNone, &I::verbose},
    {"version", 'V', kNone, Show::kVersion},
    {"yaml", 0, kOptional, &I::yaml},
});

// sacct

Parsed<Instant> sacct_time(const CommandSetting& v) {
  const TimeZone& zone = v.context.zone ? *v.context.zone : kUtc;
  auto at = parse_time(v.value, v.context.now, zone, TimeDirection::kPast);
  if (!at)
    return v.refuse_plainly(fmt::format("Invalid time specification (pos=0): {}\n", v.value));
  return *at;
}
Parsed<void> set_sacct_start(SacctCommand& out, const CommandSetting& v) {
  auto at = sacct_time(v);
  if (!at) return tl::unexpected(at.error());
  out.start = *at;
  return {};
}
Parsed<void> set_sacct_end(SacctCommand& out, const CommandSetting& v) {
  auto at = sacct_time(v);
  if (!at) return tl::unexpected(at.error());
  out.end = *at;
  return {};
}
Parsed<void> set_sacct_states(SacctCommand& out, const CommandSetting& v) {
  for (std::string_view word : split(v.value, ',', EmptyPieces::kDrop)) {
    auto state = job_state_name(trim(word));
    if (!state)
      return v.refuse_plainly(
          fmt::format("sacct: fatal: unrecognized job state value '{}'\n", trim(word)));
    out.states.emplace_back(*state);
  }
  return {};
}
// --format may be given several times; all of it counts.
Parsed<void> set_sacct_format(SacctCommand& out, const CommandSetting& v) {
  if (!out.format.empty()) out.format += ',';
  out.format += v.value;
  return {};
}

using C = SacctCommand;
constexpr auto kSacct = std::to_array<CommandRow<C>>({
    {"accounts", 'A', kRequired, &C::accounts},
    {"allclusters", 'L', kNone},
    {"allocations", 'X', kNone, &C::allocations},
    {"allusers", 'a', kNone, &C::all_users},
    {"array", 0, kNone, &C::array},
    {"associations", 'x', kRequired},
    {"batch-script", 'B', kNone, &C::batch_script},
    {"brief", 'b', kNone, &C::brief},
    {"cluster", 0, kRequired, &C::clusters},
    {"clusters", 'M', kRequired, &C::clusters, "SLURM_CLUSTERS"},
    {"completion", 'c', kNone},
    {"constraints", 'C', kRequired},
    {"delimiter", 0, kRequired, &C::delimiter},
    {"duplicates", 'D', kNone, &C::duplicates},
    {"endtime", 'E', kRequired, &set_sacct_end},
    {"env-vars", 0, kNone, &C::env_vars},
    {"federation", 0, kNone},
    {"file", 'f', kRequired},
    {"flags", 'F', kRequired},
    {"format", 'o', kRequired, &set_sacct_format, "SACCT_FORMAT"},
    {"gid", 'g', kRequired, &C::groups},
    {"group", 0, kRequired, &C::groups},
    {"help", 'h', kNone, Show::kHelp},
    {"helpformat", 'e', kNone, &C::help_format},
    {"jobs", 'j', kRequired, &set_jobs<C>},
    {"json", 0, kOptional, &C::json},
    {"local", 0, kNone},
    {"long", 'l', kNone, &C::long_form},
    {"name", 0, kRequired, &C::names},
    {"ncpus", 'I', kRequired},
    {"nnodes", 'i', kRequired},
    {"noconvert", 0, kNone, &C::no_convert},
    {"nodelist", 'N', kRequired, &set_nodes<C>},
    {"noheader", 'n', kNone, &C::no_header},
    {"parsable", 'p', kNone, &C::parsable},
    {"parsable2", 'P', kNone, &C::parsable2},
    {"partition", 'r', kRequired, &C::partitions},
    {"qos", 'q', kRequired, &C::qos},
    {"reason", 'R', kRequired},
    {"starttime", 'S', kRequired, &set_sacct_start},
    {"state", 's', kRequired, &set_sacct_states},
    {"timelimit-max", 'K', kRequired},
    {"timelimit-min", 'k', kRequired},
    {"truncate", 'T', kNone, &C::truncate},
    {"uid", 'u', kRequired, &C::users},
    {"units", 0, kRequired, &C::units},
    {"usage", 0, kNone, Show::kUsage},
    {"use-local-uid", 0, kNone},
    {"user", 0, kRequired, &C::users},
    {"verbose", 'v', kNone, &C::verbose},
    {"version", 'V', kNone, Show::kVersion},
    {"wckeys", 'W', kRequired, &C::wckeys},
    {"whole-hetjob", 0, kOptional},
    {"yaml", 0, kOptional, &C::yaml},
});

// sprio, sdiag

using P = SprioCommand;
constexpr auto kSprio = std::to_array<CommandRow<P>>({
    {"cluster", 0, kRequired, &P::clusters},
    {"clusters", 'M', kRequired, &P::clusters, "SLURM_CLUSTERS"},
    {"federation", 0, kNone},
    {"format", 'o', kRequired, &P::format},
    {"help", 0, kNone, Show::kHelp},
    {"jobs", 'j', kMaybeNext, &set_jobs<P>},
    {"local", 0, kNone},
    {"long", 'l', kNone, &P::long_form},
    {"noheader", 'h', kNone, &P::no_header},
    {"norm", 'n', kNone, &P::normalized},
    {"partition", 'p', kRequired, &P::partitions},
    {"sibling", 0, kNone},
    {"sort", 'S', kRequired, &P::sort},
    {"usage", 0, kNone, Show::kUsage},
    {"user", 'u', kRequired, &P::users},
    {"users", 0, kRequired, &P::users},
    {"verbose", 'v', kNone, &P::verbose},
    {"version", 'V', kNone, Show::kVersion},
    {"weights", 'w', kNone, &P::weights},
});

template <char kOrder>
Parsed<void> set_sdiag_sort(SdiagCommand& out, const CommandSetting&) {
  out.sort = kOrder;
  return {};
}
using D = SdiagCommand;
constexpr auto kSdiag = std::to_array<CommandRow<D>>({
    {"all", 'a', kNone, &D::all},
    {"cluster", 'M', kRequired, &D::clusters, "SLURM_CLUSTERS"},
    {"help", 'h', kNone, Show::kHelp},
    {"json", 0, kOptional, &D::json},
    {"reset", 'r', kNone, &D::reset},
    {"sort-by-id", 'i', kNone, &set_sdiag_sort<'i'>},
    {"sort-by-time", 't', kNone, &set_sdiag_sort<'t'>},
    {"sort-by-time2", 'T', kNone, &set_sdiag_sort<'T'>},
    {"usage", 0, kNone, Show::kUsage},
    {"version", 'V', kNone, Show::kVersion},
    {"yaml", 0, kOptional, &D::yaml},
});

// A reader takes no words besides its options.
template <class S>
Parsed<S> parse_reader(std::span<const CommandRow<S>> rows, std::string_view program,
                       std::span<const std::string> words, const ClientContext& context,
                       bool suggest_help = true) {
  S out;
  auto operands = parse_rows(rows, program, words, context, out, suggest_help);
  if (!operands) return tl::unexpected(operands.error());
  if (!operands->empty() && out.show == Show::kNothing)
    return tl::unexpected(
        command_error(program, fmt::format("Unrecognized option: {}", operands->front())));
  return out;
}

}  // namespace

std::vector<KnownOption> known_options(std::string_view program) {
  if (program == "squeue") return known_rows(kSqueue);
  if (program == "sinfo") return known_rows(kSinfo);
  if (program == "sacct") return known_rows(kSacct);
  if (program == "sprio") return known_rows(kSprio);
  if (program == "sdiag") return known_rows(kSdiag);
  if (program == "scancel") return scancel_options();
  if (program == "scontrol") return scontrol_options();
  return {};
}

Parsed<void> append_hosts(std::vector<std::string>& nodes, const CommandSetting& setting) {
  auto names = expand_hostlist(trim(setting.value));
  if (!names) return setting.refuse("Invalid node name specified");
  for (std::string& name : *names) nodes.push_back(std::move(name));
  return {};
}

std::optional<JobName> parse_job_name(std::string_view text) {
  constexpr std::uint32_t kMaxIndex = 4'000'001;
  JobName out;
  out.text = text;
  if (auto parts = split_once(text, '.')) {
    text = parts->first;
    if (parts->second == "batch")
      out.step = kBatchStep;
    else if (parts->second == "extern")
      out.step = kExternStep;
    else if (parts->second == "interactive")
      out.step = kInteractiveStep;
    else if (auto number = parse_integer<StepId>(parts->second); number && *number >= 0)
      out.step = *number;
    else
      return std::nullopt;
  }
  if (auto parts = split_once(text, '+')) {
    if (!parse_integer<std::uint32_t>(parts->second)) return std::nullopt;
    text = parts->first;
  }
  if (auto parts = split_once(text, '_')) {
    std::string_view index = parts->second;
    if (index.starts_with('[') && index.ends_with(']')) index = index.substr(1, index.size() - 2);
    index = split(index, '%').front();  // "12_[1-5%2]", as squeue shows it
    text = parts->first;
    if (index != "*") {
      auto set = parse_index_set(index, kMaxIndex);
      if (!set || set->empty()) return std::nullopt;
      out.job.array = set->to_string();
    }
  }
  auto job = parse_integer<std::uint32_t>(text);
  if (!job || *job == 0) return std::nullopt;
  out.job.job = *job;
  return out;
}

std::optional<std::string_view> job_state_name(std::string_view word) {
  for (const StateName& one : kStates)
    if (equals_ci(one.name, word) || equals_ci(one.compact, word)) return one.name;
  // The spellings that sacct and older clients use.
  if (equals_ci(word, "CANCELED")) return "CANCELLED";
  return std::nullopt;
}

Parsed<SqueueCommand> parse_squeue(std::span<const std::string> words,
                                   const ClientContext& context) {
  return parse_reader<SqueueCommand>(kSqueue, "squeue", words, context);
}
Parsed<SinfoCommand> parse_sinfo(std::span<const std::string> words, const ClientContext& context) {
  return parse_reader<SinfoCommand>(kSinfo, "sinfo", words, context);
}
Parsed<SacctCommand> parse_sacct(std::span<const std::string> words, const ClientContext& context) {
  return parse_reader<SacctCommand>(kSacct, "sacct", words, context, false);
}
Parsed<SprioCommand> parse_sprio(std::span<const std::string> words, const ClientContext& context) {
  return parse_reader<SprioCommand>(kSprio, "sprio", words, context);
}
Parsed<SdiagCommand> parse_sdiag(std::span<const std::string> words, const ClientContext& context) {
  return parse_reader<SdiagCommand>(kSdiag, "sdiag", words, context);
}

}  // namespace tutti::slurm
