// Invariant 3: no start breaks used <= nominal + borrowed, borrowed <= borrowing limit, lent <=
// lending limit at any node. Sums of its own over the configured numbers; amounts that follow from
// weights are the quota tree's to fix and are not judged here.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "scheduler/lint.h"
#include "scheduler/queue_rules.h"

namespace tutti::scheduler {

namespace {

using Amounts = std::map<std::string, std::uint64_t>;  // by resource

Amounts amounts_of(const ClusterSpec& spec, const std::vector<Slot>& slots) {
  Amounts out;
  for (const Slot& slot : slots) {
    if (slot.released || slot.node >= spec.nodes.size()) continue;
    out["cpu"] += slot.cpu_ids.size();
    out["memory"] += slot.memory_mib;
    for (std::uint16_t gpu : slot.gpus) {
      ++out["gpu"];
      ++out["gpu:" + spec.nodes[slot.node].devices[gpu].type];
    }
  }
  return out;
}

struct Books {
  const QueueTree& tree;
  std::map<std::string, Amounts> used;  // by queue, with its subtree
  std::map<std::string, Amounts> before;

  void add(std::map<std::string, Amounts>& table, const QueueSpec* queue, const Amounts& amounts) {
    for (; queue; queue = tree.find(queue->parent))
      for (const auto& [resource, amount] : amounts) table[queue->name][resource] += amount;
  }
  // What siblings keep for themselves of a parent's amount, beyond what they use.
  std::uint64_t kept_by_children(const QueueSpec& parent, const std::string& resource) {
    std::uint64_t sum = 0;
    for (const QueueSpec& child : tree.queues) {
      if (child.parent != parent.name) continue;
      for (const QuotaSpec& quota : child.quotas) {
        if (quota.resource != resource || !quota.nominal || !quota.lending_limit) continue;
        const std::uint64_t kept = *quota.nominal - std::min(*quota.nominal, *quota.lending_limit);
        const std::uint64_t uses = used[child.name][resource];
        sum += kept - std::min(kept, uses);
      }
    }
    return sum;
  }
};

}  // namespace

std::vector<std::string> lint_quotas(const PassInput& input, const Plan& plan) {
  std::vector<std::string> findings;
  const QueueTree& tree = *input.state.queues;
  if (tree.queues.empty() || plan.starts.empty()) return findings;
  Books books{tree, {}, {}};
  for (std::uint32_t id : input.agenda.active) {
    const Gang* gang = input.state.gangs.find(id);
    const WorkloadEntry* entry =
        gang ? input.state.workloads.find(gang->workload.value()) : nullptr;
    if (!entry) continue;
    const Amounts amounts = amounts_of(*input.state.spec, gang->slots);
    books.add(books.used, queue_for(tree, entry->workload), amounts);
  }
  books.before = books.used;
  for (const Start& start : plan.starts) {
    const WorkloadEntry* entry = input.state.workloads.find(start.element.workload.value());
    if (entry)
      books.add(books.used, queue_for(tree, entry->workload),
                amounts_of(*input.state.spec, start.slots));
  }
  for (const QueueSpec& queue : tree.queues)
    for (const QuotaSpec& quota : queue.quotas) {
      const std::uint64_t uses = books.used[queue.name][quota.resource];
      if (uses == books.before[queue.name][quota.resource]) continue;  // nothing of it has started
      if (quota.limit && uses > *quota.limit)
        findings.push_back(fmt::format("queue {} uses {} {} and its limit is {}", queue.name, uses,
                                       quota.resource, *quota.limit));
      if (!quota.nominal) continue;
      const std::uint64_t taken = uses + books.kept_by_children(queue, quota.resource);
      const bool root = queue.parent.empty();
      if (!root && !quota.borrowing_limit) continue;
      const std::uint64_t most = *quota.nominal + (root ? 0 : *quota.borrowing_limit);
      if (taken > most)
        findings.push_back(fmt::format("queue {} takes {} {} and may take {}", queue.name, taken,
                                       quota.resource, most));
    }
  return findings;
}

}  // namespace tutti::scheduler
