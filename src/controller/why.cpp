// tutti why: the story of a job and what it waits for, from the published picture.
#include <fmt/format.h>
#include <map>

#include "base/index_set.h"
#include "base/hostlist.h"
#include "controller/job_lookup.h"
#include "controller/queries.h"
#include "controller/whatif.h"
#include "model/reasons.h"

namespace tutti::controller {

namespace {

std::string when(Instant at, Instant now) {
  std::int64_t seconds = (now - at).whole_seconds();
  if (seconds < 0) return fmt::format("in {} s", -seconds);
  return fmt::format("{} s ago", seconds);
}

std::string how_it_ended(const Gang& gang) {
  std::string how(enum_name(gang.outcome));
  if (gang.exit.signal) how += fmt::format(", signal {}", gang.exit.signal);
  else if (gang.exit.code) how += fmt::format(", exit code {}", gang.exit.code);
  if (!gang.last_failure.empty()) how += fmt::format(" ({})", gang.last_failure);
  return how;
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
    story.push_back(fmt::format("{}: ended: {}", when(gang.ended, now), how_it_ended(gang)));
  }
  if (gang.started.is_set()) {
    Instant end = gang.ended.is_set() ? gang.ended : now;
    story.push_back(fmt::format("GPU-seconds held: {}", static_cast<std::int64_t>(gpus) * (end - gang.started).ms() / 1000));
  }
}

// Ended lives of each gang; its present or last one is not among them.
std::map<GangId, std::vector<const JobRecord*>> earlier_lives(const ClusterState& state, const std::vector<JobRecord>& ended) {
  std::map<GangId, std::vector<const JobRecord*>> lives;
  for (const JobRecord& record : ended) {
    const Gang* gang = state.gangs.find(record.gang.id.value());
    bool present = gang && gang->epoch == record.gang.epoch && gang->state != GangState::kPending;
    if (gang && !present && record.gang.allocated.is_set()) lives[gang->id].push_back(&record);
  }
  return lives;
}

void tell_life(const JobRecord& record, std::size_t number, Instant now, std::vector<std::string>& story) {
  const Gang& life = record.gang;
  std::string ran = life.started.is_set() ? fmt::format("ran {} s", (life.ended - life.started).whole_seconds()) : "never started";
  story.push_back(fmt::format("life {}: on {}, {}, ended {}: {}", number, fold_hostlist(record.nodes), ran, when(life.ended, now), how_it_ended(life)));
}

// One line for an element of an array.
std::string element_line(const ClusterState& state, const Gang& gang, std::size_t lives, Instant now) {
  std::vector<std::string> nodes;
  for (const Slot& slot : gang.slots) nodes.push_back(state.spec->nodes[slot.node].name);
  std::string line = fmt::format("{}_{}: ", gang.workload.value(), gang.array_index.value_or(0));
  if (lives > 0) line += fmt::format("life {}, ", lives + 1);
  if (gang.state == GangState::kDone)
    return line + fmt::format("ended {}: {}", when(gang.ended, now), how_it_ended(gang));
  line += enum_name(gang.state);
  if (!nodes.empty()) line += fmt::format(" on {}", fold_hostlist(nodes));
  if (gang.started.is_set()) line += fmt::format(", started {}", when(gang.started, now));
  return line;
}

constexpr std::size_t kElementsTold = 12;

void tell_gangs(const ClusterState& state, const std::vector<GangId>& ids, const std::vector<JobRecord>& ended, Instant now,
                std::vector<std::string>& story) {
  auto lives = earlier_lives(state, ended);
  std::size_t told = 0;
  for (GangId id : ids) {
    const Gang* gang = state.gangs.find(id.value());
    if (!gang) continue;
    const auto& earlier = lives[id];
    if (ids.size() > 1) {
      if (++told <= kElementsTold) story.push_back(element_line(state, *gang, earlier.size(), now));
      continue;
    }
    for (std::size_t i = 0; i < earlier.size(); ++i) tell_life(*earlier[i], i + 1, now, story);
    if (!earlier.empty()) story.push_back(fmt::format("life {}:{}", earlier.size() + 1, gang->state == GangState::kPending ? " waits" : ""));
    tell_gang(state, *gang, now, story);
  }
  if (told > kElementsTold)
    story.push_back(fmt::format("and {} more elements; `tutti why {}_N` tells of one", told - kElementsTold, state.gangs.find(ids.front().value())->workload.value()));
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

// Its promise, and what would start it sooner. What waits beyond the depth of a pass has no planned
// start from it; here there is time to find one.
void look_ahead(const Published& picture, const scheduler::ElementKey& element, Wait& wait, Instant now, WhyReply& reply) {
  if (const PromiseRecord* record = picture.state.promises->find(element.first, element.second)) reply.promise = *record;
  for (std::string& change : cheapest_changes(picture, element, wait, now)) reply.changes.push_back(std::move(change));
  if (wait.planned_start.is_set()) return;
  auto all = scheduler::expected_starts(suppose(picture, now));
  auto found = all.find(element);
  if (found == all.end() || !found->second.wait) return;
  wait.planned_start = found->second.start;
  for (NodeIndex node : found->second.nodes) wait.planned_nodes.push_back(picture.state.spec->nodes[node].name);
}

}  // namespace

Result<WhyReply> why(const Published& picture, std::uint32_t job, std::optional<std::uint32_t> index,
                     const std::vector<JobRecord>& ended, Instant now) {
  std::optional<IndexSet> indices;
  if (index) indices = IndexSet::of(*index, *index);
  auto target = find_job(picture.state, job, indices ? &*indices : nullptr);
  if (!target) return fail(ErrorCode::kNotFound, fmt::format("job {} is not known (finished jobs are remembered {} s; see sacct)", job, picture.state.spec->min_job_age.whole_seconds()), std::string(reason::kUnknownJob));
  const WorkloadEntry& entry = *picture.state.workloads.find(target->workload.value());
  WhyReply reply;
  reply.job = view_of(picture, entry, now);
  reply.not_honoured = entry.workload.extras->not_honoured;
  reply.story.push_back(fmt::format("{}: submitted by {}", when(entry.workload.submitted, now), entry.workload.user));
  tell_gangs(picture.state, target->gangs, ended, now, reply.story);
  if (entry.gangs.empty() && entry.ended.is_set())
    reply.story.push_back(fmt::format("{}: {} before it started", when(entry.ended, now), enum_name(entry.outcome)));
  if (reply.job.wait && (target->simple_unstarted || !target->unstarted.empty())) suggest(reply.job, *reply.job.wait, reply.changes);
  for (const GangView& g : reply.job.gangs)
    if (g.wait) suggest(reply.job, *g.wait, reply.changes);
  if (reply.job.wait)
    look_ahead(picture, {entry.workload.id, GangId()}, *reply.job.wait, now, reply);
  else if (reply.job.gangs.size() == 1 && reply.job.gangs[0].wait)
    look_ahead(picture, {entry.workload.id, reply.job.gangs[0].gang.id}, *reply.job.gangs[0].wait, now, reply);
  return reply;
}

}  // namespace tutti::controller
