// Submission: a Workload is checked, completed with what the configuration says, and accepted.
#include <algorithm>
#include <fmt/format.h>

#include "base/index_set.h"
#include "controller/core.h"
#include "controller/reservation_rules.h"
#include "controller/facts.h"
#include "model/reasons.h"
#include "model/views.h"
#include "scheduler/plan.h"
#include "scheduler/queue_rules.h"

namespace tutti::controller {

namespace {
constexpr std::size_t kMaxScriptBytes = 4 << 20;
constexpr std::size_t kMaxEnvironmentBytes = 8 << 20;

tl::unexpected<Error> refused(std::string_view reason, std::string message) {
  return fail(ErrorCode::kInvalid, std::move(message), std::string(reason));
}
BlobId base_id(const journal::BlobId& id) {
  return blob_id_from_hex(journal::to_string(id)).value_or(BlobId{});
}
const PartitionSpec* find_partition(const ClusterSpec& spec, const std::string& name) {
  for (const PartitionSpec& p : spec.partitions)
    if (name.empty() ? p.is_default : p.name == name) return &p;
  return nullptr;
}

// Accounts that partitions ask for.
Status check_names(const ClusterSpec& spec, const Workload& w) {
  for (const std::string& name : w.partitions) {
    const PartitionSpec& p = *find_partition(spec, name);
    auto has = [&](const std::vector<std::string>& list) { return std::find(list.begin(), list.end(), w.account) != list.end(); };
    if ((!p.allow_accounts.empty() && !has(p.allow_accounts)) || has(p.deny_accounts))
      return refused(reason::kInvalidAccount, fmt::format("partition {} does not take account \"{}\"", name, w.account));
  }
  return {};
}
}  // namespace

// Whether the caller may use the partitions that are named.
Status Core::check_partitions(const Caller& caller, const Workload& w) {
  for (const std::string& name : w.partitions) {
    const PartitionSpec* p = find_partition(*state_.spec, name);
    if (!p || name.empty()) return refused(reason::kInvalidPartition, fmt::format("invalid partition specified: {}", name));
    if (p->root_only && !caller.is_operator)
      return fail(ErrorCode::kDenied, fmt::format("partition {} is for operators only", name), std::string(reason::kNotOperator));
    if (p->no_root_jobs && w.uid == 0)
      return fail(ErrorCode::kDenied, fmt::format("partition {} takes no jobs of root", name), std::string(reason::kNotOperator));
    if (p->state == PartitionState::kInactive)
      return refused(reason::kPartitionDown, fmt::format("partition {} is inactive: it takes no jobs now", name));
    if (!p->allow_groups.empty() && !caller.is_operator) {
      bool member = std::any_of(p->allow_groups.begin(), p->allow_groups.end(),
                                [&](const std::string& group) { return users_.in_group(w.uid, group); });
      if (!member) return fail(ErrorCode::kDenied, fmt::format("partition {} is for groups {}", name, fmt::join(p->allow_groups, ",")), "group_not_permitted");
    }
  }
  return {};
}

Status Core::check_workload(const Caller& caller, Submission& submission) {
  Workload& w = submission.workload;
  const ClusterSpec& spec = *state_.spec;
  if (!caller.is_operator && w.uid != caller.uid)
    return fail(ErrorCode::kDenied, fmt::format("user {} may not submit as user {}", caller.uid, w.uid), std::string(reason::kNotOwner));
  if (submission.script.size() > kMaxScriptBytes)
    return refused(reason::kScriptTooLarge, fmt::format("the script has {} bytes, at most {} are taken", submission.script.size(), kMaxScriptBytes));
  if (submission.environment.size() > kMaxEnvironmentBytes)
    return refused(reason::kMalformed, fmt::format("the environment has {} bytes, at most {} are taken", submission.environment.size(), kMaxEnvironmentBytes));
  if (w.roles.empty()) return refused(reason::kMalformed, "a workload needs at least one role");
  if (w.partitions.empty()) {
    const PartitionSpec* p = find_partition(spec, "");
    if (!p) return refused(reason::kInvalidPartition, "no partition was named and the cluster has no default one");
    w.partitions.edit().push_back(p->name);
  }
  if (Status allowed = check_partitions(caller, w); !allowed) return allowed;
  if (Status booked = check_accounting(w); !booked) return booked;
  if (Status known = check_names(spec, w); !known) return known;
  if (w.user.empty()) w.user = users_.user_name(w.uid);
  auto in_group = [&](const std::string& group) { return users_.in_group(w.uid, group); };
  if (Status usable = may_use(state_, w, in_group, now_); !usable) return usable;
  if (Status takes = scheduler::check_queue_takes(*state_.queues, w); !takes) return takes;
  if (Status member = check_group(w); !member) return member;
  if (w.is_array()) {
    auto indices = parse_index_set(w.array, spec.max_array_index);
    if (!indices || indices->empty()) return refused(reason::kInvalidArray, indices ? "an array without elements" : indices.error().message);
  }
  if (Status settled = settle_dependencies(w); !settled) return settled;
  if (state_.workloads.size() >= spec.max_jobs)
    return fail(ErrorCode::kExhausted, fmt::format("the cluster keeps at most {} jobs", spec.max_jobs), std::string(reason::kTooManyJobs));
  return scheduler::check_can_ever_run(spec, w);
}

// What history says of a dependency on jobs that are over and forgotten: is it met?
Result<bool> Core::met_long_ago(const Dependency& d) const {
  journal::HistoryFilter filter;
  filter.ids.push_back({d.job, d.array_index});
  auto rows = journal_.query_history(filter);
  if (!rows) return tl::unexpected<Error>(rows.error());
  std::size_t good = 0, bad = 0;
  for (const std::string& row : *rows) {
    auto record = from_json<JobRecord>(std::string_view(row));
    if (record) ++(record->gang.outcome == Outcome::kCompleted ? good : bad);
  }
  if (good + bad == 0)
    return refused(reason::kInvalidDependency, fmt::format("it depends on job {}, which never was", d.job));
  switch (d.kind) {
    case DependencyKind::kAfterOk:
    case DependencyKind::kAfterCorr:
      return bad == 0;
    case DependencyKind::kAfterNotOk:
      return bad > 0;
    default:
      return true;
  }
}

// Dependencies on jobs that are known stay. What is over and forgotten is decided now, by history;
// what never was, or can never be met, is refused.
Status Core::settle_dependencies(Workload& w) const {
  std::vector<Dependency> open;
  bool any_met = false;
  for (const Dependency& d : w.extras->dependencies) {
    const WorkloadEntry* on = state_.workloads.find(d.job);
    if (d.kind == DependencyKind::kSingleton || on || state_.gangs.find(d.job)) {
      if (on && d.job == w.id.value()) return refused(reason::kInvalidDependency, fmt::format("job {} cannot wait for itself", d.job));
      auto elements = on && on->workload.is_array() ? parse_index_set(on->workload.array, kNoLimit - 1) : Result<IndexSet>(IndexSet());
      if (d.array_index && on && (!elements || !elements->contains(*d.array_index)))
        return refused(reason::kInvalidDependency, fmt::format("it depends on job {0}_{1}: job {0} has no such element", d.job, *d.array_index));
      open.push_back(d);
      continue;
    }
    auto met = met_long_ago(d);
    if (!met) return tl::unexpected<Error>(met.error());
    any_met |= *met;
    if (!*met && !w.extras->any_dependency)
      return refused(reason::kInvalidDependency, fmt::format("{} of job {} can never be met: it has ended otherwise", enum_name(d.kind), d.job));
  }
  bool all_never = !w.extras->dependencies.empty() && open.empty() && !any_met;
  if (all_never) return refused(reason::kInvalidDependency, "none of its dependencies can ever be met");
  if (w.extras->any_dependency && any_met) open.clear();
  if (open.size() != w.extras->dependencies.size()) w.extras.edit().dependencies = std::move(open);
  return {};
}

std::vector<std::uint32_t> Core::named_by(const Workload& w) const {
  std::vector<std::uint32_t> named;
  for (const Dependency& d : w.extras->dependencies) {
    if (state_.workloads.find(d.job))
      named.push_back(d.job);
    else if (const Gang* g = state_.gangs.find(d.job))
      named.push_back(g->workload.value());
  }
  return named;
}

void Core::count_names(const Workload& w) {
  for (std::uint32_t job : named_by(w)) ++named_[job];
}

void Core::drop_names(const Workload& w) {
  for (std::uint32_t job : named_by(w)) {
    auto it = named_.find(job);
    if (it == named_.end() || --it->second > 0) continue;
    named_.erase(it);
    // Its time had come already.
    if (kept_.erase(job)) finished_.push_front({state_.workloads.find(job)->ended, job});
  }
}

Result<WorkloadId> Core::accept(const Caller& caller, Submission& submission) {
  Status checked = check_workload(caller, submission);
  if (!checked) return tl::unexpected<Error>(checked.error());
  Workload& w = submission.workload;
  w.id = WorkloadId(state_.next_id);
  w.submitted = now_;
  if (!w.extras->dependencies.empty())
    for (Dependency& d : w.extras.edit().dependencies)
      if (const WorkloadEntry* other = state_.workloads.find(d.job)) d.of_array = !d.array_index && other->workload.is_array();
  if (w.user.empty()) w.user = users_.user_name(w.uid);
  if (w.user.empty()) w.user = std::to_string(w.uid);
  if (w.group.empty()) w.group = users_.group_name(w.gid);
  if (!submission.script.empty()) {
    journal::Blob script(std::move(submission.script));
    w.launch.script = base_id(script.id());
    batch_.blobs.push_back(std::move(script));
  } else {
    w.launch.script = BlobId{};
  }
  if (!submission.environment.empty()) {
    journal::Blob environment(std::move(submission.environment));
    w.launch.environment = base_id(environment.id());
    batch_.blobs.push_back(std::move(environment));
  } else {
    w.launch.environment = BlobId{};
  }
  WorkloadId id = w.id;
  // A held job changes nothing that a pass decides; why it waits is known without one.
  const bool wants_pass = dirty_ || w.hold == Hold::kNone;
  if (w.submission_key) submission_keys_[{w.uid, w.submission_key}] = id;
  record(WorkloadSubmitted{std::move(w)});
  dirty_ = wants_pass;
  const WorkloadEntry& entry = *state_.workloads.find(id.value());
  count_names(entry.workload);
  expect_client(entry);
  ++diag_.jobs_submitted;
  return id;
}

SubmitResult Core::try_out(const Caller& caller, Submission& submission) {
  SubmitResult result;
  Status checked = check_workload(caller, submission);
  if (!checked) {
    result.error = ApiError{checked.error().code, checked.error().reason, checked.error().message};
    return result;
  }
  result.partition = submission.workload.partitions.front();
  // Plan with it on a copy; nothing of this turn's state is touched.
  ClusterState copy = state_;
  Agenda agenda = agenda_;
  WorkloadEntry entry;
  entry.workload = submission.workload;
  entry.workload.id = result.id = WorkloadId(copy.next_id);
  entry.workload.submitted = now_;
  entry.workload.array.clear();
  if (const Association* mine = association_for(*copy.accounts, entry.workload.account, entry.workload.user, entry.workload.partitions.front()))
    entry.association = mine->id;
  entry.simple_unstarted = true;
  copy.workloads.put(result.id.value(), std::make_shared<const WorkloadEntry>(entry));
  agenda.pending.insert(result.id.value());
  scheduler::Plan plan = scheduler::plan({copy, agenda, now_});
  for (const scheduler::Start& start : plan.starts) {
    if (start.element.workload != result.id) continue;
    result.planned_start = now_;
    result.partition = start.partition;
    for (const Slot& slot : start.slots) result.planned_nodes.push_back(copy.spec->nodes[slot.node].name);
  }
  for (const scheduler::Promise& promise : plan.promises) {
    if (promise.element.workload != result.id) continue;
    result.planned_start = promise.at;
    for (NodeIndex node : promise.nodes) result.planned_nodes.push_back(copy.spec->nodes[node].name);
  }
  return result;
}

SubmitResult Core::submit(const Caller& caller, Submission& submission) {
  SubmitResult result;
  auto refuse_with = [&result](const Error& error) {
    result.error = ApiError{error.code, error.reason, error.message};
    return result;
  };
  auto key = request_key(submission.key);
  if (!key) return refuse_with(key.error());
  if (*key) {
    auto known = submission_keys_.find({submission.workload.uid, *key});
    if (known != submission_keys_.end() && (caller.is_operator || caller.uid == submission.workload.uid)) {
      result.id = known->second;
      return result;
    }
  }
  submission.workload.submission_key = *key;
  bool immediate = submission.workload.immediate;
  auto id = accept(caller, submission);
  if (!id) return refuse_with(id.error());
  result.id = *id;
  if (!immediate) return result;
  run_pass();
  const WorkloadEntry* entry = state_.workloads.find(id->value());
  if (!entry->has_unstarted()) return result;
  record(ElementsCancelled{*id, "", Outcome::kCancelled, std::nullopt});
  workload_closed(*state_.workloads.find(id->value()));
  return refuse_with({ErrorCode::kConflict, std::string(reason::kNotImmediate), "it cannot start at once", {}});
}

void Core::on_submit(ApiCall& call) {
  if (call.method != "POST") return refuse(call, Error{ErrorCode::kInvalid, "", "submissions are POSTed", {}});
  auto request = from_json<SubmitRequest>(std::string_view(call.body));
  if (!request) return refuse(call, Error{ErrorCode::kInvalid, std::string(reason::kMalformed), request.error().message, {}});
  call.body.clear();
  SubmitReply reply;
  for (Submission& submission : request->submissions)
    reply.results.push_back(request->test_only ? try_out(call.caller, submission) : submit(call.caller, submission));
  answer(call, {200, to_json(reply)});
}

}  // namespace tutti::controller
