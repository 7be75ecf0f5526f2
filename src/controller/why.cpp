// tutti why: the story of a job and what it waits for, from the published picture.
#include <fmt/format.h>

#include "base/index_set.h"
#include "base/hostlist.h"
#include "controller/job_lookup.h"
#include "controller/queries.h"
#include "model/reasons.h"

namespace tutti::controller {

namespace {

std::string when(Instant at, Instant now) {
  std::int64_t seconds = (now - at).whole_seconds();
  if (seconds < 0) return fmt::format("in {} s", -seconds);
  return fmt::format("{} s ago", seconds);
}

void tell_gang(const ClusterState& state, const Gang& gang, Instant now, std::vector<std::string>& story) {
  std::vector<std::string> nodes;
  std::size_t gpus = 0;
  for (const Slot& slot : gang.slots) {
    nodes.push_back(state.spec->nodes[slot.node].name);
    gpus += slot.gpus.size();
  }
  if (!gang.last_failure.empty() && gang.state == GangState::kPending)
    story.push_back(fmt::format("the last try did not start: {} ({} failed roll calls)", gang.last_failure, gang.launch_failures));
  if (gang.allocated.is_set())
    story.push_back(fmt::format("{}: allocated {} ({} GPUs), roll call begins", when(gang.allocated, now), fold_hostlist(nodes), gpus));
  if (gang.started.is_set())
    story.push_back(fmt::format("{}: all {} nodes ready after {} ms, go", when(gang.started, now), nodes.size(), (gang.started - gang.allocated).ms()));
  for (const Step& step : gang.steps)
    if (step.started.is_set() && step.id >= 0)
      story.push_back(fmt::format("{}: step {} ({}) started{}", when(step.started, now), step.id, step.name,
                                  step.state == StepState::kDone ? fmt::format(", ended {} ({})", when(step.ended, now), enum_name(step.outcome)) : ""));
  if (gang.ended.is_set()) {
    std::string how = std::string(enum_name(gang.outcome));
    if (gang.exit.signal) how += fmt::format(", signal {}", gang.exit.signal);
    else if (gang.exit.code) how += fmt::format(", exit code {}", gang.exit.code);
    story.push_back(fmt::format("{}: ended: {}{}", when(gang.ended, now), how, gang.last_failure.empty() ? "" : " (" + gang.last_failure + ")"));
  }
  if (gang.started.is_set()) {
    Instant end = gang.ended.is_set() ? gang.ended : now;
    story.push_back(fmt::format("GPU-seconds held: {}", static_cast<std::int64_t>(gpus) * (end - gang.started).ms() / 1000));
  }
}

void suggest(const WorkloadView& view, const Wait& wait, std::vector<std::string>& changes) {
  std::uint32_t id = view.workload.id.value();
  if (wait.reason == reason::kHeldUser) changes.push_back(fmt::format("scontrol release {}", id));
  if (wait.reason == reason::kHeldAdmin || wait.reason == reason::kLaunchFailedHeld)
    changes.push_back(fmt::format("an operator: scontrol release {}", id));
  if (wait.reason == reason::kArrayThrottle) changes.push_back(fmt::format("scontrol update jobid={} arraytaskthrottle=0", id));
  if (wait.reason == reason::kBeginTime) changes.push_back(fmt::format("scontrol update jobid={} starttime=now", id));
  if (wait.reason == reason::kDependencyNever) changes.push_back(fmt::format("scancel {} (its dependency can no longer be met)", id));
  if (wait.reason == reason::kPartitionTimeLimit) changes.push_back(fmt::format("scontrol update jobid={} timelimit=<at most the partition's>", id));
  if (wait.reason == reason::kPartitionStopped) changes.push_back("an operator: scontrol update partitionname=<name> state=up");
  if (wait.reason == reason::kNodesDown) changes.push_back("an operator: scontrol update nodename=<node> state=resume");
}

}  // namespace

Result<WhyReply> why(const Published& picture, std::uint32_t job, std::optional<std::uint32_t> index, Instant now) {
  std::optional<IndexSet> indices;
  if (index) indices = IndexSet::of(*index, *index);
  auto target = find_job(picture.state, job, indices ? &*indices : nullptr);
  if (!target) return fail(ErrorCode::kNotFound, fmt::format("job {} is not known (finished jobs are remembered {} s; see sacct)", job, picture.state.spec->min_job_age.whole_seconds()), std::string(reason::kUnknownJob));
  const WorkloadEntry& entry = *picture.state.workloads.find(target->workload.value());
  WhyReply reply;
  reply.job = view_of(picture, entry, now);
  reply.not_honoured = entry.workload.extras->not_honoured;
  reply.story.push_back(fmt::format("{}: submitted by {}", when(entry.workload.submitted, now), entry.workload.user));
  for (GangId id : target->gangs)
    if (const Gang* gang = picture.state.gangs.find(id.value())) tell_gang(picture.state, *gang, now, reply.story);
  if (entry.gangs.empty() && entry.ended.is_set())
    reply.story.push_back(fmt::format("{}: {} before it started", when(entry.ended, now), enum_name(entry.outcome)));
  if (reply.job.wait && (target->simple_unstarted || !target->unstarted.empty())) suggest(reply.job, *reply.job.wait, reply.changes);
  for (const GangView& g : reply.job.gangs)
    if (g.wait) suggest(reply.job, *g.wait, reply.changes);
  return reply;
}

}  // namespace tutti::controller
