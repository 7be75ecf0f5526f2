// The quota tree changes as a whole or not at all: what is asked is laid over the tree in force,
// checked, and only then recorded.
#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "controller/core.h"
#include "model/queue_api.h"
#include "model/reasons.h"
#include "scheduler/queue_rules.h"

namespace tutti::controller {

namespace {

constexpr std::size_t kMaxQueues = 10'000;

QueueSpec* find(QueueTree& tree, const std::string& name) {
  for (QueueSpec& queue : tree.queues)
    if (queue.name == name) return &queue;
  return nullptr;
}

// The tree as it would be. Queues that the request names twice are both kept, to be found.
QueueTree laid_over(const QueueTree& now, const QueuesRequest& request, QueuesReply& reply) {
  QueueTree next;
  if (request.replace) {
    next.queues = request.queues;
  } else {
    next = now;
    std::vector<std::string> given;
    for (const QueueSpec& queue : request.queues) {
      QueueSpec* known = find(next, queue.name);
      if (known && std::find(given.begin(), given.end(), queue.name) == given.end())
        *known = queue;
      else
        next.queues.push_back(queue);
      given.push_back(queue.name);
    }
  }
  if (request.default_queue) next.default_queue = *request.default_queue;
  for (const std::string& name : request.remove)
    if (std::erase_if(next.queues, [&](const QueueSpec& queue) { return queue.name == name; }) == 0)
      reply.problems.push_back({name, "", fmt::format("there is no queue {}", name), false});
    else if (next.default_queue == name && !request.default_queue)
      next.default_queue.clear();
  return next;
}

void note_changes(const QueueTree& now, const QueueTree& next, QueuesReply& reply) {
  for (const QueueSpec& queue : next.queues) {
    const QueueSpec* before = now.find(queue.name);
    if (!before)
      reply.added.push_back(queue.name);
    else if (!(*before == queue))
      reply.changed.push_back(queue.name);
  }
  for (const QueueSpec& queue : now.queues)
    if (!next.find(queue.name)) reply.removed.push_back(queue.name);
}

// Work that names a queue must not fall out of its quota.
void check_work(const ClusterState& state, const QueueTree& next, QueuesReply& reply) {
  std::map<std::string, std::pair<std::uint64_t, std::uint32_t>> lost;  // queue -> jobs, the first
  state.workloads.for_each([&](std::uint32_t id, const WorkloadEntry& entry) {
    const std::string& named = entry.workload.extras->terms.queue;
    if (named.empty() || !entry.is_open() || scheduler::find_queue(next, named)) return;
    auto [at, is_new] = lost.try_emplace(named, 0, id);
    ++at->second.first;
  });
  for (const auto& [queue, jobs] : lost)
    reply.problems.push_back(
        {queue, "",
         fmt::format("queue {} cannot go: {} job{} in it, job {} first; hold the queue or cancel them",
                     queue, jobs.first, jobs.first == 1 ? " is" : "s are", jobs.second),
         false});
}

}  // namespace

void Core::on_queues_request(ApiCall& call) {
  auto request = from_json<QueuesRequest>(std::string_view(call.body));
  if (!request)
    return refuse(call, Error{ErrorCode::kInvalid, std::string(reason::kMalformed), request.error().message, {}});
  if (!call.caller.is_operator)
    return refuse(call, Error{ErrorCode::kDenied, std::string(reason::kNotOperator), "only an operator may change queues", {}});
  if (request->queues.size() > kMaxQueues)
    return refuse(call, Error{ErrorCode::kInvalid, std::string(reason::kMalformed), fmt::format("{} queues; at most {} are taken", request->queues.size(), kMaxQueues), {}});
  QueuesReply reply;
  const QueueTree& now = *state_.queues;
  QueueTree next = laid_over(now, *request, reply);
  auto found = scheduler::check_queues(next, *state_.spec);
  reply.problems.insert(reply.problems.end(), found.begin(), found.end());
  check_work(state_, next, reply);
  const bool good = std::all_of(reply.problems.begin(), reply.problems.end(),
                                [](const QueueProblem& problem) { return problem.is_warning; });
  if (good) next = scheduler::parents_first(std::move(next));
  note_changes(now, next, reply);
  reply.in_force = good && !request->check_only;
  if (reply.in_force && !(next == now))
    record(QueuesConfigured{std::move(next), call.caller.uid});
  answer(call, {200, to_json(reply)});
}

}  // namespace tutti::controller
