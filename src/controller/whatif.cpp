#include "controller/whatif.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hostlist.h"
#include "base/text.h"
#include "model/reasons.h"
#include "state/apply.h"

namespace tutti::controller {

namespace {

using scheduler::Expected;
using scheduler::Supposition;

std::vector<std::string> names_of(const ClusterSpec& spec, const std::vector<NodeIndex>& nodes) {
  std::vector<std::string> out;
  for (NodeIndex node : nodes)
    if (node < spec.nodes.size()) out.push_back(spec.nodes[node].name);
  return out;
}

std::string when(Instant at, Instant now) {
  if (at <= now) return "starts at once";
  return fmt::format("starts in {} s", (at - now).whole_seconds());
}

// Each of these gathers its problems, so that all are told at once.
void drain(Supposition& supposed, const std::string& list, WhatIfReply& reply,
           std::vector<std::string>& problems) {
  if (list.empty()) return;
  auto names = expand_hostlist(list);
  if (!names) return problems.push_back(fmt::format("nodes {}: {}", list, names.error().message));
  const ClusterSpec& spec = *supposed.state.spec;
  for (const std::string& name : *names) {
    auto node = std::find_if(spec.nodes.begin(), spec.nodes.end(),
                             [&](const NodeSpec& each) { return each.name == name; });
    if (node == spec.nodes.end()) {
      problems.push_back(fmt::format("node {} is not configured", name));
      continue;
    }
    const auto index = static_cast<NodeIndex>(node - spec.nodes.begin());
    NodeState state = supposed.state.node(index) ? *supposed.state.node(index) : NodeState{};
    state.drained = true;
    state.reason = "what if";
    supposed.state.nodes.put(index + 1, std::make_shared<const NodeState>(std::move(state)));
    Instant empty = supposed.now;
    std::size_t jobs = 0;
    for (std::uint32_t id : supposed.agenda.active) {
      const Gang* gang = supposed.state.gangs.find(id);
      const bool here =
          gang && std::any_of(gang->slots.begin(), gang->slots.end(), [&](const Slot& slot) {
            return slot.node == index && !slot.released;
          });
      if (!here) continue;
      ++jobs;
      empty = std::max(empty, gang->limit_end.is_set() ? gang->limit_end : Instant::never());
    }
    if (jobs > 0 && empty >= Instant::never())
      reply.notes.push_back(fmt::format(
          "{} is not empty in a known time: {} jobs run on it, not all with a limit", name, jobs));
    else if (jobs > 0)
      reply.notes.push_back(fmt::format("{} is empty in {} s at the latest: {} jobs run on it",
                                        name, (empty - supposed.now).whole_seconds(), jobs));
  }
}

// "research:gpu:h100=16".
void set_quota(QueueTree& tree, const std::string& text, std::vector<std::string>& problems) {
  auto sides = split_once(text, '=');
  auto left = sides ? split_once(sides->first, ':') : std::nullopt;
  auto amount = sides ? parse_integer<std::uint64_t>(sides->second) : std::nullopt;
  if (!left || !amount)
    return problems.push_back(
        fmt::format("quota {}: expected QUEUE:RESOURCE=AMOUNT, as in research:gpu=16", text));
  for (QueueSpec& queue : tree.queues) {
    if (queue.name != left->first) continue;
    for (QuotaSpec& quota : queue.quotas)
      if (quota.resource == left->second) {
        quota.nominal = amount;
        return;
      }
    queue.quotas.push_back({std::string(left->second), amount, {}, {}});
    return;
  }
  problems.push_back(fmt::format("there is no queue {}", left->first));
}

void set_quotas(Supposition& supposed, const std::vector<std::string>& quotas,
                std::vector<std::string>& problems) {
  if (quotas.empty()) return;
  QueueTree tree = *supposed.state.queues;
  for (const std::string& quota : quotas) set_quota(tree, quota, problems);
  supposed.state.queues = std::make_shared<const QueueTree>(std::move(tree));
}

void add_nodes(Supposition& supposed, const WhatIfRequest& request,
               std::vector<std::string>& problems) {
  if (request.add_nodes == 0) return;
  if (request.add_nodes > 100'000) {
    problems.push_back(fmt::format("{} nodes are too many: at most 100000", request.add_nodes));
    return;
  }
  ClusterSpec spec = *supposed.state.spec;
  for (const std::string& name : request.partitions)
    if (std::none_of(spec.partitions.begin(), spec.partitions.end(),
                     [&](const PartitionSpec& each) { return each.name == name; }))
      problems.push_back(fmt::format("partition {} is not configured", name));
  const std::string prefix = request.node.name.empty() ? "new" : request.node.name;
  for (std::uint32_t i = 1; i <= request.add_nodes; ++i) {
    NodeSpec node = request.node;
    node.name = fmt::format("{}{}", prefix, i);
    node.kind = NodeKind::kPlanned;
    for (PartitionSpec& partition : spec.partitions)
      if (request.partitions.empty() ||
          std::find(request.partitions.begin(), request.partitions.end(), partition.name) !=
              request.partitions.end())
        partition.nodes.push_back(node.name);
    NodeState state;
    state.status = NodeStatus::kUp;
    spec.nodes.push_back(std::move(node));
    supposed.state.nodes.put(static_cast<std::uint32_t>(spec.nodes.size()),
                             std::make_shared<const NodeState>(std::move(state)));
  }
  supposed.state.spec = std::make_shared<const ClusterSpec>(std::move(spec));
}

std::vector<scheduler::ElementKey> add_submissions(Supposition& supposed,
                                                   std::vector<Submission>& submissions,
                                                   WhatIfReply& reply,
                                                   std::vector<std::string>& problems) {
  std::vector<scheduler::ElementKey> out;
  for (Submission& each : submissions) {
    Workload& workload = each.workload;
    const std::string name = workload.name.empty() ? "a script" : workload.name;
    if (workload.roles.empty()) {
      problems.push_back(fmt::format("{}: a workload needs at least one role", name));
      continue;
    }
    if (workload.is_array())
      reply.notes.push_back(fmt::format("of array {} the first element is asked about", name));
    if (Status can = scheduler::check_can_ever_run(*supposed.state.spec, workload); !can) {
      problems.push_back(fmt::format("{} would be refused: {}", name, can.error().message));
      continue;
    }
    out.emplace_back(supposed.add(std::move(workload)), GangId());
  }
  return out;
}

WhatIfRow row_of(const Supposition& supposed, const scheduler::ElementKey& key) {
  WhatIfRow row;
  const WorkloadEntry* entry = supposed.state.workloads.find(key.first.value());
  row.job = std::to_string(key.second ? key.second.value() : key.first.value());
  if (entry) {
    row.name = entry->workload.name;
    row.user = entry->workload.user;
  }
  return row;
}

}  // namespace

scheduler::Supposition suppose(const Published& picture, Instant now) {
  Supposition out;
  out.state = picture.state;
  out.now = now;
  out.agenda = state::derive_agenda(picture.state);
  return out;
}

std::vector<std::string> cheapest_changes(const Published& picture,
                                          const scheduler::ElementKey& element, const Wait& wait,
                                          Instant now) {
  static constexpr std::string_view kAboutRoom[] = {
      reason::kResources,          reason::kPriority,           reason::kNodesDown,
      reason::kRequestedNodesBusy, reason::kPartitionTimeLimit, reason::kPartitionNodeLimit,
      reason::kPartitionStopped,   reason::kPartitionInactive,  reason::kReservedForMaintenance,
      reason::kReservedForOthers,  reason::kReservation,        reason::kReservationGone};
  if (std::find(std::begin(kAboutRoom), std::end(kAboutRoom), wait.reason) == std::end(kAboutRoom))
    return {};
  const Supposition supposed = suppose(picture, now);
  std::vector<std::string> out;
  for (const scheduler::Improvement& each : scheduler::improvements(supposed, element)) {
    std::string nodes = fold_hostlist(names_of(*supposed.state.spec, each.expected.nodes));
    out.push_back(fmt::format("{} it {}{}{}", each.change, when(each.expected.start, now),
                              nodes.empty() ? "" : " on " + nodes,
                              each.command.empty() ? "" : " (" + each.command + ")"));
  }
  return out;
}

Result<WhatIfReply> what_if(const Published& picture, WhatIfRequest request, Instant now) {
  const Supposition before = suppose(picture, now);
  Supposition after = before;
  WhatIfReply reply;
  reply.now = now;
  std::vector<std::string> problems;
  drain(after, request.drain, reply, problems);
  set_quotas(after, request.quotas, problems);
  add_nodes(after, request, problems);
  auto added = add_submissions(after, request.submissions, reply, problems);
  if (!problems.empty())
    return fail(ErrorCode::kInvalid, fmt::format("{}", fmt::join(problems, "; ")),
                std::string(reason::kMalformed));
  const auto starts_before = scheduler::expected_starts(before);
  const auto starts_after = scheduler::expected_starts(after);
  for (const auto& [key, expected] : starts_after) {
    auto known = starts_before.find(key);
    const Instant was = known == starts_before.end() ? Instant() : known->second.start;
    const bool is_new = std::find(added.begin(), added.end(), key) != added.end();
    if (!is_new && was == expected.start) {
      ++reply.unchanged;
      continue;
    }
    WhatIfRow row = row_of(after, key);
    row.before = was;
    row.after = expected.start;
    row.is_new = is_new;
    row.nodes = names_of(*after.state.spec, expected.nodes);
    if (expected.wait) {
      row.reason = expected.wait->reason;
      row.text = expected.wait->text;
    }
    reply.rows.push_back(std::move(row));
  }
  return reply;
}

}  // namespace tutti::controller
