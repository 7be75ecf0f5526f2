#include "scheduler/queue_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "model/reasons.h"

namespace tutti::scheduler {

namespace {

using Capacity = std::map<std::string, std::uint64_t>;

Capacity capacity_of(const ClusterSpec& cluster) {
  Capacity out{{"gpu", 0}, {"cpu", 0}, {"memory", 0}};
  for (const NodeSpec& node : cluster.nodes) {
    out["cpu"] += node.cpus;
    out["memory"] += node.memory_mib;
    out["gpu"] += node.devices.size();
    for (const DeviceSpec& device : node.devices) ++out["gpu:" + device.type];
  }
  return out;
}

bool is_leaf(const QueueTree& tree, const QueueSpec& queue) {
  return std::none_of(tree.queues.begin(), tree.queues.end(),
                      [&](const QueueSpec& other) { return other.parent == queue.name; });
}

struct Checking {
  const QueueTree& tree;
  Capacity capacity;
  std::map<std::string_view, std::vector<const QueueSpec*>> children;
  std::map<std::string_view, const QueueSpec*> by_name;
  std::vector<QueueProblem> problems;

  void error(const QueueSpec& queue, std::string key, std::string text) {
    problems.push_back({queue.name, std::move(key), std::move(text), false});
  }
  void warning(const QueueSpec& queue, std::string key, std::string text) {
    problems.push_back({queue.name, std::move(key), std::move(text), true});
  }
  const QueueSpec* find(std::string_view name) const {
    auto found = by_name.find(name);
    return found == by_name.end() ? nullptr : found->second;
  }
  bool is_inner(const QueueSpec& queue) const { return children.contains(queue.name); }
  std::string nearest(std::string_view word, const std::vector<std::string_view>& known) const {
    auto near = closest_match(word, known);
    return near ? fmt::format("; did you mean {}?", *near) : std::string();
  }
  std::vector<std::string_view> queue_names() const {
    std::vector<std::string_view> names;
    for (const auto& [name, queue] : by_name) names.push_back(name);
    return names;
  }
  std::string types() const {
    std::vector<std::string> names;
    for (const auto& [name, amount] : capacity)
      if (name.starts_with("gpu:") && name.size() > 4) names.push_back(name.substr(4));
    return names.empty() ? "no GPUs" : "GPUs of type " + join(names, ", ");
  }

  void names() {
    std::map<std::string_view, std::string_view> taken;  // name or alias -> queue
    for (const QueueSpec& queue : tree.queues) {
      const bool odd = std::any_of(queue.name.begin(), queue.name.end(), [](char c) {
        return is_space(c) || c == ',' || static_cast<unsigned char>(c) < 0x20 || c == '"';
      });
      if (queue.name.empty() || odd || queue.name.size() > 253)
        error(queue, "", fmt::format("queue {}: a name has 1 to 253 characters, without blanks, commas and quotes", quote(queue.name)));
      if (!by_name.emplace(queue.name, &queue).second)
        error(queue, "", fmt::format("queue {} is there twice", queue.name));
      taken.emplace(queue.name, queue.name);
    }
    for (const QueueSpec& queue : tree.queues)
      for (const std::string& alias : queue.aliases)
        if (auto [at, is_new] = taken.emplace(alias, queue.name); !is_new)
          error(queue, "aliases", fmt::format("queue {}: the name {} is taken by queue {}", queue.name, alias, at->second));
    for (const QueueSpec& queue : tree.queues)
      if (!queue.parent.empty()) children[queue.parent].push_back(&queue);
  }

  void parents() {
    std::set<std::string_view> told;  // of cycles
    for (const QueueSpec& queue : tree.queues) {
      if (queue.parent.empty()) continue;
      if (!find(queue.parent)) {
        error(queue, "parent", fmt::format("queue {}: there is no queue {} to be its parent{}", queue.name, queue.parent, nearest(queue.parent, queue_names())));
        continue;
      }
      std::string way = queue.name;
      std::set<std::string_view> seen{queue.name};
      for (const QueueSpec* up = find(queue.parent); up; up = find(up->parent)) {
        way += " -> " + up->name;
        if (up->name == queue.name && !told.contains(queue.name)) {
          error(queue, "parent", fmt::format("queue {} is above itself: {}", queue.name, way));
          told.insert(seen.begin(), seen.end());
        }
        if (!seen.insert(up->name).second) break;
      }
    }
  }

  void quota(const QueueSpec& queue, const QuotaSpec& quota) {
    const std::string key = "quotas." + quota.resource;
    const std::string what = fmt::format("queue {}, {}", queue.name, quota.resource);
    const bool type = quota.resource.starts_with("gpu:");
    if (!capacity.contains(quota.resource)) {
      if (type)
        error(queue, key, fmt::format("{}: no node of the cluster has such a GPU; it has {}", what, types()));
      else
        error(queue, key, fmt::format("{}: unknown resource; expected gpu, gpu:TYPE, cpu or memory", what));
      return;
    }
    if (quota.nominal && quota.lending_limit && *quota.lending_limit > *quota.nominal)
      error(queue, key + ".lending_limit", fmt::format("{}: lends up to {} and owns {}", what, *quota.lending_limit, *quota.nominal));
    if (quota.nominal && quota.limit && *quota.limit < *quota.nominal)
      error(queue, key + ".limit", fmt::format("{}: owns {} and may never use more than {}", what, *quota.nominal, *quota.limit));
    if (queue.parent.empty() && quota.borrowing_limit)
      warning(queue, key + ".borrowing_limit", fmt::format("{}: without a parent there is nobody to borrow from; the limit has no effect", what));
    if (queue.parent.empty() && quota.lending_limit)
      warning(queue, key + ".lending_limit", fmt::format("{}: without a parent there is nobody to lend to; the limit has no effect", what));
    if (!quota.nominal && queue.weight == 0)
      warning(queue, "weight", fmt::format("{}: shared by weight, and the weight is 0: it owns nothing", what));
    if (const std::uint64_t has = capacity[quota.resource]; quota.nominal && *quota.nominal > has)
      warning(queue, key + ".nominal", fmt::format("{}: owns {}, the cluster has {}: the hardware is what binds", what, *quota.nominal, has));
    std::uint64_t below = 0;
    if (auto found = children.find(queue.name); found != children.end())
      for (const QueueSpec* child : found->second)
        for (const QuotaSpec& other : child->quotas)
          if (other.resource == quota.resource) below += other.nominal.value_or(0);
    if (quota.nominal && below > *quota.nominal)
      warning(queue, key + ".nominal", fmt::format("{}: its children own {} together, it owns {}: they cannot all use what is theirs", what, below, *quota.nominal));
  }

  void quotas(const QueueSpec& queue) {
    std::set<std::string_view> seen;
    const QuotaSpec* all = nullptr;
    for (const QuotaSpec& one : queue.quotas) {
      if (!seen.insert(one.resource).second)
        error(queue, "quotas." + one.resource, fmt::format("queue {}: {} is there twice", queue.name, one.resource));
      if (one.resource == "gpu") all = &one;
      quota(queue, one);
    }
    for (const QuotaSpec& one : queue.quotas)
      if (all && all->nominal && one.nominal && one.resource.starts_with("gpu:") && *one.nominal > *all->nominal)
        warning(queue, "quotas." + one.resource + ".nominal", fmt::format("queue {}: owns {} {} and {} gpu of all types", queue.name, *one.nominal, one.resource, *all->nominal));
  }

  void members() {
    std::map<std::string_view, std::string_view> owner;
    for (const QueueSpec& queue : tree.queues) {
      for (const std::string& account : queue.accounts)
        if (auto [at, is_new] = owner.emplace(account, queue.name); !is_new)
          error(queue, "accounts", fmt::format("queue {}: account {} is of queue {} already", queue.name, account, at->second));
      if (!queue.accounts.empty() && is_inner(queue))
        error(queue, "accounts", fmt::format("queue {} has children and takes no jobs itself: give the accounts to one of them", queue.name));
      for (const std::string& type : queue.gpu_types)
        if (!capacity.contains("gpu:" + type))
          error(queue, "gpu_types", fmt::format("queue {}: no node of the cluster has a GPU of type {}; it has {}", queue.name, type, types()));
    }
    if (tree.default_queue.empty()) return;
    QueueSpec whole;
    const QueueSpec* queue = find_queue(tree, tree.default_queue);
    if (!queue)
      error(whole, "default_queue", fmt::format("there is no queue {} to be the default one{}", tree.default_queue, nearest(tree.default_queue, queue_names())));
    else if (is_inner(*queue))
      error(whole, "default_queue", fmt::format("queue {} has children and takes no jobs itself: it cannot be the default one", queue->name));
  }
};

}  // namespace

std::vector<QueueProblem> check_queues(const QueueTree& tree, const ClusterSpec& cluster) {
  Checking checking{tree, capacity_of(cluster), {}, {}, {}};
  checking.names();
  checking.parents();
  for (const QueueSpec& queue : tree.queues) checking.quotas(queue);
  checking.members();
  return std::move(checking.problems);
}

QueueTree parents_first(QueueTree tree) {
  std::map<std::string, std::size_t> depth;
  auto depth_of = [&](const QueueSpec& queue) {
    std::size_t steps = 0;
    for (const QueueSpec* up = tree.find(queue.parent); up && steps < tree.queues.size(); up = tree.find(up->parent)) ++steps;
    return steps;
  };
  for (const QueueSpec& queue : tree.queues) depth[queue.name] = depth_of(queue);
  std::stable_sort(tree.queues.begin(), tree.queues.end(), [&](const QueueSpec& a, const QueueSpec& b) {
    return depth.at(a.name) < depth.at(b.name);
  });
  return tree;
}

const QueueSpec* find_queue(const QueueTree& tree, std::string_view name) {
  if (name.empty()) return nullptr;
  if (const QueueSpec* queue = tree.find(name)) return queue;
  for (const QueueSpec& queue : tree.queues)
    if (std::find(queue.aliases.begin(), queue.aliases.end(), name) != queue.aliases.end())
      return &queue;
  return nullptr;
}

const QueueSpec* queue_for(const QueueTree& tree, const Workload& workload) {
  const std::string& named = workload.extras->terms.queue;
  if (!named.empty()) return find_queue(tree, named);
  for (const QueueSpec& queue : tree.queues)
    if (!workload.account.empty() && std::find(queue.accounts.begin(), queue.accounts.end(), workload.account) != queue.accounts.end())
      return &queue;
  if (!workload.partitions.empty())
    if (const QueueSpec* queue = tree.find(workload.partitions->front());
        queue && is_leaf(tree, *queue))
      return queue;
  return find_queue(tree, tree.default_queue);
}

Status check_queue_takes(const QueueTree& tree, const Workload& workload) {
  const std::string& named = workload.extras->terms.queue;
  const QueueSpec* queue = queue_for(tree, workload);
  if (!queue) {
    if (named.empty()) return {};
    std::vector<std::string_view> names;
    for (const QueueSpec& one : tree.queues) names.push_back(one.name);
    auto near = closest_match(named, names);
    std::string known = names.empty() ? std::string("none is configured")
                        : near ? fmt::format("did you mean {}?", *near) : "there are " + join(names, ", ");
    return invalid(fmt::format("there is no queue {}: {}", quote(named), known), std::string(reason::kInvalidQueue));
  }
  for (const QueueSpec& other : tree.queues)
    if (other.parent == queue->name)
      return invalid(fmt::format("queue {} has children and takes no jobs itself: name one of them, {} for instance", queue->name, other.name), std::string(reason::kInvalidQueue));
  if (queue->state == QueueState::kClosed)
    return invalid(fmt::format("queue {} is closed: it takes no new jobs", queue->name), std::string(reason::kInvalidQueue));
  return {};
}

}  // namespace tutti::scheduler
