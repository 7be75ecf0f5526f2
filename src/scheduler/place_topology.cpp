// Placement by domains: from the narrowest level to the widest, the domains that could hold the
// gang, the one with the least to spare first; last the cluster as a whole.
#include <algorithm>
#include <tuple>

#include "scheduler/place.h"

namespace tutti::scheduler {

namespace {

// What one node, or a set of nodes, could hold of a role.
struct Fit {
  std::uint64_t nodes = 0, tasks = 0, gpus = 0;
  void add(const Fit& other) {
    nodes += other.nodes;
    tasks += other.tasks;
    gpus += other.gpus;
  }
};

struct FitNode {
  NodeIndex node = 0;
  Capacity free;
  Fit fit;
  bool whole_part = false;  // an equal part of the role fits
};

// A domain with the nodes in it that hold an equal part.
struct Leaf {
  std::uint32_t domain = 0;
  std::size_t usable = 0;  // how many of them count
  std::vector<const FitNode*> nodes;
};

std::uint64_t tasks_wanted(const RoleNeed& need) {
  return need.tasks_follow_nodes
             ? std::uint64_t{std::max(need.tasks_per_node, 1u)} * need.nodes_min
             : need.tasks;
}

class DomainSearch {
 public:
  DomainSearch(Room& room, const Shape& shape, const NodeSet& usable)
      : room_(room),
        shape_(shape),
        usable_(usable),
        topology_(room.cluster().topology()),
        fits_(shape.roles.size()),
        by_domain_(topology_.levels().size()) {
    const RoleNeed& first = shape.roles[0];
    equal_tasks_ = first.tasks_follow_nodes ? std::max(first.tasks_per_node, 1u)
                                            : (first.tasks + first.nodes_min - 1) / first.nodes_min;
    equal_gpus_ = (first.gpus_total + first.nodes_min - 1) / first.nodes_min;
    equal_ = shape.roles.size() == 1 && first.choices.size() == 1 &&
             first.choices[0].counted.empty() && first.required.empty() && !first.contiguous &&
             !first.prefers_many_nodes &&
             (first.tasks_per_node == 0 || equal_tasks_ <= first.tasks_per_node);
    uneven_ = (!first.tasks_follow_nodes && first.tasks % first.nodes_min != 0) ||
              first.gpus_total % first.nodes_min != 0;
    for (std::uint32_t role = 0; role < shape.roles.size(); ++role) look_at_nodes(role);
  }

  std::optional<Placement> run() {
    const auto levels = static_cast<std::uint32_t>(topology_.levels().size());
    for (std::uint32_t level = levels; level-- > 0;) {
      if (shape_.topology.required && level < *shape_.topology.required) return std::nullopt;
      for (std::uint32_t domain : worth_trying(level))
        if (auto found = place_within(level, domain)) return found;
    }
    if (shape_.topology.required) return std::nullopt;
    return place_within(levels, 0);
  }

 private:
  // One sweep over the candidates: what each could hold, added up by domain.
  void look_at_nodes(std::uint32_t role) {
    const RoleNeed& need = shape_.roles[role];
    const ClusterIndex& cluster = room_.cluster();
    for (std::size_t l = 0; l < by_domain_.size(); ++l)
      by_domain_[l].emplace_back(topology_.levels()[l].domains.size());
    std::vector<FitNode>& fits = fits_[role];
    fits.reserve(need.candidates.count());
    FitNode last;
    std::uint32_t last_class = ~0u;
    bool known = false;
    need.candidates.for_each([&](NodeIndex node) {
      if (!usable_.contains(node)) return;
      Capacity free = room_.at(node);
      // Many nodes are alike and in the same state.
      if (!known || cluster.class_id(node) != last_class || !(free == last.free)) {
        last = fit_of(need, cluster.of(node), free);
        last_class = cluster.class_id(node);
        known = true;
      }
      if (last.fit.nodes == 0) return;
      last.node = node;
      fits.push_back(last);
      for (std::size_t l = 0; l < by_domain_.size(); ++l) {
        std::uint32_t domain = topology_.levels()[l].domain_of[node];
        if (domain == Topology::kNoDomain) break;
        by_domain_[l][role][domain].add(last.fit);
      }
    });
  }

  FitNode fit_of(const RoleNeed& need, const NodeClass& kind, const Capacity& free) const {
    FitNode out;
    out.free = free;
    out.whole_part = equal_ && fits(need, kind, free, equal_tasks_, equal_gpus_);
    if (out.whole_part && (need.nodes_min == need.nodes_max || shape_.topology.segment > 1)) {
      out.fit = {1, equal_tasks_, equal_gpus_};  // no node takes more than its part
      return out;
    }
    std::uint32_t least = need.tasks_follow_nodes ? std::max(need.tasks_per_node, 1u) : 1u;
    std::uint32_t tasks = most_tasks(need, kind, free, std::max(need.tasks, least));
    std::uint32_t gpus = most_gpus(need, kind, free);
    if (tasks < least || (need.gpus_total > 0 && gpus == 0)) return out;
    out.fit = {1, need.tasks_follow_nodes ? least : tasks, gpus};
    return out;
  }

  // An equal part is what was counted for nodes of a fixed number, so a domain may hold more.
  bool may_hold(const Fit& fit, const RoleNeed& need) const {
    return fit.nodes >= need.nodes_min && fit.tasks >= tasks_wanted(need) &&
           fit.gpus >= need.gpus_total;
  }

  std::vector<std::uint32_t> worth_trying(std::uint32_t level) const {
    std::vector<std::uint32_t> out;
    const std::vector<std::vector<Fit>>& fits = by_domain_[level];
    for (std::uint32_t domain = 0; domain < topology_.levels()[level].domains.size(); ++domain) {
      bool all = true;
      for (std::size_t role = 0; role < fits.size() && all; ++role)
        all = may_hold(fits[role][domain], shape_.roles[role]);
      if (all) out.push_back(domain);
    }
    std::stable_sort(out.begin(), out.end(), [&](std::uint32_t a, std::uint32_t b) {
      return fits[0][a].nodes < fits[0][b].nodes;
    });
    return out;
  }

  bool is_within(NodeIndex node, std::uint32_t level, std::uint32_t domain) const {
    return level == topology_.levels().size() || topology_.levels()[level].domain_of[node] == domain;
  }

  // `level` = the number of levels: the whole cluster.
  std::optional<Placement> place_within(std::uint32_t level, std::uint32_t domain) {
    const TopologyNeed& asked = shape_.topology;
    if (equal_) {
      if (auto found = place_equal(level, domain)) return found;
      if (asked.segment > 1 || shape_.roles[0].nodes_max == 1) return std::nullopt;
    }
    if (asked.segment > 1) return std::nullopt;
    NodeSet nodes(room_.cluster().size());
    if (asked.switches > 0) {
      nodes = roomiest_switches(level, domain);
    } else {
      for (const std::vector<FitNode>& fits : fits_)
        for (const FitNode& fit : fits)
          if (is_within(fit.node, level, domain)) nodes.add(fit.node);
    }
    return place_anywhere(room_, shape_, nodes);
  }

  // Nodes of the domains of the narrowest level that hold most, as many as are allowed.
  NodeSet roomiest_switches(std::uint32_t level, std::uint32_t domain) const {
    const auto narrowest = static_cast<std::uint32_t>(topology_.levels().size() - 1);
    std::vector<std::uint32_t> order;
    for (std::uint32_t leaf = 0; leaf < topology_.levels()[narrowest].domains.size(); ++leaf) {
      const Topology::Domain& at = topology_.levels()[narrowest].domains[leaf];
      if (is_within(at.nodes.front(), level, domain)) order.push_back(leaf);
    }
    const std::vector<Fit>& fits = by_domain_[narrowest][0];
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::pair(fits[a].tasks, fits[a].gpus) > std::pair(fits[b].tasks, fits[b].gpus);
    });
    NodeSet out(room_.cluster().size());
    for (std::size_t i = 0; i < order.size() && i < shape_.topology.switches; ++i)
      for (NodeIndex node : topology_.levels()[narrowest].domains[order[i]].nodes)
        if (usable_.contains(node)) out.add(node);
    return out;
  }

  // Nodes by the domain that counts: of the segments, else of the narrowest level. Those outside of
  // any are a leaf of their own each, at the end, unless domains are demanded.
  std::vector<Leaf> leaves_of(std::uint32_t level, std::uint32_t domain) const {
    const TopologyNeed& asked = shape_.topology;
    const std::uint32_t by = asked.segment > 1
                                 ? asked.segment_level
                                 : static_cast<std::uint32_t>(topology_.levels().size() - 1);
    std::vector<std::uint32_t> place(topology_.levels()[by].domains.size(), ~0u);
    std::vector<Leaf> out, outside;
    for (const FitNode& fit : fits_[0]) {
      if (!fit.whole_part || !is_within(fit.node, level, domain)) continue;
      std::uint32_t leaf = topology_.levels()[by].domain_of[fit.node];
      if (leaf == Topology::kNoDomain) {
        if (asked.segment <= 1 && asked.switches == 0) outside.push_back({leaf, 1, {&fit}});
        continue;
      }
      if (place[leaf] == ~0u) {
        place[leaf] = static_cast<std::uint32_t>(out.size());
        out.push_back({leaf, 0, {}});
      }
      out[place[leaf]].nodes.push_back(&fit);
    }
    for (Leaf& leaf : out)
      leaf.usable = asked.segment > 1 ? leaf.nodes.size() / asked.segment * asked.segment
                                      : leaf.nodes.size();
    out.insert(out.end(), outside.begin(), outside.end());
    return out;
  }

  // The fewest leaves: whole ones from the largest on, and for the rest the smallest that holds it.
  std::optional<Placement> place_equal(std::uint32_t level, std::uint32_t domain) {
    std::vector<Leaf> leaves = leaves_of(level, domain);
    std::stable_sort(leaves.begin(), leaves.end(),
                     [](const Leaf& a, const Leaf& b) { return a.usable > b.usable; });
    const std::size_t most_leaves =
        shape_.topology.switches > 0 ? shape_.topology.switches : leaves.size();
    std::vector<const FitNode*> picked;
    std::size_t missing = shape_.roles[0].nodes_min;
    std::size_t taken = 0, at = 0;
    while (missing > 0) {
      if (at == leaves.size() || taken == most_leaves || leaves[at].usable == 0)
        return std::nullopt;
      std::size_t smallest = at;
      if (leaves[at].usable >= missing)
        while (smallest + 1 < leaves.size() && leaves[smallest + 1].usable >= missing) ++smallest;
      std::size_t count = std::min(missing, leaves[smallest].usable);
      take_best(leaves[smallest], count, picked);
      missing -= count;
      ++taken;
      ++at;
    }
    return to_placement(picked);
  }

  // In the order of preference of FreeMap.
  void take_best(Leaf& leaf, std::size_t count, std::vector<const FitNode*>& picked) const {
    if (count < leaf.nodes.size())
      std::sort(leaf.nodes.begin(), leaf.nodes.end(), [&](const FitNode* a, const FitNode* b) {
        return preference(*a) < preference(*b);
      });
    picked.insert(picked.end(), leaf.nodes.begin(),
                  leaf.nodes.begin() + static_cast<std::ptrdiff_t>(count));
  }
  std::tuple<std::uint32_t, std::int32_t, bool, std::int32_t, NodeIndex> preference(
      const FitNode& fit) const {
    return {room_.cluster().of(fit.node).weight, fit.free.gpu_count(), fit.free.vacancy == 0,
            fit.free.cores, fit.node};
  }

  std::optional<Placement> to_placement(std::vector<const FitNode*>& picked) {
    if (uneven_) {
      NodeSet nodes(room_.cluster().size());
      for (const FitNode* fit : picked) nodes.add(fit->node);
      return place_role(room_, shape_.roles[0], 0, nodes);
    }
    std::sort(picked.begin(), picked.end(),
              [](const FitNode* a, const FitNode* b) { return a->node < b->node; });
    Placement out;
    out.reserve(picked.size());
    for (const FitNode* fit : picked)
      out.push_back({fit->node, 0, equal_tasks_,
                     take_of(shape_.roles[0], room_.cluster().of(fit->node), fit->free,
                             equal_tasks_, equal_gpus_)});
    return out;
  }

  Room& room_;
  const Shape& shape_;
  const NodeSet& usable_;
  const Topology& topology_;
  std::uint32_t equal_tasks_ = 1, equal_gpus_ = 0;
  bool equal_ = false;   // the same part, at most, on each of nodes_min nodes may be tried
  bool uneven_ = false;  // then some nodes get less than that
  std::vector<std::vector<FitNode>> fits_;        // by role
  std::vector<std::vector<std::vector<Fit>>> by_domain_;  // by level, role, domain
};

}  // namespace

bool looks_at_domains(const ClusterIndex& cluster, const Shape& shape) {
  if (cluster.topology().empty()) return false;
  return shape.roles.size() > 1 || shape.roles[0].nodes_max > 1;
}

std::optional<Placement> place_in_domains(Room& room, const Shape& shape, const NodeSet& usable) {
  return DomainSearch(room, shape, usable).run();
}

}  // namespace tutti::scheduler
