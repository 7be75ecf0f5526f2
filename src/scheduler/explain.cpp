#include "scheduler/explain.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/enum_names.h"
#include "base/text.h"
#include "model/reasons.h"
#include "scheduler/pass.h"
#include "scheduler/texts.h"

namespace tutti::scheduler {

namespace {

// A longer list of jobs is given as a count.
constexpr std::size_t kMostJobsListed = 16;

std::shared_ptr<Wait> make_wait(std::string_view reason, std::string text,
                                std::vector<std::string> blockers = {}) {
  auto wait = std::make_shared<Wait>();
  wait->reason = std::string(reason);
  wait->text = std::move(text);
  wait->blockers = std::move(blockers);
  return wait;
}

std::string dependency_text(const Dependency& dependency) {
  if (dependency.kind == DependencyKind::kSingleton) return "singleton";
  std::string out = fmt::format("{}:{}", enum_name(dependency.kind), dependency.job);
  if (dependency.array_index) out += fmt::format("_{}", *dependency.array_index);
  if (dependency.delay_minutes > 0) out += fmt::format("+{}", dependency.delay_minutes);
  return out;
}

std::string ineligible_text(const Element& element, std::string_view why) {
  const Workload& workload = element.entry->workload;
  if (why == reason::kHeldUser || why == reason::kHeldAdmin) return "held until it is released";
  if (why == reason::kLaunchFailedHeld)
    return fmt::format("held after {}: {}",
                       count_text(element.gang->launch_failures, "failed launch"),
                       element.gang->last_failure);
  if (why == reason::kRetrying)
    return fmt::format("will be tried again soon; the last launch failed: {}",
                       element.gang->last_failure);
  if (why == reason::kBeginTime) return "its begin time has not come";
  if (why == reason::kCleaning) return "its last run is still being cleaned up";
  if (why == reason::kArrayThrottle)
    return fmt::format("at most {} of the array run at once", workload.array_throttle);
  if (why == reason::kReservationGone)
    return fmt::format("its reservation {} does not exist any more", workload.extras->reservation);
  if (why == reason::kGroupIncomplete)
    return fmt::format("waits until all {} gangs of its group {} may start",
                       workload.extras->terms.group_size, workload.extras->terms.group);
  if (why == reason::kPartitionStopped) return "none of its partitions exists any more";
  std::vector<std::string> all;
  for (const Dependency& each : workload.extras->dependencies) all.push_back(dependency_text(each));
  std::string list = join(all, workload.extras->any_dependency ? "?" : ",");
  return why == reason::kDependencyNever
             ? fmt::format("can never start: {} did not end as required", list)
             : fmt::format("waits for {}", list);
}

std::vector<std::string> ineligible_blockers(const Element& element, std::string_view why) {
  if (why == reason::kDependency || why == reason::kDependencyNever) {
    std::vector<std::string> out;
    for (const Dependency& each : element.entry->workload.extras->dependencies)
      out.push_back("dependency " + dependency_text(each));
    return out;
  }
  if (why == reason::kArrayThrottle)
    return {fmt::format("array limit %{}", element.entry->workload.array_throttle)};
  if (why == reason::kGroupIncomplete)
    return {"group " + element.entry->workload.extras->terms.group};
  if (why == reason::kBeginTime || why == reason::kRetrying) return {"time"};
  if (why == reason::kCleaning) return {"clean-up"};
  if (why == reason::kReservationGone)
    return {"reservation " + element.entry->workload.extras->reservation};
  return {"hold"};
}

bool is_same_for_all(std::string_view why) {
  return why == reason::kHeldUser || why == reason::kHeldAdmin || why == reason::kBeginTime ||
         why == reason::kCleaning;
}

// Jobs ahead that compete for the same nodes.
std::vector<std::string> ahead(const Pass& pass, const Shape& shape, bool nodes_return) {
  std::vector<std::string> out;
  std::uint64_t count = 0;
  for (std::uint32_t id : pass.blocked_shapes) {
    if (!shape.candidates.intersects(pass.shapes[id].candidates)) continue;
    // What waits for nodes to return cannot take room that running work gives back.
    Outlook outlook = *pass.shape_states[id].outlook;
    if (outlook == Outlook::kNever) continue;
    if (!nodes_return && (outlook == Outlook::kNoNodes || outlook == Outlook::kAvoided)) continue;
    count += pass.shape_states[id].blocked;
    for (const ElementRef& element : pass.shape_states[id].first_blocked)
      if (out.size() <= kMostJobsListed) out.push_back(label(element));
  }
  if (count > kMostJobsListed) return {fmt::format("{} ahead", count_text(count, "job"))};
  return out;
}

void add_once(std::vector<std::string>& list, std::string name) {
  if (std::find(list.begin(), list.end(), name) == list.end()) list.push_back(std::move(name));
}

// Who holds the nodes where the element would go, and will be gone in time.
void add_holders(const Pass& pass, Unfinished& unfinished) {
  std::vector<std::string>& out = unfinished.wait->blockers;
  for (const Share& share : unfinished.placement) {
    for (const Timeline::Release& release : pass.timeline.releases(share.node)) {
      if (release.at > unfinished.until) continue;
      const ElementRef& holder = pass.owners[release.owner];
      add_once(out, label(holder));
      // The next element of a throttled array would take its place.
      const WorkloadEntry* entry = pass.input.state.workloads.find(holder.workload.value());
      if (holder.array_index && entry && entry->workload.array_throttle > 0)
        add_once(out, label({holder.workload, std::nullopt, {}}));
    }
  }
}

std::vector<std::string> node_names(const Pass& pass, const Placement& placement) {
  std::vector<std::string> out;
  for (const Share& share : placement)
    if (out.empty() || out.back() != pass.cluster.name(share.node))
      out.push_back(pass.cluster.name(share.node));
  return out;
}

std::string node_trouble(const NodeState* node) {
  if (!node || node->status == NodeStatus::kNeverSeen) return "not seen yet";
  std::string why = node->reason.empty() ? "" : ": " + node->reason;
  if (node->down) return "down" + why;
  if (node->status != NodeStatus::kUp) return "not responding" + why;
  return "drained" + why;
}

// What is free on a set of nodes. Most shapes share their set with others.
struct SetTotals {
  const NodeSet* nodes = nullptr;
  std::vector<std::int64_t> gpus;  // by type
  std::int64_t cpus = 0, idle_nodes = 0;
};

SetTotals add_up(const Pass& pass, const NodeSet& nodes) {
  SetTotals out{&nodes, std::vector<std::int64_t>(pass.cluster.gpu_types().size())};
  nodes.for_each([&](NodeIndex node) {
    if (!pass.free.usable().contains(node)) return;
    const Capacity& free = pass.free.at(node);
    const NodeClass& kind = pass.cluster.of(node);
    for (std::size_t i = 0; i < kind.types.size(); ++i) out.gpus[kind.types[i]] += free.gpus[i];
    out.cpus += std::int64_t{free.cores} * kind.threads;
    out.idle_nodes += free.vacancy == 0;
  });
  return out;
}

FreeTotals free_totals(const Pass& pass, const Shape& shape, std::vector<SetTotals>& sets) {
  auto set = std::find_if(sets.begin(), sets.end(), [&](const SetTotals& totals) {
    return *totals.nodes == shape.candidates;
  });
  if (set == sets.end()) set = sets.insert(sets.end(), add_up(pass, shape.candidates));
  FreeTotals out{0, set->cpus, set->idle_nodes};
  for (const RoleNeed& need : shape.roles) {
    if (!need.asks_gpus()) continue;
    std::int64_t all = 0;
    for (std::int64_t count : set->gpus) all += count;
    out.gpus = std::max(out.gpus, need.any_gpu ? all : set->gpus[need.gpu_type]);
  }
  return out;
}

// The sentence of what waits for room, once the pass is over and it is known what stayed free.
std::string room_text(const Pass& pass, const Shape& shape, std::vector<SetTotals>& known) {
  return fmt::format("needs {}; {}", need_text(pass.cluster, shape),
                     free_text(shape, free_totals(pass, shape, known)));
}

bool room_is_still_free(Pass& pass, const Unfinished& unfinished) {
  RoomNow room(pass.free, pass.timeline, pass.input.now, Instant::never(),
               RoomNow::Promises::kIgnored);
  return place_gang(room, pass.shapes[unfinished.shape], pass.free.usable()).has_value();
}

// A reservation of others keeps it from room that is free.
std::shared_ptr<Wait> reserved_wait(const Pass& pass, const Candidate& candidate,
                                    const Reservation& by, bool behind_others) {
  const bool maintenance = by.has(ReservationFlag::kMaint);
  const Shape& shape = pass.shapes[candidate.shape];
  std::vector<std::string> blockers = reservations_on(pass, candidate);
  if (behind_others)
    for (std::string& name : ahead(pass, shape, false)) blockers.push_back(std::move(name));
  std::string when = by.start > pass.input.now
                         ? fmt::format("begins in {} s, before it would end",
                                       (by.start - pass.input.now).whole_seconds())
                         : fmt::format("ends in {} s", (by.end - pass.input.now).whole_seconds());
  return make_wait(
      maintenance ? reason::kReservedForMaintenance : reason::kReservedForOthers,
      fmt::format("needs {}; reservation {} {}", need_text(pass.cluster, shape), by.name, when),
      std::move(blockers));
}

void replace_wait(Element& element, std::shared_ptr<const Wait> wait) {
  // A planned start in one partition tells more than a refusal in another.
  if (element.wait && element.wait->planned_start.is_set()) return;
  element.wait = std::move(wait);
}

}  // namespace

std::string label(const ElementRef& element) {
  if (element.array_index)
    return fmt::format("job {}_{}", element.workload.value(), *element.array_index);
  return fmt::format("job {}", element.workload.value());
}

void note_ineligible(Pass& pass, Element& element, const Ineligible& why) {
  if (why.until.is_set() && why.until > pass.input.now)
    pass.plan.next_look = std::min(pass.plan.next_look, why.until);
  // Its next element may start as soon as another ends.
  if (why.reason == reason::kArrayThrottle) pass.somebody_throttled = true;
  const bool common = is_same_for_all(why.reason);
  if (common) {
    for (const auto& known : pass.common_waits) {
      if (known->reason != why.reason) continue;
      element.wait = known;
      return;
    }
  }
  element.wait = make_wait(why.reason, ineligible_text(element, why.reason),
                           ineligible_blockers(element, why.reason));
  if (common) pass.common_waits.push_back(element.wait);
}

void note_over_limit(Pass& pass, const Candidate& candidate, OverLimit over) {
  Element& element = pass.elements[candidate.element];
  if (!element.wait)
    element.wait = make_wait(over.word, std::move(over.text), {std::move(over.blocker)});
}

void note_refused(Pass& pass, const Candidate& candidate, std::string_view why) {
  Element& element = pass.elements[candidate.element];
  const PartitionSpec& partition = pass.cluster.spec().partitions[candidate.partition];
  if (element.wait) return;
  std::string text, blocker;
  if (why == reason::kPartitionTimeLimit) {
    text = candidate.limit.is_infinite()
               ? fmt::format("it has no time limit; partition {} allows {} s", partition.name,
                             partition.max_time->whole_seconds())
               : fmt::format("its time limit of {} s is over the {} s of partition {}",
                             candidate.limit.whole_seconds(), partition.max_time->whole_seconds(),
                             partition.name);
    blocker = fmt::format("limit MaxTime of partition {}", partition.name);
  } else if (why == reason::kPartitionNodeLimit) {
    text = fmt::format(
        "needs {}; partition {} allows {} to {}",
        count_text(pass.shapes[candidate.shape].nodes, "node"), partition.name, partition.min_nodes,
        partition.max_nodes == kNoLimit ? "any number" : std::to_string(partition.max_nodes));
    blocker = fmt::format("node limits of partition {}", partition.name);
  } else if (why == reason::kQueueHeld) {
    const std::string& queue = pass.quota.spec(candidate.queue).name;
    text = fmt::format("queue {} is held: it accepts jobs and starts none", queue);
    blocker = fmt::format("state of queue {}", queue);
  } else {
    text = fmt::format("partition {} is {}", partition.name, enum_name(partition.state));
    blocker = fmt::format("state of partition {}", partition.name);
  }
  element.wait = make_wait(why, std::move(text), {std::move(blocker)});
}

void note_over_quota(Pass& pass, const Candidate& candidate, const QuotaTree::Refusal& refusal) {
  const std::string& queue = pass.quota.spec(refusal.queue).name;
  std::string text = fmt::format("needs {} {}; queue {} uses {} of {}", refusal.asked,
                                 refusal.resource, queue, refusal.used, refusal.amount);
  if (!refusal.at_root)
    text += refusal.may_borrow == 0 ? std::string(" and may not borrow")
                                    : fmt::format(" and may borrow {}", refusal.may_borrow);
  pass.elements[candidate.element].wait =
      make_wait(reason::kQueueQuota, std::move(text), {fmt::format("quota of queue {}", queue)});
}

void judge_shape(Pass& pass, const Candidate& candidate, const Judgement& judgement) {
  const Shape& shape = pass.shapes[candidate.shape];
  std::string need = need_text(pass.cluster, shape);
  std::vector<std::string> blockers;
  std::string_view word = reason::kResources;
  std::string text;
  switch (judgement.outlook) {
    case Outlook::kEndless:
      text = fmt::format("needs {}, where work without a time limit runs", need);
      break;
    case Outlook::kAvoided:
      word = reason::kRetrying;
      text = fmt::format("needs {}; nodes that refused its last launch are left out", need);
      for (const Share& share : judgement.placement)
        for (const RoleNeed& role : shape.roles)
          if (role.left_out.contains(share.node))
            blockers.push_back(
                fmt::format("node {} (refused the last launch)", pass.cluster.name(share.node)));
      break;
    case Outlook::kNoNodes: {
      word = reason::kNodesDown;
      std::vector<std::string> gone;
      for (const std::string& name : node_names(pass, judgement.placement)) {
        NodeIndex node = *pass.cluster.find(name);
        if (pass.free.usable().contains(node)) continue;
        gone.push_back(name);
        blockers.push_back(
            fmt::format("node {} ({})", name, node_trouble(pass.input.state.node(node))));
        for (const RoleNeed& role : shape.roles)
          if (std::binary_search(role.required.begin(), role.required.end(), node))
            word = reason::kRequestedNodesBusy;
      }
      text = fmt::format("needs {}; {} of the nodes it would use cannot take work: {}", need,
                         gone.size(), join(gone, ","));
      break;
    }
    case Outlook::kNever:
    case Outlook::kLater:
      word = reason::kNeverFits;
      text = shape.never ? shape.never->message
                         : fmt::format("needs {}: no nodes of partition {} can hold that", need,
                                       pass.cluster.spec().partitions[shape.partition].name);
      blockers = {"the request itself"};
      break;
  }
  ShapeState& state = pass.shape_states[candidate.shape];
  if (judgement.outlook != Outlook::kNever) {
    if (!window_of(pass, candidate).holds(pass.input.now, candidate.limit))
      blockers.emplace_back("time");
    for (std::string& name : reservations_on(pass, candidate)) blockers.push_back(std::move(name));
    // Those of the same shape that come later have all others before them.
    std::vector<std::string> behind = blockers;
    behind.insert(behind.begin(), "jobs ahead");
    state.shared_wait[1] = make_wait(word, text, std::move(behind));
    std::vector<std::string> before = ahead(pass, shape, judgement.outlook != Outlook::kEndless);
    blockers.insert(blockers.begin(), before.begin(), before.end());
  }
  state.shared_wait[0] = make_wait(word, std::move(text), std::move(blockers));
  for (const auto& wait : state.shared_wait)
    if (wait && judgement.outlook != Outlook::kNever)
      pass.unfinished.push_back(
          {candidate.shape, wait, judgement.placement, Instant::never(), false});
}

void note_outlook(Pass& pass, const Candidate& candidate) {
  ShapeState& state = pass.shape_states[candidate.shape];
  bool repeated = state.blocked > 0 && state.shared_wait[1];
  replace_wait(pass.elements[candidate.element], state.shared_wait[repeated ? 1 : 0]);
}

void note_blocked(Pass& pass, const Candidate& candidate, bool behind_others) {
  if (const Reservation* by = blocking_reservation(pass, candidate)) {
    auto wait = reserved_wait(pass, candidate, *by, behind_others);
    // What starts later in this pass may take the room too.
    wait->blockers.emplace_back("running jobs on its nodes");
    wait->blockers.emplace_back("jobs ahead");
    replace_wait(pass.elements[candidate.element], std::move(wait));
    return;
  }
  ShapeState& state = pass.shape_states[candidate.shape];
  std::shared_ptr<Wait>& shared = state.shared_wait[behind_others ? 1 : 0];
  if (!shared) {
    shared = make_wait(behind_others ? reason::kPriority : reason::kResources, "",
                       {"running jobs on its nodes"});
    for (std::string& name : reservations_on(pass, candidate))
      shared->blockers.push_back(std::move(name));
    if (!pass.blocked_shapes.empty() || pass.somebody_throttled)
      shared->blockers.insert(shared->blockers.begin(), "jobs ahead");
  }
  replace_wait(pass.elements[candidate.element], shared);
}

void note_window(Pass& pass, const Candidate& candidate, const Forecast* forecast) {
  const Reservation& own = *pass.reserved[candidate.reservation].what;
  const bool too_long = std::max(own.start, pass.input.now) + candidate.limit > own.end;
  std::string text =
      too_long ? fmt::format(
                     "its time limit of {} s does not end within its reservation {}, which {}",
                     candidate.limit.whole_seconds(), own.name,
                     pass.input.now < own.start
                         ? fmt::format("lasts {} s", (own.end - own.start).whole_seconds())
                         : fmt::format("ends in {} s", (own.end - pass.input.now).whole_seconds()))
               : fmt::format("its reservation {} begins in {} s", own.name,
                             (own.start - pass.input.now).whole_seconds());
  auto wait = make_wait(reason::kReservation, std::move(text), {too_long ? "time limit" : "time"});
  if (forecast) {
    wait->planned_start = forecast->at;
    wait->planned_nodes = node_names(pass, forecast->placement);
  }
  replace_wait(pass.elements[candidate.element], std::move(wait));
}

void note_planned(Pass& pass, const Candidate& candidate, bool behind_others,
                  const Forecast& forecast) {
  if (!window_of(pass, candidate).holds(pass.input.now, candidate.limit))
    return note_window(pass, candidate, &forecast);
  const Shape& shape = pass.shapes[candidate.shape];
  std::vector<std::string> blockers = ahead(pass, shape, false);
  for (std::string& name : reservations_on(pass, candidate)) blockers.push_back(std::move(name));
  auto wait =
      make_wait(behind_others ? reason::kPriority : reason::kResources, "", std::move(blockers));
  if (const Reservation* by = blocking_reservation(pass, candidate))
    wait = reserved_wait(pass, candidate, *by, behind_others);
  wait->planned_start = forecast.at;
  wait->planned_nodes = node_names(pass, forecast.placement);
  pass.unfinished.push_back(
      {candidate.shape, wait, forecast.placement, forecast.at, forecast.room_is_free});
  replace_wait(pass.elements[candidate.element], std::move(wait));
}

void explain(Pass& pass) {
  std::vector<SetTotals> known;
  for (std::uint32_t id : pass.blocked_shapes) {
    ShapeState& state = pass.shape_states[id];
    if (*state.outlook != Outlook::kLater) continue;
    std::string text = room_text(pass, pass.shapes[id], known);
    for (auto& wait : state.shared_wait)
      if (wait && wait->text.empty()) wait->text = text;
    state.text = std::move(text);
  }
  for (Unfinished& unfinished : pass.unfinished) {
    if (unfinished.wait->text.empty())
      unfinished.wait->text = pass.shape_states[unfinished.shape].text;
    if (!unfinished.room_is_free || !room_is_still_free(pass, unfinished))
      add_holders(pass, unfinished);
  }
  std::shared_ptr<const Wait> not_looked;
  // Kept until the next pass: without room to spare.
  pass.plan.waiting.reserve(static_cast<std::size_t>(
      std::count_if(pass.elements.begin(), pass.elements.end(),
                    [](const Element& e) { return !e.settled || e.wait; })));
  for (Element& element : pass.elements) {
    if (element.settled && !element.wait) continue;
    if (!element.wait) {
      if (!not_looked)
        not_looked = make_wait(reason::kNoneYet, "not looked at yet: the pass used up its budget");
      element.wait = not_looked;
    }
    pass.plan.waiting.push_back({element.ref, element.wait});
  }
  if (pass.out_of_budget) pass.plan.next_look = pass.input.now;
  pass.plan.stats.work_units += pass.forecaster.looked();
}

}  // namespace tutti::scheduler
