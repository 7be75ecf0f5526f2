#include "controller/reservation_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/hostlist.h"
#include "base/node_constraint.h"
#include "base/text.h"
#include "model/reasons.h"

namespace tutti::controller {

namespace {

using F = ReservationFlag;
constexpr std::int64_t kDaySeconds = 86400;

tl::unexpected<Error> refused(std::string_view reason, std::string message,
                              ErrorCode code = ErrorCode::kInvalid) {
  return fail(code, std::move(message), std::string(reason));
}

bool overlaps(Instant a, Instant a_end, Instant b, Instant b_end) { return a < b_end && b < a_end; }

// Nodes that somebody holds beyond `start`, of those that the reservation would take.
std::set<std::string> busy_nodes(const ClusterState& state, const Agenda& agenda,
                                 const Reservation& reservation, Instant now) {
  std::set<std::string> out;
  for (std::uint32_t id : agenda.active) {
    const Gang* gang = state.gangs.find(id);
    const WorkloadEntry* entry = gang ? state.workloads.find(gang->workload.value()) : nullptr;
    if (!entry || entry->workload.extras->reservation == reservation.name) continue;
    const Instant end = gang->limit_end.is_set() ? gang->limit_end : Instant::never();
    if (!overlaps(now, end, reservation.start, reservation.end)) continue;
    for (const Slot& slot : gang->slots)
      if (!slot.released && slot.node < state.spec->nodes.size())
        out.insert(state.spec->nodes[slot.node].name);
  }
  return out;
}

// Of other reservations at that time. MAINT and OVERLAP let be.
std::set<std::string> reserved_nodes(const ClusterState& state, const Reservation& reservation) {
  std::set<std::string> out;
  for (const Reservation& other : state.reservations->all) {
    if (other.name == reservation.name || other.has(F::kMaint) || other.has(F::kOverlap)) continue;
    if (overlaps(other.start, other.end, reservation.start, reservation.end))
      out.insert(other.nodes.begin(), other.nodes.end());
  }
  return out;
}

const PartitionSpec* find_partition(const ClusterSpec& spec, const std::string& name) {
  for (const PartitionSpec& partition : spec.partitions)
    if (partition.name == name) return &partition;
  return nullptr;
}

// Nodes it may be made of, in the cluster's order.
Result<std::vector<std::string>> possible_nodes(const ClusterSpec& spec,
                                                const Reservation& reservation) {
  std::set<std::string> members;
  if (!reservation.partition.empty()) {
    const PartitionSpec* partition = find_partition(spec, reservation.partition);
    if (!partition)
      return refused(reason::kInvalidPartition,
                     fmt::format("partition {} is not configured", reservation.partition));
    members.insert(partition->nodes.begin(), partition->nodes.end());
  }
  std::optional<NodeConstraint> features;
  if (!reservation.features.empty()) {
    auto parsed = parse_node_constraint(reservation.features);
    if (!parsed) return refused(reason::kInvalidFeature, parsed.error().message);
    features = std::move(*parsed);
  }
  std::vector<std::string> out;
  for (const NodeSpec& node : spec.nodes) {
    if (!members.empty() && !members.contains(node.name)) continue;
    const auto has = [&](std::string_view feature) {
      return std::find(node.features.begin(), node.features.end(), feature) != node.features.end();
    };
    if (features && !node_may_serve(*features, has)) continue;
    out.push_back(node.name);
  }
  return out;
}

void set_flag(Reservation& reservation, F flag) {
  if (!reservation.has(flag)) reservation.flags.push_back(flag);
}

Status take_times(Reservation& out, const ReservationRequest& request, Instant now) {
  if (request.start) {
    // A start that has passed by a little is now ("now" took a moment to get here).
    if (*request.start + Duration::minutes(1) < now && request.action == "create")
      return refused(reason::kInvalidTime, "the reservation would start in the past");
    const Duration length = out.end - out.start;
    out.start = request.start->is_set() ? *request.start : now;
    if (!request.end && !request.duration) out.end = out.start + length;
  }
  if (request.end) out.end = *request.end;
  if (request.duration) out.end = out.start + *request.duration;
  if (!out.start.is_set() || !out.end.is_set())
    return refused(reason::kInvalidTime, "a reservation needs a start and an end or a duration");
  if (out.end <= out.start || out.end <= now)
    return refused(reason::kInvalidTime, "the reservation would end before it starts, or is over");
  if (next_occurrence(out, out.end) &&
      out.end - out.start > Duration::seconds(out.has(F::kWeekly) ? 7 * kDaySeconds : kDaySeconds))
    return refused(reason::kInvalidTime,
                   "the reservation is longer than the time after which it repeats");
  return {};
}

Status take_nodes(Reservation& out, const ClusterState& state, const Agenda& agenda,
                  const ReservationRequest& request, Instant now) {
  auto possible = possible_nodes(*state.spec, out);
  if (!possible) return tl::unexpected<Error>(possible.error());
  const bool exempt = out.has(F::kMaint) || out.has(F::kOverlap);
  const std::set<std::string> taken = exempt ? std::set<std::string>() : reserved_nodes(state, out);
  const std::set<std::string> busy =
      out.has(F::kIgnoreJobs) ? std::set<std::string>() : busy_nodes(state, agenda, out, now);
  std::vector<std::string> nodes = out.nodes;
  if (request.nodes && equals_ci(*request.nodes, "all")) {
    nodes = *possible;
    set_flag(out, out.partition.empty() ? F::kAllNodes : F::kPartNodes);
  } else if (request.nodes) {
    auto named = expand_hostlist(*request.nodes);
    if (!named) return refused(reason::kInvalidNode, named.error().message);
    for (const std::string& name : *named)
      if (std::none_of(state.spec->nodes.begin(), state.spec->nodes.end(),
                       [&](const NodeSpec& node) { return node.name == name; }))
        return refused(reason::kInvalidNode, fmt::format("node {} is not configured", name));
    std::set<std::string> wanted(named->begin(), named->end());
    nodes.clear();
    for (const NodeSpec& node : state.spec->nodes)
      if (wanted.contains(node.name)) nodes.push_back(node.name);
    set_flag(out, F::kSpecNodes);
  } else if (request.node_count) {
    nodes.clear();
    for (const std::string& name : *possible)
      if (nodes.size() < *request.node_count && !taken.contains(name) && !busy.contains(name))
        nodes.push_back(name);
    if (nodes.size() < *request.node_count)
      return refused(
          reason::kNodesBusy,
          fmt::format("{} nodes are asked for; {} are free of jobs and reservations then",
                      *request.node_count, nodes.size()),
          ErrorCode::kConflict);
  }
  if (nodes.empty()) return refused(reason::kInvalidNode, "a reservation needs nodes");
  for (const std::string& name : nodes) {
    if (taken.contains(name))
      return refused(reason::kReservationOverlap,
                     fmt::format("node {} is in another reservation at that time", name),
                     ErrorCode::kConflict);
    if (busy.contains(name))
      return refused(reason::kNodesBusy,
                     fmt::format("node {} is used by a job that may run into it", name),
                     ErrorCode::kConflict);
  }
  out.nodes = std::move(nodes);
  return {};
}

std::string new_name(const ClusterState& state, const Reservation& made) {
  std::string base = !made.users.empty()      ? made.users.front()
                     : !made.accounts.empty() ? made.accounts.front()
                     : !made.groups.empty()   ? made.groups.front()
                                              : "resv";
  for (std::uint32_t i = 1;; ++i)
    if (std::string name = fmt::format("{}_{}", base, i); !state.reservations->find(name))
      return name;
}

// Whether a list of names, some of them with "-" before, lets `matches` in. An empty list does.
bool lets_in(const std::vector<std::string>& list,
             const std::function<bool(const std::string&)>& matches) {
  if (list.empty()) return true;
  bool named = false, any_positive = false;
  for (const std::string& entry : list) {
    if (!entry.empty() && entry.front() == '-') {
      if (matches(entry.substr(1))) return false;
      continue;
    }
    any_positive = true;
    named = named || matches(entry);
  }
  return named || !any_positive;
}

}  // namespace

Result<Reservation> make_reservation(const ClusterState& state, const Agenda& agenda,
                                     const ReservationRequest& request, Instant now) {
  Reservation out;
  const Reservation* known = state.reservations->find(request.name);
  if (request.action == "update") {
    if (!known)
      return refused(reason::kInvalidReservation,
                     fmt::format("there is no reservation {}", request.name), ErrorCode::kNotFound);
    out = *known;
  } else if (known) {
    return refused(reason::kReservationName,
                   fmt::format("there is a reservation {} already", request.name),
                   ErrorCode::kConflict);
  }
  out.name = request.name;
  if (request.users) out.users = *request.users;
  if (request.accounts) out.accounts = *request.accounts;
  if (request.groups) out.groups = *request.groups;
  if (request.partition) out.partition = *request.partition;
  if (request.features) out.features = *request.features;
  if (request.comment) out.comment = *request.comment;
  if (request.flags) out.flags = *request.flags;
  if (request.purge_after) out.purge_after = *request.purge_after;
  out.not_honoured = request.not_honoured;
  if (Status times = take_times(out, request, now); !times)
    return tl::unexpected<Error>(times.error());
  if (Status nodes = take_nodes(out, state, agenda, request, now); !nodes)
    return tl::unexpected<Error>(nodes.error());
  std::sort(out.flags.begin(), out.flags.end());
  if (out.name.empty()) out.name = new_name(state, out);
  return out;
}

Status may_use(const ClusterState& state, const Workload& workload, const InGroup& in_group,
               Instant now) {
  const std::string& name = workload.extras->reservation;
  if (name.empty()) return {};
  const Reservation* found = state.reservations->find(name);
  if (!found || (found->end <= now && !next_occurrence(*found, now)))
    return refused(reason::kInvalidReservation, fmt::format("there is no reservation {}", name),
                   ErrorCode::kNotFound);
  const bool nobody = found->users.empty() && found->accounts.empty() && found->groups.empty();
  const bool user = lets_in(found->users, [&](const std::string& x) { return x == workload.user; });
  const bool account =
      lets_in(found->accounts, [&](const std::string& x) { return x == workload.account; });
  if (!nobody && user && account && lets_in(found->groups, in_group)) return {};
  return refused(reason::kReservationAccess,
                 fmt::format("user {} may not use reservation {}", workload.user, name),
                 ErrorCode::kDenied);
}

bool is_used(const ClusterState& state, const Agenda& agenda, const std::string& name) {
  const auto names_it = [&](std::uint32_t id) {
    const WorkloadEntry* entry = state.workloads.find(id);
    return entry && entry->workload.extras->reservation == name;
  };
  for (std::uint32_t id : agenda.pending)
    if (names_it(id)) return true;
  for (std::uint32_t id : agenda.active)
    if (const Gang* gang = state.gangs.find(id); gang && names_it(gang->workload.value()))
      return true;
  return false;
}

std::optional<Reservation> next_occurrence(const Reservation& reservation, Instant now) {
  const bool weekdays = reservation.has(F::kWeekday), weekends = reservation.has(F::kWeekend);
  const bool daily = reservation.has(F::kDaily) || weekdays || weekends;
  if (!daily && !reservation.has(F::kWeekly)) return std::nullopt;
  const Duration period = Duration::seconds(daily ? kDaySeconds : 7 * kDaySeconds);
  Reservation out = reservation;
  // 1970-01-01 was a Thursday.
  const auto is_weekend = [](Instant at) {
    return (at.whole_seconds() / kDaySeconds + 3) % 7 >= 5;
  };
  while (out.end <= now || (weekdays && is_weekend(out.start)) ||
         (weekends && !is_weekend(out.start))) {
    out.start = out.start + period;
    out.end = out.end + period;
  }
  return out;
}

}  // namespace tutti::controller
