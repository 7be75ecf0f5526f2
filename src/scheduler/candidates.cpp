#include <algorithm>
#include <tuple>

#include "model/reasons.h"
#include "scheduler/order.h"
#include "scheduler/explain.h"
#include "scheduler/pass.h"

namespace tutti::scheduler {

namespace {

// The first element of the array that may start, when each has a dependency of its own.
std::optional<std::uint32_t> first_eligible(Pass& pass, const WorkloadEntry& entry,
                                            std::optional<Ineligible>& why) {
  std::optional<std::uint32_t> first = entry.unstarted.first();
  why = pass.eligibility.check(entry, nullptr, first);
  bool each_its_own = std::any_of(
      entry.workload.extras->dependencies.begin(), entry.workload.extras->dependencies.end(),
      [](const Dependency& d) { return d.kind == DependencyKind::kAfterCorr; });
  if (!why || !each_its_own) return first;
  for (auto index = first; index; index = entry.unstarted.next(*index + 1)) {
    auto other = pass.eligibility.check(entry, nullptr, index);
    if (other) continue;
    why.reset();
    return index;
  }
  return first;
}

// Elements that run once more come before those that never ran, also under the array's throttle.
std::uint32_t pending_that_may_start(Pass& pass, const WorkloadEntry& entry) {
  std::uint32_t count = 0;
  for (GangId id : entry.gangs) {
    const Gang* gang = pass.input.state.gangs.find(id.value());
    if (!gang || gang->state != GangState::kPending) continue;
    count += !pass.eligibility.check(entry, gang, gang->array_index);
  }
  return count;
}

void add_unstarted(Pass& pass, const WorkloadEntry& entry) {
  Element element;
  element.ref.workload = entry.workload.id;
  element.entry = &entry;
  std::optional<Ineligible> why;
  if (entry.simple_unstarted) {
    why = pass.eligibility.check(entry, nullptr, std::nullopt);
  } else {
    element.ref.array_index = first_eligible(pass, entry, why);
    element.throttle_room = pass.eligibility.throttle_room(entry);
    if (element.throttle_room != kNoLimit)
      element.throttle_room -= std::min(element.throttle_room, pending_that_may_start(pass, entry));
    if (!why && element.throttle_room == 0) why = Ineligible{reason::kArrayThrottle, Instant()};
  }
  if (why) note_ineligible(pass, element, *why);
  pass.elements.push_back(std::move(element));
}

void add_pending_gangs(Pass& pass, const WorkloadEntry& entry) {
  std::uint32_t room = pass.eligibility.throttle_room(entry);
  for (GangId id : entry.gangs) {
    const Gang* gang = pass.input.state.gangs.find(id.value());
    if (!gang || gang->state != GangState::kPending) continue;
    Element element;
    element.ref = {entry.workload.id, gang->array_index, gang->id};
    element.entry = &entry;
    element.gang = gang;
    if (auto why = pass.eligibility.check(entry, gang, gang->array_index))
      note_ineligible(pass, element, *why);
    else if (room == 0)
      note_ineligible(pass, element, {reason::kArrayThrottle, Instant()});
    else if (room != kNoLimit)
      --room;
    pass.elements.push_back(std::move(element));
  }
}

const std::vector<std::string>& avoided(const Element& element) {
  static const std::vector<std::string> kNone;
  return element.gang ? element.gang->avoid_nodes : kNone;
}

// Source: sbatch(1), --switches=count[@max-time]: the job waits so long for its number of switches,
// then it takes any. Without a time, as long as SchedulerParameters' max_switch_wait.
constexpr Duration kMaxSwitchWait = Duration::seconds(300);

TopologyAsk topology_asked(Pass& pass, const Element& element) {
  TopologyAsk topology = element.entry->workload.extras->terms.topology;
  if (topology.switches == 0) return topology;
  Duration wait = std::min(topology.switches_wait.value_or(kMaxSwitchWait), kMaxSwitchWait);
  topology.switches_wait.reset();
  Instant patient_until = eligible_since(element.entry->workload, element.gang) + wait;
  if (pass.input.now < patient_until)
    pass.plan.next_look = std::min(pass.plan.next_look, patient_until);
  else
    topology.switches = 0;
  return topology;
}

void add_candidates(Pass& pass, std::uint32_t position) {
  Element& element = pass.elements[position];
  const Workload& workload = element.entry->workload;
  const auto reservation = reservation_of(pass, workload);
  if (reservation == kNoLimit) {
    note_ineligible(pass, element, {reason::kReservationGone, Instant()});
    return;
  }
  const ShapeTable::Within within = within_of(pass, reservation.value_or(kNoLimit));
  const TopologyAsk topology = topology_asked(pass, element);
  std::uint32_t rank = 0;
  auto add = [&](std::string_view name) {
    auto partition = pass.cluster.partition(name);
    if (!partition) return;
    const PartitionSpec& spec = pass.cluster.spec().partitions[*partition];
    Candidate candidate;
    candidate.element = position;
    candidate.partition = static_cast<std::uint32_t>(*partition);
    candidate.rank = rank++;
    candidate.tier = spec.priority_tier;
    candidate.shape =
        pass.shapes.intern(*partition, element.roles ? *element.roles : *workload.roles,
                           avoided(element), within, topology);
    candidate.reservation = reservation.value_or(kNoLimit);
    candidate.queue = pass.quota.queue_of(workload).value_or(kNoQueue);
    candidate.key = pass.profile.order.key(pass.basis, spec, *element.entry, pass.input.now);
    candidate.since = eligible_since(workload, element.gang);
    candidate.limit = time_limit_in(spec, workload);
    for (std::uint32_t member : element.members)  // a group is planned until its last one ends
      candidate.limit =
          std::max(candidate.limit, time_limit_in(spec, pass.elements[member].entry->workload));
    pass.candidates.push_back(candidate);
  };
  if (workload.partitions.empty()) add("");
  for (const std::string& name : workload.partitions) add(name);
  if (rank == 0) note_ineligible(pass, element, {reason::kPartitionStopped, Instant()});
}

}  // namespace

ShapeTable::Within within_of(const Pass& pass, std::uint32_t reservation) {
  ShapeTable::Within within;
  if (reservation == kNoLimit) return within;
  const Reserved& reserved = pass.reserved[reservation];
  within.number = reservation + 1;
  if (!reserved.what->has(ReservationFlag::kFlex)) within.nodes = &reserved.nodes;
  return within;
}

Duration time_limit_in(const PartitionSpec& partition, const Workload& workload) {
  if (workload.time_limit) return *workload.time_limit;
  if (partition.default_time) return *partition.default_time;
  return partition.max_time.value_or(Duration::infinite());
}

void find_eligible(Pass& pass) {
  pass.elements.reserve(pass.input.agenda.pending.size());
  for (std::uint32_t id : pass.input.agenda.pending) {
    const WorkloadEntry* entry = pass.input.state.workloads.find(id);
    if (!entry) continue;
    if (entry->has_unstarted()) add_unstarted(pass, *entry);
    if (entry->open_gangs > 0) add_pending_gangs(pass, *entry);
  }
}

void put_in_order(Pass& pass) {
  pass.candidates.reserve(pass.elements.size());
  join_groups(pass);
  for (std::uint32_t i = 0; i < pass.elements.size(); ++i)
    if (!pass.elements[i].wait && !pass.elements[i].leader) add_candidates(pass, i);
  pass.shape_states.resize(pass.shapes.size());
  if (!pass.quota.empty()) prepare_quota(pass);  // admit_quota.cpp
  pass.plan.stats.shapes = pass.shapes.size();
  // Elements are listed by workload and gang, so their position is the last tie.
  std::sort(pass.candidates.begin(), pass.candidates.end(),
            [](const Candidate& a, const Candidate& b) {
              return std::tie(b.tier, b.key, a.since, a.element, a.rank) <
                     std::tie(a.tier, a.key, b.since, b.element, b.rank);
            });
}

}  // namespace tutti::scheduler
