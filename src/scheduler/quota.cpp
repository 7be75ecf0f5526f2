#include "scheduler/quota.h"

#include <fmt/format.h>

#include <algorithm>

namespace tutti::scheduler {

namespace {

constexpr std::uint64_t kWhole = 1000;  // thousandths of a GPU

std::uint64_t sum_of(std::uint64_t a, std::uint64_t b) {
  return a == QuotaTree::kUnlimited || b == QuotaTree::kUnlimited ? QuotaTree::kUnlimited : a + b;
}

}  // namespace

QuotaTree::QuotaTree(const QueueTree& spec, const ClusterIndex& cluster)
    : spec_(spec), cluster_(cluster) {
  if (spec.queues.empty()) return;
  all_gpus_ = static_cast<std::uint32_t>(cluster.gpu_types().size());
  cpus_ = all_gpus_ + 1;
  memory_ = cpus_ + 1;
  resources_ = memory_ + 1;
  nodes_.resize(spec.queues.size());
  for (QueueId id = 0; id < nodes_.size(); ++id) {
    const QueueSpec& queue = spec.queues[id];
    by_name_.emplace(queue.name, id);
    for (const std::string& account : queue.accounts) by_account_.emplace(account, id);
    Node& node = nodes_[id];
    if (auto parent = find(queue.parent); parent && *parent < id) {
      node.parent = *parent;
      nodes_[*parent].children.push_back(id);
    }
    node.cells.resize(resources_);
    for (const QuotaSpec& quota : queue.quotas) {
      const std::uint32_t resource = resource_of(quota.resource);
      if (resource == kNone) continue;
      Cell& cell = node.cells[resource];
      cell.deserves = !quota.nominal;
      shares_ = shares_ || cell.deserves;
      if (quota.nominal) cell.nominal = to_units(resource, *quota.nominal);
      if (quota.borrowing_limit) cell.borrow = to_units(resource, *quota.borrowing_limit);
      if (quota.lending_limit) cell.lend = to_units(resource, *quota.lending_limit);
      if (quota.limit) cell.limit = to_units(resource, *quota.limit);
    }
  }
  for (QueueId id = 0; id < nodes_.size(); ++id)
    for (const std::string& alias : spec.queues[id].aliases) by_name_.emplace(alias, id);
}

std::uint32_t QuotaTree::resource_of(std::string_view name) const {
  if (name == "gpu") return all_gpus_;
  if (name == "cpu") return cpus_;
  if (name == "memory") return memory_;
  if (name.starts_with("gpu:"))
    if (auto type = cluster_.gpu_type(name.substr(4))) return *type;
  return kNone;
}

std::string QuotaTree::resource_name(std::uint32_t resource) const {
  if (resource == all_gpus_) return "gpu";
  if (resource == cpus_) return "cpu";
  if (resource == memory_) return "memory";
  return "gpu:" + cluster_.gpu_types()[resource];
}

std::uint64_t QuotaTree::to_units(std::uint32_t resource, std::uint64_t amount) const {
  if (resource > all_gpus_) return amount;
  return amount > kUnlimited / kWhole ? kUnlimited : amount * kWhole;
}

std::uint64_t QuotaTree::from_units(std::uint32_t resource, std::uint64_t units) const {
  if (resource > all_gpus_ || units == kUnlimited) return units;
  return (units + kWhole - 1) / kWhole;
}

std::uint64_t QuotaTree::capacity(std::uint32_t resource) const {
  std::uint64_t sum = 0;
  for (const NodeClass& kind : cluster_.classes()) {
    std::uint64_t each = 0;
    if (resource == cpus_) each = kind.cpus();
    if (resource == memory_) each = static_cast<std::uint64_t>(kind.full.memory_mib);
    for (std::size_t i = 0; i < kind.types.size() && i < kGpuTypesPerNode; ++i)
      if (resource == all_gpus_ || kind.types[i] == resource)
        each += static_cast<std::uint64_t>(kind.full.gpus[i]) * kWhole;
    sum += each * kind.members.count();
  }
  return sum;
}

std::optional<QueueId> QuotaTree::find(std::string_view name) const {
  auto found = by_name_.find(name);
  if (found == by_name_.end()) return std::nullopt;
  return found->second;
}

std::optional<QueueId> QuotaTree::parent(QueueId queue) const {
  const std::uint32_t parent = nodes_[queue].parent;
  if (parent == kNone) return std::nullopt;
  return parent;
}

std::optional<QueueId> QuotaTree::queue_of(const Workload& workload) const {
  if (nodes_.empty()) return std::nullopt;
  const std::string& named = workload.extras->terms.queue;
  if (!named.empty()) return find(named);
  if (!workload.account.empty()) {
    auto found = by_account_.find(workload.account);
    if (found != by_account_.end()) return found->second;
  }
  if (!workload.partitions.empty())
    if (auto found = find(workload.partitions->front()); found && nodes_[*found].children.empty())
      return found;
  return find(spec_.default_queue);
}

template <class Visit>
void QuotaTree::each(const Charge& charge, Visit&& visit) const {
  for (const auto& [type, amount] : charge.gpus)
    if (amount > 0) visit(std::uint32_t{type}, amount);
  if (const std::uint64_t all = charge.all_gpus(); all > 0) visit(all_gpus_, all);
  if (charge.cpus > 0) visit(cpus_, charge.cpus);
  if (charge.memory_mib > 0) visit(memory_, charge.memory_mib);
}

void QuotaTree::add_demand(QueueId queue, const Charge& charge, std::uint64_t times) {
  if (!shares_) return;
  each(charge, [&](std::uint32_t resource, std::uint64_t amount) {
    for (std::uint32_t id = queue; id != kNone; id = nodes_[id].parent)
      nodes_[id].cells[resource].demand += amount * times;
  });
}

// Fills the shares up together, each as fast as its weight says, until it has what it can use or
// nothing is left; the thousandths that integer division leaves go to the first in order.
void QuotaTree::share_out(const std::vector<QueueId>& queues, std::uint32_t resource,
                          std::uint64_t amount) {
  std::vector<QueueId> open;
  for (QueueId id : queues) {
    Cell& cell = nodes_[id].cells[resource];
    if (cell.deserves) {
      cell.amount = 0;
      if (cell.demand > 0 && spec_.queues[id].weight > 0) open.push_back(id);
    } else if (cell.nominal != kUnlimited) {
      amount -= std::min(amount, cell.nominal);
    }
  }
  while (!open.empty() && amount > 0) {
    std::uint64_t weights = 0;
    for (QueueId id : open) weights += spec_.queues[id].weight;
    const std::uint64_t round = amount;
    std::vector<QueueId> hungry;
    for (QueueId id : open) {
      Cell& cell = nodes_[id].cells[resource];
      const std::uint64_t wants = std::min(cell.demand, cell.limit) - cell.amount;
      const std::uint64_t part = std::min(
          {wants, std::max<std::uint64_t>(round * spec_.queues[id].weight / weights, 1), amount});
      cell.amount += part;
      amount -= part;
      if (part < wants) hungry.push_back(id);
    }
    open = std::move(hungry);
  }
}

void QuotaTree::settle() {
  for (std::uint32_t resource = 0; resource < resources_; ++resource) {
    // What inner nodes that say nothing own, from below; a deserved share counts as nothing yet.
    for (QueueId id = static_cast<QueueId>(nodes_.size()); id-- > 0;) {
      Cell& cell = nodes_[id].cells[resource];
      cell.amount = cell.nominal;
      if (cell.deserves) cell.amount = 0;
      if (cell.nominal != kUnlimited || cell.deserves || nodes_[id].children.empty()) continue;
      cell.amount = 0;
      bool shares = false;
      for (QueueId child : nodes_[id].children) {
        const Cell& of_child = nodes_[child].cells[resource];
        cell.amount = sum_of(cell.amount, of_child.amount);
        shares = shares || of_child.deserves;
      }
      // Whoever hands out shares without saying of what deserves one itself; at the root, of all.
      if (!shares) continue;
      cell.deserves = nodes_[id].parent != kNone;
      cell.amount = cell.deserves ? 0 : capacity(resource);
    }
    if (shares_) {
      std::vector<QueueId> roots;
      for (QueueId id = 0; id < nodes_.size(); ++id)
        if (nodes_[id].parent == kNone) roots.push_back(id);
      share_out(roots, resource, capacity(resource));
      for (QueueId id = 0; id < nodes_.size(); ++id) {
        if (nodes_[id].children.empty()) continue;
        const std::uint64_t own = nodes_[id].cells[resource].amount;
        share_out(nodes_[id].children, resource, own == kUnlimited ? capacity(resource) : own);
      }
    }
    // What is kept counts towards the parents from the start; what has been charged stays.
    for (QueueId id = static_cast<QueueId>(nodes_.size()); id-- > 0;) {
      Cell& cell = nodes_[id].cells[resource];
      cell.kept = 0;
      if (cell.lend != kUnlimited && cell.amount != kUnlimited)
        cell.kept = cell.amount - std::min(cell.amount, cell.lend);
      cell.taken = cell.used;
      if (nodes_[id].children.empty()) continue;
      cell.taken = 0;
      for (QueueId child : nodes_[id].children) cell.taken += nodes_[child].cells[resource].claim();
    }
  }
}

void QuotaTree::charge(QueueId queue, const Charge& amount) {
  each(amount, [&](std::uint32_t resource, std::uint64_t units) {
    std::uint64_t more = units;
    for (std::uint32_t id = queue; id != kNone; id = nodes_[id].parent) {
      Cell& cell = nodes_[id].cells[resource];
      cell.used += units;
      const std::uint64_t before = cell.claim();
      cell.taken += more;
      more = cell.claim() - before;
    }
  });
}

void QuotaTree::refund(QueueId queue, const Charge& amount) {
  each(amount, [&](std::uint32_t resource, std::uint64_t units) {
    std::uint64_t less = units;
    for (std::uint32_t id = queue; id != kNone; id = nodes_[id].parent) {
      Cell& cell = nodes_[id].cells[resource];
      cell.used -= std::min(cell.used, units);
      const std::uint64_t before = cell.claim();
      cell.taken -= std::min(cell.taken, less);
      less = before - cell.claim();
    }
  });
}

// Calls visit(node, cell, claim afterwards) up to the root until it returns false.
template <class Visit>
bool QuotaTree::climb(QueueId queue, std::uint32_t resource, std::uint64_t amount,
                      Visit&& visit) const {
  std::uint64_t more = amount;
  for (std::uint32_t id = queue; id != kNone; id = nodes_[id].parent) {
    const Cell& cell = nodes_[id].cells[resource];
    const std::uint64_t after = std::max(cell.taken + more, cell.kept);
    if (!visit(id, cell, after)) return false;
    more = after - cell.claim();
  }
  return true;
}

std::uint64_t QuotaTree::most(QueueId queue, const Cell& cell) const {
  const bool root = nodes_[queue].parent == kNone;
  return std::min(root ? cell.amount : sum_of(cell.amount, cell.borrow), cell.limit);
}

QuotaTree::Fit QuotaTree::judge(QueueId queue, const Charge& amount) const {
  Fit fit = Fit::kWithinNominal;
  each(amount, [&](std::uint32_t resource, std::uint64_t units) {
    climb(queue, resource, units, [&](QueueId id, const Cell& cell, std::uint64_t after) {
      if (after <= std::min(cell.amount, cell.limit)) return true;
      const bool may = after <= most(id, cell);
      fit = std::max(fit, may ? Fit::kBorrows : Fit::kOver);
      return may;
    });
  });
  return fit;
}

std::optional<QuotaTree::Refusal> QuotaTree::refusal(QueueId queue, const Charge& amount) const {
  std::optional<Refusal> out;
  each(amount, [&](std::uint32_t resource, std::uint64_t units) {
    if (out) return;
    climb(queue, resource, units, [&](QueueId id, const Cell& cell, std::uint64_t after) {
      const std::uint64_t all = most(id, cell);
      if (after <= all) return true;
      out = Refusal{id,
                    resource_name(resource),
                    from_units(resource, units),
                    from_units(resource, cell.claim()),
                    from_units(resource, std::min(cell.amount, all)),
                    from_units(resource, all - std::min(cell.amount, all)),
                    nodes_[id].parent == kNone};
      return false;
    });
  });
  return out;
}

bool QuotaTree::tells_types_apart(QueueId queue) const {
  for (std::uint32_t id = queue; id != kNone; id = nodes_[id].parent)
    for (std::uint32_t type = 0; type < all_gpus_; ++type)
      if (nodes_[id].cells[type].nominal != kUnlimited || nodes_[id].cells[type].deserves)
        return true;
  return false;
}

QuotaTree::Borrowing QuotaTree::borrowing(QueueId queue, const Charge& amount) const {
  std::optional<Borrowing> out;
  each(amount, [&](std::uint32_t resource, std::uint64_t units) {
    if (out) return;
    const Cell& cell = nodes_[queue].cells[resource];
    if (cell.amount == kUnlimited) return;
    const std::uint64_t after = cell.claim() + units;
    const std::uint64_t over = after > cell.amount ? after - cell.amount : 0;
    constexpr std::uint64_t kFine = 1024;
    out = Borrowing{resource, over * kFine / std::max(spec_.queues[queue].weight, 1u)};
  });
  return out.value_or(Borrowing{});
}

std::optional<QueueId> QuotaTree::common_ancestor(QueueId a, QueueId b) const {
  // Parents have lower numbers than their children.
  std::uint32_t left = a, right = b;
  while (left != right) {
    std::uint32_t& deeper = left > right ? left : right;
    deeper = nodes_[deeper].parent;
    if (deeper == kNone) return std::nullopt;
  }
  return left;
}

bool QuotaTree::is_within_nominal(QueueId queue, const Charge& amount,
                                  std::optional<QueueId> below) const {
  bool within = true;
  each(amount, [&](std::uint32_t resource, std::uint64_t units) {
    climb(queue, resource, units, [&](QueueId id, const Cell& cell, std::uint64_t after) {
      if (below && id == *below) return false;
      within = within && after <= cell.amount;
      return within;
    });
  });
  return within;
}

bool QuotaTree::is_over_nominal(QueueId queue, const Charge& amount) const {
  bool over = false;
  each(amount, [&](std::uint32_t resource, std::uint64_t) {
    const Cell& cell = nodes_[queue].cells[resource];
    over = over || cell.used > cell.amount;
  });
  return over;
}

std::uint64_t QuotaTree::used(QueueId queue, std::string_view resource) const {
  const std::uint32_t id = resource_of(resource);
  return id == kNone ? 0 : from_units(id, nodes_[queue].cells[id].used);
}

std::uint64_t QuotaTree::amount(QueueId queue, std::string_view resource) const {
  const std::uint32_t id = resource_of(resource);
  return id == kNone ? kUnlimited : from_units(id, nodes_[queue].cells[id].amount);
}

}  // namespace tutti::scheduler
