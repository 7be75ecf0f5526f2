#include "frontend/slurm/reservation_command.h"

#include <fmt/format.h>

#include <array>

#include "base/duration_text.h"
#include "base/time_text.h"
#include "frontend/slurm/command_options_parts.h"

namespace tutti::slurm {

namespace {

const UtcZone kUtc;

// Words of Slurm that are taken and do nothing here.
constexpr std::array<std::string_view, 14> kFlagsWithoutEffect{"FIRST_CORES",
                                                               "HOURLY",
                                                               "LICENSE_ONLY",
                                                               "MAGNETIC",
                                                               "NO_HOLD_JOBS",
                                                               "REPLACE",
                                                               "REPLACE_DOWN",
                                                               "STATIC_ALLOC",
                                                               "TIME_FLOAT",
                                                               "USER_DELETE",
                                                               "PURGE_COMP",
                                                               "NO_HOLD_JOBS_AFTER",
                                                               "NO_HOLD_JOBS_AFTER_END",
                                                               "SKIP"};
constexpr std::array<std::string_view, 6> kKeysWithoutEffect{
    "licenses", "license", "burstbuffer", "watts", "maxstartdelay", "skip"};

tl::unexpected<CommandError> refuse(std::string_view action, std::string_view what) {
  return tl::unexpected(CommandError{1,
                                     fmt::format("scontrol: error: {}\nNo reservation {}d.\n", what,
                                                 action == "delete" ? "delete" : action),
                                     {}});
}

std::vector<std::string> list_of(std::string_view text) {
  std::vector<std::string> out;
  for (std::string_view piece : split(text, ',', EmptyPieces::kDrop)) out.emplace_back(piece);
  return out;
}

struct Parser {
  std::string_view action;
  const ClientContext& context;
  ReservationRequest out{};

  Parsed<void> take_flags(std::string_view text) {
    out.flags.emplace();
    for (std::string_view piece : split(text, ',', EmptyPieces::kDrop)) {
      std::string word = upper(piece);
      if (auto flag = enum_from_name<ReservationFlag>(word);
          flag && *flag != ReservationFlag::kPurgeComp) {
        out.flags->push_back(*flag);
        continue;
      }
      const std::string name = word.substr(0, word.find('='));
      if (std::find(kFlagsWithoutEffect.begin(), kFlagsWithoutEffect.end(), name) ==
          kFlagsWithoutEffect.end())
        return refuse(action, fmt::format("Invalid flag: {}", piece));
      out.not_honoured.push_back("Flags=" + name);
    }
    return {};
  }

  Parsed<void> take_tres(std::string_view text) {
    for (std::string_view piece : split(text, ',', EmptyPieces::kDrop)) {
      auto parts = split_once(piece, '=');
      auto count = parts ? parse_integer<std::uint32_t>(parts->second) : std::nullopt;
      if (!count) return refuse(action, fmt::format("Invalid TRES value: {}", piece));
      if (!equals_ci(parts->first, "node"))
        return refuse(action, fmt::format("TRES={} cannot be reserved: reservations are of whole "
                                          "nodes, give Nodes, NodeCnt or TRES=node=N",
                                          piece));
      out.node_count = *count;
    }
    return {};
  }

  Parsed<void> take_time(const std::string& key, const std::string& value) {
    if (key == "duration") {
      auto length = parse_duration(value);
      if (!length) return refuse(action, fmt::format("Invalid duration: {}", value));
      out.duration = length->is_infinite() ? Duration::seconds(365 * 86400) : *length;
      return {};
    }
    auto at = parse_time(value, context.now, context.zone ? *context.zone : kUtc);
    if (!at) return refuse(action, fmt::format("Invalid time specification: {}", value));
    (key == "starttime" ? out.start : out.end) = *at;
    return {};
  }

  Parsed<void> take(const std::string& key, const std::string& value) {
    if (key == "reservation" || key == "reservationname" || key == "name")
      out.name = value;
    else if (key == "starttime" || key == "endtime" || key == "duration")
      return take_time(key, value);
    else if (key == "nodes" || key == "nodelist")
      out.nodes = value;
    else if (key == "nodecnt" || key == "nodecount") {
      out.node_count = parse_integer<std::uint32_t>(value);
      if (!out.node_count) return refuse(action, fmt::format("Invalid node count: {}", value));
    } else if (key == "partitionname" || key == "partition")
      out.partition = value;
    else if (key == "features" || key == "feature")
      out.features = value;
    else if (key == "users" || key == "user")
      out.users = list_of(value);
    else if (key == "accounts" || key == "account")
      out.accounts = list_of(value);
    else if (key == "groups" || key == "group")
      out.groups = list_of(value);
    else if (key == "comment")
      out.comment = value;
    else if (key == "flags" || key == "flag")
      return take_flags(value);
    else if (key.starts_with("tres"))
      return take_tres(value);
    else if (key == "corecnt")
      return refuse(action, "CoreCnt cannot be reserved: reservations are of whole nodes");
    else if (std::find(kKeysWithoutEffect.begin(), kKeysWithoutEffect.end(), key) !=
             kKeysWithoutEffect.end())
      out.not_honoured.push_back(key + "=" + value);
    else
      return refuse(action, fmt::format("Unknown parameter {}", key));
    return {};
  }
};

Parsed<void> check(const ReservationRequest& request) {
  if (request.action != "create") return {};
  if (!request.start || (!request.end && !request.duration))
    return refuse("create", "A reservation must have a start and an end time or a duration.");
  if (!request.nodes && !request.node_count)
    return refuse("create", "You must specify a node list or a node count (Nodes, NodeCnt).");
  if (!request.users && !request.accounts && !request.groups)
    return refuse("create", "Either Users/Groups and/or Accounts must be specified.");
  return {};
}

}  // namespace

Parsed<ReservationRequest> parse_reservation(std::string_view action,
                                             std::span<const std::string> words,
                                             const ClientContext& context) {
  Parser parser{action, context};
  parser.out.action = std::string(action);
  for (const std::string& word : words) {
    auto parts = split_once(word, '=');
    // "create reservation NAME": the entity alone.
    if (!parts && word.size() >= 3 && starts_with_ci("reservationname", word)) continue;
    if (!parts && action == "delete") {
      parser.out.name = word;
      continue;
    }
    if (!parts) return refuse(action, fmt::format("Invalid input: {}", word));
    std::string key = lower(parts->first);
    if (!key.empty() && (key.back() == '+' || key.back() == '-'))
      return refuse(action, fmt::format("{}= is not supported: give the whole list", parts->first));
    if (auto done = parser.take(key, std::string(parts->second)); !done)
      return tl::unexpected(done.error());
  }
  if (action != "create" && parser.out.name.empty())
    return refuse(action, "Reservation must be given");
  if (auto done = check(parser.out); !done) return tl::unexpected(done.error());
  return std::move(parser.out);
}

}  // namespace tutti::slurm
