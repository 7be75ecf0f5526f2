#include "scheduler/eligible.h"

#include <algorithm>

#include "model/reasons.h"

namespace tutti::scheduler {

namespace {

std::optional<Ineligible> wait_for(std::string_view reason, Instant until = Instant()) {
  return Ineligible{reason, until};
}

bool succeeded(const Gang& gang) {
  return gang.outcome == Outcome::kCompleted && gang.exit == ExitStatus{};
}

bool holds_slots(const Gang& gang) {
  return gang.state == GangState::kPreparing || gang.state == GangState::kRunning ||
         gang.state == GangState::kEnding;
}

}  // namespace

std::optional<Ineligible> Eligibility::check(const WorkloadEntry& entry, const Gang* gang,
                                             std::optional<std::uint32_t> array_index) {
  const Workload& workload = entry.workload;
  if (gang && gang->hold != Hold::kNone) {
    if (gang->hold == Hold::kAdmin && gang->launch_failures > 0)
      return wait_for(reason::kLaunchFailedHeld);
    return wait_for(gang->hold == Hold::kUser ? reason::kHeldUser : reason::kHeldAdmin);
  }
  if (workload.hold == Hold::kUser) return wait_for(reason::kHeldUser);
  if (workload.hold == Hold::kAdmin) return wait_for(reason::kHeldAdmin);
  // --priority=0 holds, as with scontrol.
  if (workload.extras->fixed_priority == 0u) return wait_for(reason::kHeldUser);
  if (gang && gang->state == GangState::kEnding) return wait_for(reason::kCleaning);
  if (workload.begin > now_) return wait_for(reason::kBeginTime, workload.begin);
  if (gang && gang->eligible > now_)
    return wait_for(gang->launch_failures > 0 ? reason::kRetrying : reason::kBeginTime,
                    gang->eligible);
  // What ran once has had its dependencies met.
  if (gang) return std::nullopt;
  return check_dependencies(entry, array_index);
}

std::uint32_t Eligibility::throttle_room(const WorkloadEntry& entry) const {
  std::uint32_t most = entry.workload.array_throttle;
  if (most == 0) return kNoLimit;
  if (entry.open_gangs == 0) return most;
  std::uint32_t busy = 0;
  for (GangId id : entry.gangs) {
    const Gang* gang = state_.gangs.find(id.value());
    busy += gang && holds_slots(*gang);
    if (busy >= most) return 0;
  }
  return most - busy;
}

std::optional<Ineligible> Eligibility::check_dependencies(
    const WorkloadEntry& entry, std::optional<std::uint32_t> array_index) {
  const WorkloadExtras& extras = entry.workload.extras;
  if (extras.dependencies.empty()) return std::nullopt;
  bool all_never = true;
  Instant until;
  bool open = false;
  for (const Dependency& dependency : extras.dependencies) {
    Finding finding = judge(entry, dependency, array_index);
    if (finding.outlook == Outlook::kNever) {
      if (!extras.any_dependency) return wait_for(reason::kDependencyNever);
      continue;
    }
    all_never = false;
    if (finding.outlook == Outlook::kMet) {
      if (extras.any_dependency) return std::nullopt;
      continue;
    }
    open = true;
    // Of several delays the last counts when all must be met, else the first.
    if (!finding.until.is_set()) continue;
    if (!until.is_set()) until = finding.until;
    until = extras.any_dependency ? std::min(until, finding.until) : std::max(until, finding.until);
  }
  if (all_never) return wait_for(reason::kDependencyNever);
  if (open) return wait_for(reason::kDependency, until);
  return std::nullopt;
}

Eligibility::Finding Eligibility::judge(const WorkloadEntry& entry, const Dependency& dependency,
                                        std::optional<std::uint32_t> array_index) {
  if (dependency.kind == DependencyKind::kSingleton) return judge_singleton(entry);
  const WorkloadEntry* on = state_.workloads.find(dependency.job);
  if (!on) {
    // The number of one element of an array, or of a job that is gone: then nothing is waited for
    // any more, as with Slurm.
    const Gang* gang = state_.gangs.find(dependency.job);
    return gang ? judge_gang(dependency, *gang) : Finding{};
  }
  if (dependency.array_index) return judge_element(dependency, *on, *dependency.array_index);
  // Element for element; a job that is no array stands for all of them.
  if (dependency.kind == DependencyKind::kAfterCorr && array_index && on->workload.is_array())
    return judge_element(dependency, *on, *array_index);
  return judge_all(dependency, *on);
}

Eligibility::Finding Eligibility::judge_all(const Dependency& dependency,
                                            const WorkloadEntry& on) const {
  bool open = on.has_unstarted();
  Instant until;
  std::uint32_t met = 0, never = 0;
  for (GangId id : on.gangs) {
    const Gang* gang = state_.gangs.find(id.value());
    if (!gang) continue;
    Finding finding = judge_gang(dependency, *gang);
    open = open || finding.outlook == Outlook::kOpen;
    until = std::max(until, finding.until);
    met += finding.outlook == Outlook::kMet;
    never += finding.outlook == Outlook::kNever;
  }
  // Elements that were cancelled while they waited ended without success.
  if (on.outcome != Outcome::kNone) {
    bool needs_success = dependency.kind == DependencyKind::kAfterOk ||
                         dependency.kind == DependencyKind::kAfterCorr;
    ++(needs_success ? never : met);
  }
  if (open) return {Outlook::kOpen, until};
  // One failed element is enough for afternotok; one is too many for afterok.
  bool failed = dependency.kind == DependencyKind::kAfterNotOk ? met == 0 && never > 0 : never > 0;
  return {failed ? Outlook::kNever : Outlook::kMet, Instant()};
}

Eligibility::Finding Eligibility::judge_singleton(const WorkloadEntry& entry) {
  if (!first_of_name_) {
    first_of_name_.emplace();
    state_.workloads.for_each([&](std::uint32_t id, const WorkloadEntry& other) {
      // Numbers ascend, so the first to come is the lowest.
      if (other.is_open())
        first_of_name_->emplace(std::pair(other.workload.uid, other.workload.name), WorkloadId(id));
    });
  }
  auto it = first_of_name_->find(std::pair(entry.workload.uid, entry.workload.name));
  bool first = it == first_of_name_->end() || it->second == entry.workload.id;
  return {first ? Outlook::kMet : Outlook::kOpen, Instant()};
}

Eligibility::Finding Eligibility::judge_element(const Dependency& dependency,
                                                const WorkloadEntry& on,
                                                std::uint32_t index) const {
  if (on.unstarted.contains(index)) return {Outlook::kOpen, Instant()};
  for (GangId id : on.gangs) {
    const Gang* gang = state_.gangs.find(id.value());
    if (gang && gang->array_index == index) return judge_gang(dependency, *gang);
  }
  // No such element, or cancelled before it started.
  bool needs_success =
      dependency.kind == DependencyKind::kAfterOk || dependency.kind == DependencyKind::kAfterCorr;
  return {needs_success ? Outlook::kNever : Outlook::kMet, Instant()};
}

Eligibility::Finding Eligibility::judge_gang(const Dependency& dependency, const Gang& gang) const {
  bool done = gang.state == GangState::kDone;
  auto met_if = [](bool met) { return Finding{met ? Outlook::kMet : Outlook::kNever, Instant()}; };
  switch (dependency.kind) {
    case DependencyKind::kAfter: {
      if (!gang.started.is_set()) return {done ? Outlook::kMet : Outlook::kOpen, Instant()};
      Instant from = gang.started + Duration::minutes(dependency.delay_minutes);
      if (from > now_) return {Outlook::kOpen, from};
      return {};
    }
    case DependencyKind::kAfterAny:
      return {done ? Outlook::kMet : Outlook::kOpen, Instant()};
    case DependencyKind::kAfterOk:
    case DependencyKind::kAfterCorr:
      return done ? met_if(succeeded(gang)) : Finding{Outlook::kOpen, Instant()};
    case DependencyKind::kAfterNotOk:
      return done ? met_if(!succeeded(gang)) : Finding{Outlook::kOpen, Instant()};
    case DependencyKind::kSingleton:
      break;
  }
  return {};
}

std::optional<Ineligible> ineligible(const ClusterState& state, const WorkloadEntry& entry,
                                     const Gang* gang, Instant now) {
  Eligibility eligibility(state, now);
  std::optional<std::uint32_t> index;
  if (!gang && entry.workload.is_array()) index = entry.unstarted.first();
  if (auto why = eligibility.check(entry, gang, index)) return why;
  if (entry.workload.array_throttle > 0 && eligibility.throttle_room(entry) == 0)
    return Ineligible{reason::kArrayThrottle, Instant()};
  return std::nullopt;
}

}  // namespace tutti::scheduler
