#include <array>

#include "base/dependency_text.h"
#include "base/duration_text.h"
#include "base/time_text.h"
#include "frontend/slurm/command_options_parts.h"
#include "frontend/slurm/reservation_command.h"
#include "model/event.h"

namespace tutti::slurm {
namespace {

using enum Argument;
using S = ScontrolCommand;
const UtcZone kUtc;

constexpr auto kRows = std::to_array<CommandRow<S>>({
    {"all", 'a', kNone, &S::all, "SCONTROL_ALL"},
    {"cluster", 0, kRequired, &S::clusters},
    {"clusters", 'M', kRequired, &S::clusters, "SLURM_CLUSTERS"},
    {"details", 'd', kNone, &S::details},
    {"federation", 0, kNone},
    {"future", 'F', kNone, &S::future},
    {"help", 'h', kNone, Show::kHelp},
    {"hide", 0, kNone},
    {"json", 0, kOptional, &S::json},
    {"local", 0, kNone},
    {"oneliner", 'o', kNone, &S::one_line},
    {"quiet", 'Q', kNone, &S::quiet},
    {"sibling", 0, kNone},
    {"uid", 'u', kRequired},
    {"usage", 0, kNone, Show::kUsage},
    {"verbose", 'v', kNone, &S::verbose},
    {"version", 'V', kNone, Show::kVersion},
    {"yaml", 0, kOptional, &S::yaml},
});

struct Keyword {
  std::string_view word;
  ScontrolVerb verb;
};
constexpr auto kEntities = std::to_array<Keyword>({
    {"aliases", ScontrolVerb::kShowAliases},
    {"config", ScontrolVerb::kShowConfig},
    {"configuration", ScontrolVerb::kShowConfig},
    {"daemons", ScontrolVerb::kShowDaemons},
    {"hostnames", ScontrolVerb::kShowHostNames},
    {"hostlistsorted", ScontrolVerb::kShowHostListSorted},
    {"hostlist", ScontrolVerb::kShowHostList},
    {"jobs", ScontrolVerb::kShowJobs},
    {"jobid", ScontrolVerb::kShowJobs},
    {"licenses", ScontrolVerb::kShowLicenses},
    {"nodes", ScontrolVerb::kShowNodes},
    {"partitions", ScontrolVerb::kShowPartitions},
    {"partitionname", ScontrolVerb::kShowPartitions},
    {"reservations", ScontrolVerb::kShowReservations},
    {"reservationname", ScontrolVerb::kShowReservations},
    {"steps", ScontrolVerb::kShowSteps},
    {"topology", ScontrolVerb::kShowTopology},
});

tl::unexpected<CommandError> refuse(std::string text) {
  return tl::unexpected(CommandError{1, std::move(text), {}});
}

// A keyword by prefix; three letters are always enough.
bool matches(std::string_view word, std::string_view keyword) {
  return (word.size() >= 3 || word.size() == keyword.size()) && starts_with_ci(keyword, word);
}
// The exact keyword goes before one that it is a prefix of ("hostlist", "hostlistsorted").
const Keyword* find_entity(std::string_view word) {
  for (const Keyword& one : kEntities)
    if (equals_ci(word, one.word)) return &one;
  for (const Keyword& one : kEntities)
    if (matches(word, one.word)) return &one;
  return nullptr;
}

Parsed<void> add_jobs(ScontrolCommand& out, std::string_view text) {
  for (std::string_view piece : split_outside_brackets(text, ',', EmptyPieces::kDrop)) {
    auto job = parse_job_name(trim(piece));
    if (!job || job->step)
      return refuse(fmt::format("Invalid job id specified for job {}\n", trim(piece)));
    out.action.jobs.push_back(job->job);
    out.job_names.push_back(job->text);
  }
  return {};
}

struct KeyValue {
  std::string key;  // lower case
  std::string_view value, text;
  char sign = 0;  // "TimeLimit+=10"
};

Parsed<std::vector<KeyValue>> key_values(std::span<const std::string> words) {
  std::vector<KeyValue> out;
  for (const std::string& word : words) {
    auto parts = split_once(word, '=');
    if (!parts) return refuse(fmt::format("Invalid input: {}\nRequest aborted\n", word));
    KeyValue one{lower(parts->first), parts->second, word, 0};
    if (!one.key.empty() && (one.key.back() == '+' || one.key.back() == '-')) {
      one.sign = one.key.back();
      one.key.pop_back();
    }
    out.push_back(std::move(one));
  }
  return out;
}

std::vector<Dependency> model_dependencies(const DependencyList& list) {
  std::vector<Dependency> out;
  for (const DependencyTerm& term : list.dependencies) {
    auto kind = enum_from_name<DependencyKind>(dependency_word_name(term.kind))
                    .value_or(DependencyKind::kAfterAny);
    if (term.jobs.empty()) out.push_back({kind, 0, std::nullopt, 0});
    for (const JobReference& job : term.jobs) out.push_back({kind, job.job, job.task, job.minutes});
  }
  return out;
}

Parsed<void> set_job_value(WorkloadChanged& change, const KeyValue& one,
                           const ClientContext& context) {
  const std::string& key = one.key;
  std::string value(one.value);
  auto number = parse_integer<std::uint32_t>(value);
  if (key == "timelimit") {
    auto limit = parse_time_limit(value);
    if (!limit || one.sign) return refuse("scontrol: error: Invalid TimeLimit value\n");
    change.time_limit = *limit;
  } else if (key == "priority") {
    if (!number) return refuse(fmt::format("scontrol: error: Invalid Priority value: {}\n", value));
    // 0 holds, as `scontrol hold` does.
    if (*number == 0)
      change.hold = Hold::kUser;
    else if (*number >= kNoLimit - 1)
      change.clear_priority = true;
    else
      change.priority = *number;
  } else if (key == "nice") {
    auto nice = parse_integer<std::int32_t>(value);
    if (!nice) return refuse(fmt::format("scontrol: error: Invalid nice value: {}\n", value));
    change.nice = *nice;
  } else if (key == "partition") {
    change.partitions.emplace();
    append_list(*change.partitions, value);
  } else if (key == "name" || key == "jobname") {
    change.name = value;
  } else if (key == "comment") {
    change.comment = value;
  } else if (key == "admincomment") {
    change.admin_comment = value;
  } else if (key == "account") {
    change.account = value;
  } else if (key == "qos") {
    change.qos = value;
  } else if (key == "arraytaskthrottle") {
    if (!number)
      return refuse(fmt::format("scontrol: error: Invalid ArrayTaskThrottle value: {}\n", value));
    change.array_throttle = *number;
  } else if (key == "requeue") {
    if (!number || *number > 1)
      return refuse(fmt::format("scontrol: error: Invalid Requeue value: {}\n", value));
    change.requeue = *number == 1;
  } else if (key == "starttime" || key == "eligibletime") {
    const TimeZone& zone = context.zone ? *context.zone : kUtc;
    auto at = parse_time(value, context.now, zone);
    if (!at) return refuse(fmt::format("Invalid time specification (pos=0): {}\n", value));
    change.begin = *at;
  } else if (key == "dependency") {
    change.dependencies.emplace();
    auto list = parse_dependencies(value);
    if (!list && !value.empty()) return refuse("Job dependency problem for job update\n");
    if (list) change.dependencies = model_dependencies(*list);
  } else {
    return refuse(
        fmt::format("Update of this parameter is not supported: {}\nRequest aborted\n", one.text));
  }
  return {};
}

Parsed<void> update_job(ScontrolCommand& out, const std::vector<KeyValue>& values,
                        const ClientContext& context) {
  out.verb = ScontrolVerb::kAct;
  out.action.verb = Verb::kUpdate;
  WorkloadChanged change;
  for (const KeyValue& one : values) {
    bool names = one.key == "jobid" || one.key == "job";
    auto done = names ? add_jobs(out, one.value) : set_job_value(change, one, context);
    if (!done) return done;
  }
  out.action.change = to_json(change);
  return {};
}

Parsed<void> update_node(ScontrolCommand& out, const std::vector<KeyValue>& values) {
  out.verb = ScontrolVerb::kUpdateNode;
  for (const KeyValue& one : values) {
    if (one.key.starts_with("node") && one.key != "nodeaddr" && one.key != "nodehostname") {
      out.node.nodes = one.value;
    } else if (one.key == "reason") {
      out.node.reason = one.value;
    } else if (one.key == "state") {
      std::string state = lower(one.value);
      if (state == "idle") state = "resume";
      if (state != "drain" && state != "resume" && state != "down" && state != "undrain")
        return refuse(
            fmt::format("Invalid input: {}\nRequest aborted\nValid states are: NoResp DRAIN FAIL "
                        "FUTURE RESUME POWER_DOWN POWER_UP UNDRAIN\nNot all states are valid given "
                        "a node's prior state\n",
                        one.text));
      out.node.action = state;
    } else {
      return refuse(fmt::format("Update of this parameter is not supported: {}\nRequest aborted\n",
                                one.text));
    }
  }
  if ((out.node.action == "drain" || out.node.action == "down") && out.node.reason.empty())
    return refuse("You must specify a reason when DOWNING or DRAINING a node. Request denied\n");
  return {};
}

Parsed<void> update_partition(ScontrolCommand& out, const std::vector<KeyValue>& values) {
  out.verb = ScontrolVerb::kUpdatePartition;
  for (const KeyValue& one : values) {
    if (one.key.starts_with("partition")) {
      out.partition.partition = one.value;
      continue;
    }
    if (one.key != "state")
      return refuse(fmt::format("Update of this parameter is not supported: {}\nRequest aborted\n",
                                one.text));
    auto state = enum_from_name<PartitionState>(lower(one.value));
    if (!state)
      return refuse(
          fmt::format("scontrol: error: Invalid input: {}\nscontrol: error: Acceptable State "
                      "values are UP, DOWN, DRAIN and INACTIVE\nslurm_update error: No error\n",
                      one.text));
    out.partition.state = *state;
  }
  return {};
}

Parsed<void> change_reservation(ScontrolCommand& out, std::string_view action,
                                std::span<const std::string> words, const ClientContext& context) {
  auto request = parse_reservation(action, words, context);
  if (!request) return tl::unexpected(request.error());
  out.verb = ScontrolVerb::kReservation;
  out.reservation = std::move(*request);
  return {};
}

// create and delete: reservations only; partitions come from the configuration.
Parsed<void> parse_create(ScontrolCommand& out, std::string_view action,
                          std::span<const std::string> words, std::string_view keyword,
                          const ClientContext& context) {
  if (words.empty()) return refuse(fmt::format("too few arguments for keyword:{}\n", keyword));
  if (!starts_with_ci(words[0], "res"))
    return refuse(fmt::format("Invalid entity: {} for keyword:{} \n",
                              words[0].substr(0, words[0].find('=')), keyword));
  return change_reservation(out, action, words, context);
}

Parsed<void> parse_update(ScontrolCommand& out, std::span<const std::string> words,
                          const ClientContext& context) {
  auto values = key_values(words);
  if (!values) return tl::unexpected(values.error());
  for (const KeyValue& one : *values) {
    if (one.key == "reservation" || one.key == "reservationname")
      return change_reservation(out, "update", words, context);
    if (one.key == "jobid" || one.key == "job") return update_job(out, *values, context);
    if (one.key == "nodename" || one.key == "node" || one.key == "nodes")
      return update_node(out, *values);
    if (one.key == "partitionname" || one.key == "partition") return update_partition(out, *values);
  }
  return refuse(
      "No valid entity in update command\nInput line must include \"NodeName\", "
      "\"PartitionName\", \"Reservation\", \"JobId\", or \"SlurmctldDebug\"\n");
}

Parsed<void> parse_show(ScontrolCommand& out, std::span<const std::string> words,
                        std::string_view keyword, const ClientContext& context) {
  if (words.empty()) return refuse(fmt::format("too few arguments for keyword:{}\n", keyword));
  std::string_view entity = words[0];
  // "show hostnames=LIST" and "show job=12" have the name behind "=".
  if (auto parts = split_once(entity, '=')) {
    entity = parts->first;
    out.arguments.emplace_back(parts->second);
  }
  for (const std::string& word : words.subspan(1)) out.arguments.push_back(word);
  const Keyword* found = find_entity(entity);
  if (!found) return refuse(fmt::format("invalid entity:{} for keyword:{} \n", words[0], keyword));
  out.verb = found->verb;
  bool hosts = out.verb == ScontrolVerb::kShowHostNames ||
               out.verb == ScontrolVerb::kShowHostList ||
               out.verb == ScontrolVerb::kShowHostListSorted;
  if (hosts && out.arguments.empty()) {
    auto list = context.environment.get("SLURM_JOB_NODELIST");
    if (!list) list = context.environment.get("SLURM_NODELIST");
    if (!list || list->empty()) return refuse("scontrol: error: host list is empty\n");
    out.arguments.emplace_back(*list);
  }
  if (out.verb == ScontrolVerb::kShowJobs)
    for (const std::string& job : out.arguments)
      for (std::string_view piece : split_outside_brackets(job, ',', EmptyPieces::kDrop))
        if (!parse_job_name(piece))
          return refuse("scontrol_print_job error: Invalid job id specified\n");
  return {};
}

Parsed<void> parse_action(ScontrolCommand& out, Verb verb, std::span<const std::string> words,
                          std::string_view keyword, const ClientContext& context) {
  if (words.empty()) return refuse(fmt::format("too few arguments for keyword:{}\n", keyword));
  out.verb = ScontrolVerb::kAct;
  out.action.verb = verb;
  // An operator's hold is his own unless it is "uhold".
  out.action.admin_hold = verb == Verb::kHold && context.uid == 0 && !equals_ci(keyword, "uhold");
  for (const std::string& word : words) {
    std::string_view names = word;
    if (auto parts = split_once(word, '=')) {
      if (equals_ci(parts->first, "state")) continue;  // requeuehold State=SpecialExit
      if (equals_ci(parts->first, "jobname") || equals_ci(parts->first, "name")) {
        out.action.name = parts->second;
        continue;
      }
      names = parts->second;
    }
    if (auto done = add_jobs(out, names); !done) return done;
  }
  return {};
}

struct ActionWord {
  std::string_view word;
  Verb verb;
};
constexpr auto kActions = std::to_array<ActionWord>({{"hold", Verb::kHold},
                                                     {"holdjob", Verb::kHold},
                                                     {"uhold", Verb::kHold},
                                                     {"release", Verb::kRelease},
                                                     {"requeue", Verb::kRequeue},
                                                     {"requeuehold", Verb::kRequeueHold},
                                                     {"top", Verb::kTop}});
constexpr auto kPlain = std::to_array<Keyword>({{"help", ScontrolVerb::kHelp},
                                                {"version", ScontrolVerb::kVersion},
                                                {"ping", ScontrolVerb::kPing},
                                                {"reconfigure", ScontrolVerb::kReconfigure},
                                                {"shutdown", ScontrolVerb::kShutdown},
                                                {"write", ScontrolVerb::kWriteBatchScript},
                                                {"wait_job", ScontrolVerb::kWaitJob},
                                                {"listpids", ScontrolVerb::kListPids}});

}  // namespace

std::vector<KnownOption> scontrol_options() { return known_rows(kRows); }

std::vector<std::string_view> scontrol_keywords() {
  std::vector<std::string_view> words{"show", "update", "create", "delete"};
  for (const ActionWord& one : kActions) words.push_back(one.word);
  for (const Keyword& one : kPlain) words.push_back(one.word);
  return words;
}

Parsed<ScontrolCommand> parse_scontrol(std::span<const std::string> words,
                                       const ClientContext& context) {
  ScontrolCommand out;
  auto operands =
      parse_rows<S>(std::span<const CommandRow<S>>(kRows), "scontrol", words, context, out);
  if (!operands) return tl::unexpected(operands.error());
  if (out.show != Show::kNothing || operands->empty()) return out;
  const std::string& keyword = operands->front();
  std::span<const std::string> rest = std::span<const std::string>(*operands).subspan(1);
  auto finish = [&](Parsed<void> done) -> Parsed<ScontrolCommand> {
    if (!done) return tl::unexpected(done.error());
    return std::move(out);
  };
  for (const ActionWord& one : kActions)
    if (equals_ci(keyword, one.word))
      return finish(parse_action(out, one.verb, rest, keyword, context));
  if (matches(keyword, "show")) return finish(parse_show(out, rest, keyword, context));
  if (matches(keyword, "update")) {
    if (rest.empty()) return refuse(fmt::format("too few arguments for keyword:{}\n", keyword));
    return finish(parse_update(out, rest, context));
  }
  if (matches(keyword, "create"))
    return finish(parse_create(out, "create", rest, keyword, context));
  if (matches(keyword, "delete"))
    return finish(parse_create(out, "delete", rest, keyword, context));
  for (const ActionWord& one : kActions)
    if (matches(keyword, one.word))
      return finish(parse_action(out, one.verb, rest, keyword, context));
  for (const Keyword& one : kPlain)
    if (matches(keyword, one.word)) {
      out.verb = one.verb;
      out.arguments.assign(rest.begin(), rest.end());
      return out;
    }
  return refuse(fmt::format("invalid keyword: {}\n", keyword));
}

}  // namespace tutti::slurm
