// What people do to their jobs: cancel, signal, hold, release, requeue, update.
#include <algorithm>
#include <fmt/format.h>

#include "base/hostlist.h"
#include "base/text.h"
#include "controller/core.h"
#include "controller/facts.h"
#include "controller/queries.h"
#include "model/reasons.h"
#include "scheduler/plan.h"

namespace tutti::controller {

namespace {
Status failed(ErrorCode code, std::string_view reason, std::string message) {
  return fail(code, std::move(message), std::string(reason));
}

std::string_view state_group(GangState state) {
  switch (state) {
    case GangState::kPending:
      return "pending";
    case GangState::kPreparing:
    case GangState::kRunning:
      return "running";
    case GangState::kEnding:
      return "completing";
    default:
      return "done";
  }
}
}  // namespace

// Jobs by name or by filter, with the name to report each under.
std::vector<std::pair<std::string, JobTarget>> Core::select(const ActionRequest& request,
                                                            std::vector<ActionResult>& unknown) {
  std::vector<std::pair<std::string, JobTarget>> found;
  auto unknown_job = [&](const std::string& name, std::string_view reason) {
    unknown.push_back({name, ApiError{ErrorCode::kNotFound, std::string(reason), fmt::format("job {} is not known", name)}});
  };
  if (request.jobs.empty()) {
    state_.workloads.for_each([&](std::uint32_t id, const WorkloadEntry& entry) {
      if (entry.is_open()) found.push_back({std::to_string(id), whole_of(entry)});
    });
  }
  for (const JobRef& ref : request.jobs) {
    std::string name = ref.array.empty() ? std::to_string(ref.job) : fmt::format("{}_{}", ref.job, ref.array);
    std::optional<IndexSet> indices;
    if (!ref.array.empty()) {
      auto parsed = parse_index_set(ref.array, kNoLimit - 1);
      if (!parsed) {
        unknown_job(name, reason::kMalformed);
        continue;
      }
      indices = std::move(*parsed);
    }
    auto target = find_job(state_, ref.job, indices ? &*indices : nullptr);
    if (target)
      found.push_back({name, std::move(*target)});
    else
      unknown_job(name, reason::kUnknownJob);
  }
  std::set<std::string> nodes;
  if (!request.nodes.empty())
    if (auto list = expand_hostlist(request.nodes)) nodes.insert(list->begin(), list->end());
  std::vector<std::pair<std::string, JobTarget>> kept;
  for (auto& [name, target] : found) {
    const WorkloadEntry& entry = *state_.workloads.find(target.workload.value());
    const Workload& w = entry.workload;
    bool matches = (request.user.empty() || w.user == request.user) &&
                   (request.account.empty() || w.account == request.account) &&
                   (request.qos.empty() || w.qos == request.qos) &&
                   (request.name.empty() || w.name == request.name);
    auto in_state = [&](std::string_view s) {
      return request.states.empty() || std::find(request.states.begin(), request.states.end(), s) != request.states.end();
    };
    auto in_partition = [&](const Gang* g) {
      if (request.partition.empty()) return true;
      if (g && !g->partition.empty()) return g->partition == request.partition;
      return std::find(w.partitions.begin(), w.partitions.end(), request.partition) != w.partitions.end();
    };
    if (!matches) continue;
    if (!in_state("pending") || !nodes.empty() || !in_partition(nullptr)) {
      target.simple_unstarted = false;
      target.unstarted = IndexSet();
    }
    std::erase_if(target.gangs, [&](GangId id) {
      const Gang* g = gang(id);
      bool on_node = nodes.empty() || std::any_of(g->slots.begin(), g->slots.end(), [&](const Slot& s) { return nodes.contains(state_.spec->nodes[s.node].name); });
      return !in_state(state_group(g->state)) || !on_node || !in_partition(g);
    });
    bool filtered = request.jobs.empty() || !request.states.empty() || !nodes.empty() || !request.partition.empty();
    if (filtered) target.whole = false;
    if (!target.empty() || !request.jobs.empty()) kept.push_back({name, std::move(target)});
  }
  return kept;
}

void Core::on_action(ApiCall& call) {
  auto request = from_json<ActionRequest>(std::string_view(call.body));
  if (!request) return refuse(call, Error{ErrorCode::kInvalid, std::string(reason::kMalformed), request.error().message, {}});
  if (request->jobs.empty() && request->verb != Verb::kCancel && request->verb != Verb::kSignal && request->name.empty() && request->user.empty())
    return refuse(call, Error{ErrorCode::kInvalid, std::string(reason::kMalformed), "no job was named", {}});
  ActionReply reply;
  bool by_filter = request->jobs.empty();
  for (auto& [name, target] : select(*request, reply.results)) {
    const Workload& w = state_.workloads.find(target.workload.value())->workload;
    // A filter means "of those that are mine"; a name means exactly that job.
    bool mine = call.caller.is_operator || call.caller.uid == w.uid;
    if (!mine && by_filter) continue;
    ActionResult result{name, {}};
    Status done = mine ? act(call.caller, *request, target)
                       : failed(ErrorCode::kDenied, reason::kNotOwner, fmt::format("job {} belongs to {}", name, w.user));
    if (!done) result.error = ApiError{done.error().code, done.error().reason, done.error().message};
    reply.results.push_back(std::move(result));
  }
  answer(call, {200, to_json(reply)});
}

Status Core::act(const Caller& caller, const ActionRequest& request, const JobTarget& target) {
  bool over = !target.simple_unstarted && target.unstarted.empty() &&
              std::all_of(target.gangs.begin(), target.gangs.end(), [&](GangId id) { return gang(id)->state == GangState::kDone; });
  if (over && request.verb != Verb::kUpdate && request.verb != Verb::kRequeue && request.verb != Verb::kRequeueHold)
    return failed(ErrorCode::kConflict, reason::kAlreadyDone, "the job is over");
  switch (request.verb) {
    case Verb::kCancel:
      if (request.step) {
        for (GangId id : target.gangs) end_step(id, *request.step, Outcome::kCancelled, caller.uid, {});
        return {};
      }
      return cancel(caller, target, Outcome::kCancelled);
    case Verb::kSignal:
      return signal(request, target);
    case Verb::kHold:
    case Verb::kRelease:
      return hold(caller, request, target);
    case Verb::kRequeue:
      return requeue(caller, target, false);
    case Verb::kRequeueHold:
      return requeue(caller, target, true);
    case Verb::kUpdate:
    case Verb::kTop:
      return update(caller, request, target);
  }
  return {};
}

Status Core::cancel(const Caller& caller, const JobTarget& target, Outcome outcome) {
  const WorkloadEntry* entry = state_.workloads.find(target.workload.value());
  if (target.simple_unstarted || !target.unstarted.empty()) {
    std::string indices = target.unstarted.to_string();
    bool everything = target.simple_unstarted || target.unstarted == entry->unstarted;
    IndexSet cancelled = target.unstarted;
    record(ElementsCancelled{target.workload, everything ? std::string() : indices, outcome, caller.uid});
    entry = state_.workloads.find(target.workload.value());
    remember(*entry, nullptr, cancelled.empty() ? nullptr : &cancelled, enum_name(outcome));
    workload_closed(*entry);
    ++diag_.jobs_cancelled;
  }
  for (GangId id : target.gangs) {
    const Gang* g = gang(id);
    if (!g || g->state == GangState::kDone || g->state == GangState::kEnding) continue;
    GangEnding ending;
    ending.outcome = outcome;
    ending.by_uid = caller.uid;
    ending.exit = g->exit;
    end_gang(id, std::move(ending), fmt::format("*** JOB {} ON {{node}} CANCELLED AT {{time}} ***", id.value()));
  }
  return {};
}

Status Core::signal(const ActionRequest& request, const JobTarget& target) {
  bool any = false;
  for (GangId id : target.gangs) {
    const Gang* g = gang(id);
    if (!g || g->state != GangState::kRunning) continue;
    any = true;
    StepId step = request.step.value_or(kExternStep);
    for (NodeIndex node : nodes_of(*g))
      send(node, to_agent::Signal{{g->id, g->epoch, step}, request.signal, request.to_steps, request.to_batch, request.to_steps && request.to_batch});
  }
  if (!any) return failed(ErrorCode::kConflict, reason::kNotRunning, "the job is not running: nothing to signal");
  return {};
}

Status Core::hold(const Caller& caller, const ActionRequest& request, const JobTarget& target) {
  bool hold = request.verb == Verb::kHold;
  const WorkloadEntry* entry = state_.workloads.find(target.workload.value());
  Hold kind = !hold ? Hold::kNone : caller.is_operator && (request.admin_hold || caller.uid != entry->workload.uid) ? Hold::kAdmin : Hold::kUser;
  if (!hold && entry->workload.hold == Hold::kAdmin && !caller.is_operator)
    return failed(ErrorCode::kDenied, reason::kNotOperator, "an operator holds this job");
  bool changed = false;
  for (GangId id : target.gangs) {
    const Gang* g = gang(id);
    if (g->state != GangState::kPending || (g->hold == kind && !hold)) continue;
    WorkloadChanged event;
    event.workload = target.workload;
    event.gang = id;
    event.hold = kind;
    record(std::move(event));
    changed = true;
  }
  if (target.simple_unstarted || !target.unstarted.empty() || (!hold && entry->workload.hold != Hold::kNone)) {
    WorkloadChanged event;
    event.workload = target.workload;
    event.hold = kind;
    if (!hold && entry->workload.extras->fixed_priority == 0u) event.clear_priority = true;
    record(std::move(event));
    changed = true;
  }
  if (!changed && hold) return failed(ErrorCode::kConflict, "not_pending", "only a pending job can be held");
  return {};
}

Status Core::requeue(const Caller& caller, const JobTarget& target, bool hold) {
  const WorkloadEntry* entry = state_.workloads.find(target.workload.value());
  if (!entry->workload.is_batch())
    return failed(ErrorCode::kConflict, reason::kRequeueDisabled, "only a batch job can start again");
  if (!entry->workload.requeue && !caller.is_operator)
    return failed(ErrorCode::kConflict, reason::kRequeueDisabled, "the job was submitted with --no-requeue");
  if (!entry->workload.requeue) return failed(ErrorCode::kConflict, reason::kRequeueDisabled, "requeue is disabled for the job");
  bool any = false;
  for (GangId id : target.gangs) {
    const Gang* g = gang(id);
    if (g->state != GangState::kRunning && g->state != GangState::kPreparing) continue;
    any = true;
    GangEnding ending;
    ending.outcome = Outcome::kRequeued;
    ending.requeue = true;
    ending.counts_as_restart = true;
    ending.hold = hold;
    ending.eligible = now_;
    ending.by_uid = caller.uid;
    end_gang(id, std::move(ending), fmt::format("*** JOB {} ON {{node}} CANCELLED AT {{time}} DUE TO JOB REQUEUE ***", id.value()), true);
  }
  if (!any) {
    bool pending = target.simple_unstarted || !target.unstarted.empty() ||
                   std::any_of(target.gangs.begin(), target.gangs.end(), [&](GangId id) { return gang(id)->state == GangState::kPending; });
    return pending ? failed(ErrorCode::kConflict, reason::kStillPending, "Job is pending execution")
                   : failed(ErrorCode::kConflict, reason::kAlreadyDone, "the job is over");
  }
  return {};
}

Status Core::update(const Caller& caller, const ActionRequest& request, const JobTarget& target) {
  auto change = from_json<WorkloadChanged>(std::string_view(request.change));
  if (!change) return failed(ErrorCode::kInvalid, reason::kMalformed, change.error().message);
  const WorkloadEntry* entry = state_.workloads.find(target.workload.value());
  change->workload = target.workload;
  change->gang.reset();
  change->detached.reset();
  change->ends_with_steps.reset();
  bool running = std::any_of(target.gangs.begin(), target.gangs.end(), [&](GangId id) { return gang(id)->state == GangState::kRunning; });
  Duration present = entry->workload.time_limit.value_or(Duration::infinite());
  if (!caller.is_operator) {
    bool raises = running && change->time_limit && *change->time_limit > present;
    bool lifts_hold = change->hold && (entry->workload.hold == Hold::kAdmin || *change->hold == Hold::kAdmin);
    if (lifts_hold || change->admin_comment)
      return failed(ErrorCode::kDenied, reason::kNotOperator, lifts_hold ? "an operator's hold is for operators" : "only an operator may set the admin comment");
    bool favours = change->priority || change->clear_priority || (change->nice && *change->nice < entry->workload.nice);
    if (raises || favours)
      return failed(ErrorCode::kDenied, reason::kNotOperator, raises ? "only an operator may raise the time limit of a running job" : "only an operator may raise a job's priority");
  }
  if (running && (change->partitions || change->roles))
    return failed(ErrorCode::kConflict, "job_is_running", "a running job keeps its partition and size");
  Workload changed = entry->workload;
  if (change->partitions) {
    changed.partitions = *change->partitions;
    if (Status allowed = check_partitions(caller, changed); !allowed) return allowed;
  }
  if (change->roles) changed.roles = *change->roles;
  if (change->dependencies) {
    changed.extras.edit().dependencies = *change->dependencies;
    if (Status settled = settle_dependencies(changed); !settled) return settled;
    change->dependencies = changed.extras->dependencies;
  }
  if (change->qos && *change->qos != "normal")
    return failed(ErrorCode::kInvalid, reason::kInvalidQos, fmt::format("qos {} does not exist", *change->qos));
  Status fits = scheduler::check_can_ever_run(*state_.spec, changed);
  if ((change->partitions || change->roles) && !fits) return fits;
  if (running && change->time_limit) {
    for (GangId id : target.gangs) {
      WorkloadChanged one;
      one.workload = target.workload;
      one.gang = id;
      one.time_limit = change->time_limit;
      record(one);
      schedule_limit(*gang(id));
    }
  }
  bool renamed = change->dependencies && entry->is_open();
  if (renamed) drop_names(entry->workload);
  record(std::move(*change));
  if (renamed) count_names(state_.workloads.find(target.workload.value())->workload);
  return {};
}

}  // namespace tutti::controller
