#include "scheduler/choose.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tutti::scheduler {

namespace {

using Options = std::vector<Option>;
// The exact search for tasks and GPUs at once gives up beyond this.
constexpr std::size_t kMostTableStates = 5'000'000;

struct Range {
  std::size_t least = 0, most = 0;  // nodes
};

// Tasks that `nodes` nodes must hold together.
std::uint64_t tasks_on(const RoleNeed& need, std::size_t nodes) {
  if (!need.tasks_follow_nodes) return need.tasks;
  return std::uint64_t{std::max(need.tasks_per_node, 1u)} * nodes;
}

bool holds_all(const RoleNeed& need, const Options& picked) {
  std::uint64_t tasks = 0, gpus = 0;
  for (const Option& option : picked) {
    tasks += option.most_tasks;
    gpus += option.most_gpus;
  }
  return tasks >= tasks_on(need, picked.size()) && gpus >= need.gpus_total;
}

// Gives every part one and then one more to each in turn until all is spread.
template <class Most, class Given>
void spread_evenly(std::vector<Chosen>& parts, const Options& from, std::uint64_t total, Most most,
                   Given given) {
  std::uint64_t left = total - parts.size();
  for (Chosen& part : parts) given(part) = 1;
  while (left > 0) {
    // As many whole rounds at once as the fullest part allows.
    std::uint64_t open = 0;
    std::uint32_t least_space = ~0u;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      std::uint32_t space = most(from[i]) - given(parts[i]);
      if (space == 0) continue;
      ++open;
      least_space = std::min(least_space, space);
    }
    TUTTI_CHECK(open > 0);
    std::uint64_t rounds = std::min<std::uint64_t>(least_space, left / open);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (given(parts[i]) == most(from[i])) continue;
      std::uint64_t more = rounds > 0 ? rounds : (left > 0 ? 1 : 0);
      given(parts[i]) += static_cast<std::uint32_t>(more);
      left -= more;
    }
  }
}

// Fills one node after the other, leaving one for each that follows.
void spread_in_blocks(std::vector<Chosen>& parts, const Options& from, std::uint64_t total) {
  std::uint64_t left = total;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::uint64_t others = parts.size() - i - 1;
    parts[i].tasks =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(from[i].most_tasks, left - others));
    left -= parts[i].tasks;
  }
  TUTTI_CHECK(left == 0);
}

// man srun, --distribution=block, the default: evenly where the number of nodes was asked for; a
// job that only said how many tasks fills its nodes one after the other.
std::vector<Chosen> spread(const RoleNeed& need, Options picked) {
  std::sort(picked.begin(), picked.end(),
            [](const Option& a, const Option& b) { return a.node < b.node; });
  std::vector<Chosen> parts;
  parts.reserve(picked.size());
  for (const Option& option : picked) parts.push_back({option.node, 1, 0});
  std::uint64_t tasks = tasks_on(need, parts.size());
  bool by_nodes = need.nodes_min > 1 || need.prefers_many_nodes || need.tasks_follow_nodes;
  if (by_nodes)
    spread_evenly(
        parts, picked, tasks, [](const Option& o) { return o.most_tasks; },
        [](Chosen& c) -> std::uint32_t& { return c.tasks; });
  else
    spread_in_blocks(parts, picked, tasks);
  if (need.gpus_total > 0)
    spread_evenly(
        parts, picked, need.gpus_total, [](const Option& o) { return o.most_gpus; },
        [](Chosen& c) -> std::uint32_t& { return c.gpus; });
  return parts;
}

// How many nodes to try, the wanted number first.
template <class Try>
std::optional<Options> by_wanted_count(const RoleNeed& need, Range range, Try&& attempt) {
  if (range.least > range.most) return std::nullopt;
  for (std::size_t i = 0; i <= range.most - range.least; ++i) {
    std::size_t nodes = need.prefers_many_nodes ? range.most - i : range.least + i;
    if (auto found = attempt(nodes)) return found;
  }
  return std::nullopt;
}

// The required ones and, in the order of `rest`, as many more as make `nodes`.
Options first_of(const Options& required, const Options& rest, std::size_t nodes) {
  Options out = required;
  out.insert(out.end(), rest.begin(),
             rest.begin() + static_cast<std::ptrdiff_t>(nodes - required.size()));
  return out;
}

// With one resource to cover, the largest `nodes` options decide; the preferred ones are taken
// where they suffice.
std::optional<Options> choose_by_tasks(const RoleNeed& need, const Options& required,
                                       const Options& rest, Range range) {
  Options largest = rest;
  std::stable_sort(largest.begin(), largest.end(),
                   [](const Option& a, const Option& b) { return a.most_tasks > b.most_tasks; });
  std::vector<std::uint64_t> sum(largest.size() + 1);
  for (std::size_t i = 0; i < largest.size(); ++i) sum[i + 1] = sum[i] + largest[i].most_tasks;
  std::uint64_t fixed = 0;
  for (const Option& option : required) fixed += option.most_tasks;
  return by_wanted_count(need, range, [&](std::size_t nodes) -> std::optional<Options> {
    if (fixed + sum[nodes - required.size()] < tasks_on(need, nodes)) return std::nullopt;
    Options preferred = first_of(required, rest, nodes);
    if (holds_all(need, preferred)) return preferred;
    return first_of(required, largest, nodes);
  });
}

// Tasks and a job total of GPUs: the largest number of tasks for each (number of nodes, GPUs), as a
// table filled option by option. Exact.
std::optional<Options> choose_by_table(const RoleNeed& need, const Options& required,
                                       const Options& rest, std::size_t nodes) {
  struct State {
    std::int64_t tasks = -1;  // -1: not reachable
    std::int32_t last = -1;   // position in `steps`
  };
  struct Step {
    std::uint32_t option;
    std::int32_t before;
  };
  std::size_t more = nodes - required.size();
  std::size_t width = need.gpus_total + 1;
  if (rest.size() * (more + 1) * width > kMostTableStates) return std::nullopt;
  State start{0, -1};
  std::size_t fixed_gpus = 0;
  for (const Option& option : required) {
    start.tasks += option.most_tasks;
    fixed_gpus += option.most_gpus;
  }
  std::vector<State> best((more + 1) * width);
  std::vector<Step> steps;
  best[std::min(fixed_gpus, width - 1)] = start;
  for (std::uint32_t i = 0; i < rest.size(); ++i) {
    for (std::size_t k = std::min<std::size_t>(i + 1, more); k >= 1; --k) {
      for (std::size_t g = 0; g < width; ++g) {
        const State& from = best[(k - 1) * width + g];
        if (from.tasks < 0) continue;
        State& to = best[k * width + std::min<std::size_t>(g + rest[i].most_gpus, width - 1)];
        if (from.tasks + rest[i].most_tasks <= to.tasks) continue;
        steps.push_back({i, from.last});
        to = {from.tasks + rest[i].most_tasks, static_cast<std::int32_t>(steps.size() - 1)};
      }
    }
  }
  const State& reached = best[more * width + need.gpus_total];
  if (reached.tasks < static_cast<std::int64_t>(tasks_on(need, nodes))) return std::nullopt;
  Options out = required;
  for (std::int32_t at = reached.last; at >= 0; at = steps[static_cast<std::size_t>(at)].before)
    out.push_back(rest[steps[static_cast<std::size_t>(at)].option]);
  return out;
}

// Two resources to cover: quick tries in several orders, then the table.
std::optional<Options> choose_by_tasks_and_gpus(const RoleNeed& need, const Options& required,
                                                const Options& rest, Range range) {
  auto sorted = [&](auto key) {
    Options out = rest;
    std::stable_sort(out.begin(), out.end(),
                     [&](const Option& a, const Option& b) { return key(a) > key(b); });
    return out;
  };
  Options by_tasks = sorted([](const Option& o) { return std::uint64_t{o.most_tasks}; });
  Options by_gpus = sorted([](const Option& o) { return std::uint64_t{o.most_gpus}; });
  Options by_both = sorted([&](const Option& o) {
    return std::uint64_t{o.most_gpus} * need.tasks + std::uint64_t{o.most_tasks} * need.gpus_total;
  });
  return by_wanted_count(need, range, [&](std::size_t nodes) -> std::optional<Options> {
    std::uint64_t most_tasks = 0, most_gpus = 0;
    for (const Option& option : first_of(required, by_tasks, nodes))
      most_tasks += option.most_tasks;
    for (const Option& option : first_of(required, by_gpus, nodes)) most_gpus += option.most_gpus;
    if (most_tasks < tasks_on(need, nodes) || most_gpus < need.gpus_total) return std::nullopt;
    for (const Options* order :
         {&rest, &std::as_const(by_both), &std::as_const(by_gpus), &std::as_const(by_tasks)}) {
      Options picked = first_of(required, *order, nodes);
      if (holds_all(need, picked)) return picked;
    }
    return choose_by_table(need, required, rest, nodes);
  });
}

// Neighbours by index: every window of each length within every unbroken run.
std::optional<Options> choose_contiguous(const RoleNeed& need, Options options,
                                         std::size_t required, Range range) {
  std::sort(options.begin(), options.end(),
            [](const Option& a, const Option& b) { return a.node < b.node; });
  return by_wanted_count(need, range, [&](std::size_t nodes) -> std::optional<Options> {
    std::uint64_t tasks = 0, gpus = 0;
    std::size_t inside = 0;
    for (std::size_t i = 0; i < options.size(); ++i) {
      tasks += options[i].most_tasks;
      gpus += options[i].most_gpus;
      inside += options[i].required;
      if (i >= nodes) {
        tasks -= options[i - nodes].most_tasks;
        gpus -= options[i - nodes].most_gpus;
        inside -= options[i - nodes].required;
      }
      if (i + 1 < nodes || inside < required) continue;
      std::size_t first = i + 1 - nodes;
      if (options[i].node - options[first].node + 1 != nodes) continue;
      if (tasks < tasks_on(need, nodes) || gpus < need.gpus_total) continue;
      return Options(options.begin() + static_cast<std::ptrdiff_t>(first),
                     options.begin() + static_cast<std::ptrdiff_t>(i + 1));
    }
    return std::nullopt;
  });
}

// Makes as many options required as the counted features demand: whoever serves most of what is
// still missing, then the roomiest. False when there are not enough.
bool require_counted(const NodeChoice& choice, Options& options) {
  std::vector<std::uint32_t> missing;
  for (const CountedNodes& counted : choice.counted) {
    std::uint32_t have = 0;
    for (const Option& option : options)
      have += option.required && counted.nodes.contains(option.node);
    missing.push_back(counted.count > have ? counted.count - have : 0);
  }
  while (std::any_of(missing.begin(), missing.end(), [](std::uint32_t n) { return n > 0; })) {
    Option* best = nullptr;
    std::uint32_t best_serves = 0;
    for (Option& option : options) {
      if (option.required) continue;
      std::uint32_t serves = 0;
      for (std::size_t i = 0; i < missing.size(); ++i)
        serves += missing[i] > 0 && choice.counted[i].nodes.contains(option.node);
      if (serves == 0 || serves < best_serves) continue;
      if (serves == best_serves && best && option.most_tasks <= best->most_tasks) continue;
      best = &option;
      best_serves = serves;
    }
    if (!best) return false;
    best->required = true;
    for (std::size_t i = 0; i < missing.size(); ++i)
      if (missing[i] > 0 && choice.counted[i].nodes.contains(best->node)) --missing[i];
  }
  return true;
}

}  // namespace

std::optional<std::vector<Chosen>> choose_nodes(const RoleNeed& need, const NodeChoice& choice,
                                                std::vector<Option> options) {
  if (!choice.counted.empty() && !require_counted(choice, options)) return std::nullopt;
  Options required, rest;
  for (const Option& option : options) (option.required ? required : rest).push_back(option);
  std::uint64_t most = std::min<std::uint64_t>(need.nodes_max, options.size());
  if (!need.tasks_follow_nodes) most = std::min<std::uint64_t>(most, need.tasks);
  if (need.gpus_total > 0) most = std::min<std::uint64_t>(most, need.gpus_total);
  Range range{std::max<std::size_t>({need.nodes_min, required.size(), 1}), most};
  std::optional<Options> picked;
  if (need.contiguous)
    picked = choose_contiguous(need, std::move(options), required.size(), range);
  else if (need.gpus_total > 0)
    picked = choose_by_tasks_and_gpus(need, required, rest, range);
  else
    picked = choose_by_tasks(need, required, rest, range);
  if (!picked) return std::nullopt;
  return spread(need, std::move(*picked));
}

}  // namespace tutti::scheduler
