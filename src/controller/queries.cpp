#include "controller/queries.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <set>

#include "base/index_set.h"
#include "base/text.h"
#include "controller/job_lookup.h"
#include "controller/waits.h"
#include "model/reasons.h"

namespace tutti::controller {

namespace {

std::vector<std::string> list_of(const Query& query, const std::string& name) {
  std::vector<std::string> result;
  auto it = query.find(name);
  if (it == query.end()) return result;
  std::string_view rest = it->second;
  while (!rest.empty()) {
    std::size_t comma = rest.find(',');
    if (comma != 0) result.emplace_back(rest.substr(0, comma));
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  return result;
}

bool passes(const std::vector<std::string>& list, const std::string& value) {
  return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
}

std::optional<Wait> wait_for(const Waits& waits, const WorkloadEntry& entry, const Gang* gang) {
  const Waits::Found found = waits.find(entry, gang);
  Wait wait;
  if (found.told) wait = *found.told;
  wait.reason = found.reason;
  wait.planned_start = found.planned_start;
  if (found.promise) {
    wait.planned_nodes.clear();
    for (NodeIndex node : found.promise->nodes)
      wait.planned_nodes.push_back(waits.picture().state.spec->nodes[node].name);
  }
  return wait;
}

std::vector<std::string> node_names(const ClusterState& state, const Gang& gang) {
  std::vector<std::string> names;
  names.reserve(gang.slots.size());
  for (const Slot& slot : gang.slots)
    names.push_back(slot.node < state.spec->nodes.size() ? state.spec->nodes[slot.node].name : "?");
  return names;
}

void leave_reason(std::optional<Wait>& wait) {
  if (!wait) return;
  wait->text.clear();
  wait->blockers.clear();
}

std::vector<NodeView> node_views(const Published& picture, Instant now) {
  const ClusterState& state = picture.state;
  std::vector<NodeView> views(state.spec->nodes.size());
  for (NodeIndex i = 0; i < views.size(); ++i) {
    views[i].spec = state.spec->nodes[i];
    if (const NodeState* node = state.node(i)) views[i].state = *node;
  }
  state.gangs.for_each([&](std::uint32_t, const Gang& gang) {
    if (gang.state == GangState::kPending || gang.state == GangState::kDone) return;
    for (const Slot& slot : gang.slots) {
      if (slot.released || slot.node >= views.size()) continue;
      NodeView& view = views[slot.node];
      view.cpus_allocated += static_cast<std::uint32_t>(slot.cpu_ids.size());
      view.memory_mib_allocated += slot.memory_mib;
      view.gpus_allocated.insert(view.gpus_allocated.end(), slot.gpus.begin(), slot.gpus.end());
      view.ending |= gang.state == GangState::kEnding;
      view.exclusive |= slot.exclusive;
    }
  });
  for (NodeView& view : views) std::sort(view.gpus_allocated.begin(), view.gpus_allocated.end());
  for (const scheduler::Promise& promise : picture.pass->promises)
    for (NodeIndex node : promise.nodes)
      if (node < views.size()) views[node].planned = true;
  for (const Reservation& reservation : state.reservations->all) {
    if (!reservation.is_active(now)) continue;
    std::set<std::string_view> nodes(reservation.nodes.begin(), reservation.nodes.end());
    for (NodeView& view : views) {
      if (!nodes.contains(view.spec.name)) continue;
      view.reservation = reservation.name;
      view.maintenance |= reservation.has(ReservationFlag::kMaint);
    }
  }
  return views;
}

bool shows(const std::vector<std::string>& states, std::string_view state) {
  if (states.empty()) return state != "done";
  return std::find(states.begin(), states.end(), "all") != states.end() ||
         std::find(states.begin(), states.end(), state) != states.end();
}

std::string_view group_of(const Gang& gang) {
  switch (gang.state) {
    case GangState::kPending:
      return "pending";
    case GangState::kDone:
      return "done";
    default:
      return "running";
  }
}

}  // namespace

Result<std::vector<JobName>> parse_job_names(const std::string& text) {
  std::vector<JobName> names;
  std::size_t at = 0;
  while (at < text.size()) {
    JobName name;
    auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), name.job);
    if (error != std::errc()) return invalid(fmt::format("Invalid job id: {}", text.substr(at)));
    at = static_cast<std::size_t>(end - text.data());
    if (at < text.size() && text[at] == '_') {
      std::size_t stop = ++at;
      if (at < text.size() && text[at] == '[') {
        stop = text.find(']', at);
        if (stop == std::string::npos) return invalid(fmt::format("Invalid job id: {}", text));
        name.array = text.substr(at + 1, stop - at - 1);
        ++stop;
      } else {
        while (stop < text.size() && text[stop] != ',') ++stop;
        name.array = text.substr(at, stop - at);
      }
      at = stop;
    }
    if (at < text.size() && text[at] != ',') return invalid(fmt::format("Invalid job id: {}", text.substr(at)));
    if (at < text.size()) ++at;
    names.push_back(std::move(name));
  }
  return names;
}

WorkloadView view_of(const Published& picture, const WorkloadEntry& entry, Instant now) {
  return view_of(Waits(picture, now), entry, scheduler::priority_basis(picture.state, now));
}

WorkloadView view_of(const Waits& waits, const WorkloadEntry& entry, const scheduler::PriorityBasis& basis) {
  const ClusterState& state = waits.picture().state;
  const Instant now = waits.now();
  WorkloadView view;
  view.workload = entry.workload;
  // Half of the text, and of use only to who runs it.
  view.workload.launch.limits = {};
  view.workload.launch.environment = {};
  view.unstarted = entry.unstarted.to_string();
  view.simple_unstarted = entry.simple_unstarted;
  for (GangId id : entry.gangs) {
    const Gang* gang = state.gangs.find(id.value());
    if (!gang) continue;
    GangView g{*gang, node_names(state, *gang), {}};
    if (gang->state == GangState::kPending) g.wait = wait_for(waits, entry, gang);
    view.gangs.push_back(std::move(g));
  }
  if (entry.has_unstarted()) view.wait = wait_for(waits, entry, nullptr);
  view.priority = scheduler::priority_of(basis, *state.spec, entry, now);
  if (const PartitionSpec* partition = partition_of(*state.spec, entry.workload)) {
    view.time_limit = scheduler::time_limit_in(*partition, entry.workload);
    view.partition = partition->name;
  } else {
    view.time_limit = entry.workload.time_limit.value_or(Duration::infinite());
  }
  view.outcome = entry.outcome;
  view.ended_by_uid = entry.ended_by_uid;
  view.ended = entry.ended;
  view.eligible = eligible_time(entry.workload);
  return view;
}

namespace {
using Chosen = std::map<std::uint32_t, std::set<std::uint32_t>>;  // workload -> gangs or itself

// What the parameter jobs= names; numbers that nobody has go to `unknown`.
Result<Chosen> chosen_jobs(const ClusterState& state, const std::string& text,
                           std::vector<std::uint32_t>& unknown) {
  auto wanted = parse_job_names(text);
  if (!wanted) return tl::unexpected<Error>(wanted.error());
  Chosen chosen;
  for (const JobName& name : *wanted) {
    std::optional<IndexSet> indices;
    if (!name.array.empty()) {
      auto parsed = parse_index_set(name.array, kNoLimit - 1);
      if (parsed) indices = std::move(*parsed);
    }
    auto target = find_job(state, name.job, indices ? &*indices : nullptr);
    if (!target) {
      unknown.push_back(name.job);
      continue;
    }
    auto& set = chosen[target->workload.value()];
    if (target->whole || !target->unstarted.empty()) set.insert(target->workload.value());
    for (GangId id : target->gangs) set.insert(id.value());
  }
  return chosen;
}

void encode_about(Encoder& encode, const ClusterState& state, const About& about) {
  encode("cluster", state.spec->name);
  encode("version", about.version);
  encode("controller_host", about.host);
  encode("controller_started_ms", about.started);
}

}  // namespace

Result<std::string> state_json(const Published& picture, const Query& query, const About& about, Instant now) {
  const ClusterState& state = picture.state;
  std::vector<std::string> with = list_of(query, "with");
  if (with.empty()) with = {"workloads"};
  auto wants = [&](std::string_view part) { return std::find(with.begin(), with.end(), part) != with.end(); };
  JsonWriter out;
  Encoder encode(out);
  out.begin_object();
  encode("now_ms", now);
  encode_about(encode, state, about);
  if (wants("nodes")) encode("nodes", node_views(picture, now));
  if (wants("reservations")) encode("reservations", state.reservations->all);
  if (wants("partitions")) encode("partitions", state.spec->partitions);
  if (wants("spec")) {
    ClusterSpec spec = *state.spec;
    spec.nodes.clear();
    spec.partitions.clear();
    out.key("spec");
    encode.write(spec);
  }
  if (!wants("workloads")) {
    out.end_object();
    return out.take();
  }
  std::vector<std::string> users = list_of(query, "users"), accounts = list_of(query, "accounts"),
                           partitions = list_of(query, "partitions"), states = list_of(query, "states"),
                           names = list_of(query, "names");
  const scheduler::PriorityBasis basis = scheduler::priority_basis(state, now);
  const Waits waits_now(picture, now);
  const auto waits = query.find("waits");
  const bool reasons_only = waits != query.end() && waits->second == "reasons";
  auto emit = [&](const WorkloadEntry& entry, const std::set<std::uint32_t>* only) {
    const Workload& w = entry.workload;
    if (!passes(users, w.user) || !passes(accounts, w.account) || !passes(names, w.name)) return;
    WorkloadView view = view_of(waits_now, entry, basis);
    if (!shows(states, "pending") || only) {
      if (!only || !only->contains(w.id.value())) view.unstarted.clear(), view.simple_unstarted = false;
    }
    std::erase_if(view.gangs, [&](const GangView& g) {
      return !shows(states, group_of(g.gang)) || (only && !only->contains(w.id.value()) && !only->contains(g.gang.id.value()));
    });
    if (!partitions.empty()) {
      std::erase_if(view.gangs, [&](const GangView& g) { return !passes(partitions, g.gang.partition.empty() ? view.partition : g.gang.partition); });
      bool listed = std::any_of(w.partitions.begin(), w.partitions.end(), [&](const std::string& p) { return passes(partitions, p); });
      if (!listed) view.unstarted.clear(), view.simple_unstarted = false;
    }
    bool over = !view.simple_unstarted && view.unstarted.empty() && view.gangs.empty();
    // A job that was cancelled before it started has no gang; it is "done".
    bool ended_unstarted = over && entry.gangs.empty() && entry.ended.is_set() && shows(states, "done");
    if (over && !ended_unstarted) return;
    if (reasons_only) {
      leave_reason(view.wait);
      for (GangView& g : view.gangs) leave_reason(g.wait);
    }
    encode.write(view);
  };
  out.key("workloads");
  out.begin_array();
  std::vector<std::uint32_t> unknown;
  if (auto jobs = query.find("jobs"); jobs != query.end() && !jobs->second.empty()) {
    auto chosen = chosen_jobs(state, jobs->second, unknown);
    if (!chosen) return tl::unexpected<Error>(chosen.error());
    for (const auto& [id, only] : *chosen) emit(*state.workloads.find(id), &only);
  } else {
    state.workloads.for_each([&](std::uint32_t, const WorkloadEntry& entry) {
      if (states.empty() && !entry.is_open()) return;
      emit(entry, nullptr);
    });
  }
  out.end_array();
  encode("unknown_jobs", unknown);
  out.end_object();
  return out.take();
}

JobRecord record_of(const ClusterState& state, const WorkloadEntry& entry, const Gang* gang, Instant now,
                    const scheduler::PriorityBasis* basis) {
  JobRecord record;
  record.workload = entry.workload;
  record.cluster = state.spec->name;
  record.eligible = eligible_time(entry.workload);
  record.priority = basis ? scheduler::priority_of(*basis, *state.spec, entry, now) : scheduler::priority_of(state, entry, now);
  const PartitionSpec* partition = partition_of(*state.spec, entry.workload);
  record.partition = partition ? partition->name : "";
  record.time_limit = partition ? scheduler::time_limit_in(*partition, entry.workload)
                                : entry.workload.time_limit.value_or(Duration::infinite());
  if (!gang) {
    record.gang.id = GangId(entry.workload.id.value());
    record.gang.workload = entry.workload.id;
    record.gang.outcome = entry.outcome;
    record.gang.ended = entry.ended;
    record.gang.ended_by_uid = entry.ended_by_uid;
    if (entry.workload.is_array()) record.unstarted = entry.unstarted.to_string();
    if (entry.ended.is_set() || !entry.has_unstarted()) record.gang.state = GangState::kDone;
    return record;
  }
  record.gang = *gang;
  if (!gang->partition.empty()) record.partition = gang->partition;
  record.nodes = node_names(state, *gang);
  for (const Slot& slot : gang->slots) {
    std::string type;
    if (slot.node < state.spec->nodes.size() && !slot.gpus.empty()) {
      const auto& devices = state.spec->nodes[slot.node].devices;
      if (slot.gpus.front() < devices.size()) type = devices[slot.gpus.front()].type;
    }
    record.gpu_types.push_back(std::move(type));
  }
  return record;
}

std::vector<JobRecord> live_records(const Published& picture, const Query& query, Instant now) {
  const ClusterState& state = picture.state;
  std::vector<std::string> users = list_of(query, "users"), accounts = list_of(query, "accounts"), names = list_of(query, "names");
  std::vector<JobRecord> records;
  const scheduler::PriorityBasis basis = scheduler::priority_basis(state, now);
  auto add = [&](const WorkloadEntry& entry, const JobTarget& target) {
    const Workload& w = entry.workload;
    if (!passes(users, w.user) || !passes(accounts, w.account) || !passes(names, w.name)) return;
    // What is over is in the history already.
    for (GangId id : target.gangs) {
      const Gang* gang = state.gangs.find(id.value());
      if (gang && gang->state != GangState::kDone) records.push_back(record_of(state, entry, gang, now, &basis));
    }
    if (target.simple_unstarted || !target.unstarted.empty()) {
      JobRecord record = record_of(state, entry, nullptr, now, &basis);
      record.unstarted = target.unstarted.to_string();
      record.gang.outcome = Outcome::kNone;
      record.gang.state = GangState::kPending;
      records.push_back(std::move(record));
    }
  };
  auto jobs = query.find("jobs");
  if (jobs == query.end() || jobs->second.empty()) {
    state.workloads.for_each([&](std::uint32_t, const WorkloadEntry& entry) {
      if (entry.is_open()) add(entry, whole_of(entry));
    });
    return records;
  }
  auto wanted = parse_job_names(jobs->second);
  if (!wanted) return records;
  std::set<std::uint32_t> seen;
  for (const JobName& name : *wanted) {
    std::optional<IndexSet> indices;
    if (!name.array.empty())
      if (auto parsed = parse_index_set(name.array, kNoLimit - 1)) indices = std::move(*parsed);
    auto target = find_job(state, name.job, indices ? &*indices : nullptr);
    if (target && (indices || seen.insert(name.job).second)) add(*state.workloads.find(target->workload.value()), *target);
  }
  return records;
}

}  // namespace tutti::controller
