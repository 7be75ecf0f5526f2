#include "scheduler/whatif.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace tutti::scheduler {

namespace {

// Sooner by less is no improvement worth a change.
constexpr Duration kWorthIt = Duration::seconds(60);

class Search {
 public:
  Search(const Supposition& supposed, const ElementKey& element)
      : supposed_(supposed), element_(element) {
    auto all = expected_starts(supposed);
    for (const auto& [key, expected] : all) {
      if (key == element)
        planned_ = expected.start;
      else if (expected.start.is_set() && expected.start > supposed.now)
        later_starts_.insert(expected.start);
    }
    for (const Reservation& each : supposed.state.reservations->all)
      if (each.start > supposed.now) later_starts_.insert(each.start);
  }

  const Workload& workload() const {
    return supposed_.state.workloads.find(element_.first.value())->workload;
  }
  const ClusterSpec& spec() const { return *supposed_.state.spec; }
  std::uint32_t id() const {
    return element_.second ? element_.second.value() : element_.first.value();
  }
  const std::set<Instant>& later_starts() const { return later_starts_; }
  Instant now() const { return supposed_.now; }
  Duration grace() const { return supposed_.state.spec->kill_wait; }

  // Whether the change helps; notes it if so.
  bool try_change(Improvement change) {
    Supposition copy = supposed_;
    copy.change(element_.first, change.edit);
    const Workload& edited = copy.state.workloads.find(element_.first.value())->workload;
    if (!check_can_ever_run(*copy.state.spec, edited)) return false;
    auto all = expected_starts(copy);
    auto found = all.find(element_);
    if (found == all.end() || !found->second.start.is_set()) return false;
    const Instant start = found->second.start;
    if (planned_.is_set() && start + kWorthIt > planned_) return false;
    change.expected = std::move(found->second);
    found_.push_back(std::move(change));
    return true;
  }
  // Of the values below `from` the largest that helps: it is tried at one, then by halves between
  // what helps and what does not.
  void try_fewer(std::uint32_t from, const std::function<Improvement(std::uint32_t)>& change_to) {
    if (from <= 1 || !try_change(change_to(1))) return;
    std::uint32_t helps = 1, does_not = from;
    while (does_not - helps > 1) {
      std::uint32_t middle = (helps + does_not) / 2;
      const std::size_t before = found_.size();
      if (try_change(change_to(middle))) {
        // The smaller change replaces the larger one unless it helps less.
        if (found_[before].expected.start <= found_[before - 1].expected.start)
          found_.erase(found_.begin() + static_cast<std::ptrdiff_t>(before) - 1);
        helps = middle;
      } else {
        does_not = middle;
      }
    }
  }
  std::vector<Improvement> take(std::size_t most) {
    std::stable_sort(found_.begin(), found_.end(), [](const auto& a, const auto& b) {
      return a.expected.start < b.expected.start;
    });
    if (found_.size() > most) found_.resize(most);
    return std::move(found_);
  }

 private:
  const Supposition& supposed_;
  ElementKey element_;
  Instant planned_;
  std::set<Instant> later_starts_;
  std::vector<Improvement> found_;
};

void try_shorter_limits(Search& search) {
  const Workload& workload = search.workload();
  const PartitionSpec* partition = nullptr;
  for (const PartitionSpec& each : search.spec().partitions)
    if (workload.partitions.empty() ? each.is_default : each.name == workload.partitions[0])
      partition = &each;
  if (!partition) return;
  const Duration limit = time_limit_in(*partition, workload);
  // What is planned to start next bounds what fits before it: the longest first.
  std::vector<std::int64_t> minutes;
  for (Instant start : search.later_starts()) {
    std::int64_t room = ((start - search.now()) - search.grace()).whole_seconds() / 60;
    if (room >= 1 && (limit.is_infinite() || room * 60 < limit.whole_seconds()))
      minutes.push_back(room);
  }
  if (partition->max_time && limit > *partition->max_time)
    minutes.push_back(partition->max_time->whole_seconds() / 60);
  std::sort(minutes.rbegin(), minutes.rend());
  minutes.erase(std::unique(minutes.begin(), minutes.end()), minutes.end());
  if (minutes.size() > 4) minutes.erase(minutes.begin() + 2, minutes.end() - 2);
  for (std::int64_t each : minutes) {
    Improvement change;
    change.change = fmt::format("with a time limit of {} min", each);
    change.command = fmt::format("scontrol update jobid={} timelimit={}", search.id(), each);
    change.edit = [each](Workload& w) { w.time_limit = Duration::minutes(each); };
    if (search.try_change(std::move(change))) return;
  }
}

Improvement with_role(std::string text, std::function<void(RoleAsk&)> edit) {
  Improvement out;
  out.change = std::move(text);
  out.edit = [edit = std::move(edit)](Workload& w) { edit(w.roles.edit()[0]); };
  return out;
}

void try_smaller(Search& search) {
  const RoleAsk& ask = search.workload().roles[0];
  if (ask.gpus_total > 0)
    search.try_fewer(ask.gpus_total, [](std::uint32_t n) {
      return with_role(fmt::format("with {} GPUs in all", n),
                       [n](RoleAsk& r) { r.gpus_total = n; });
    });
  else if (ask.gpus_per_node > 0)
    search.try_fewer(ask.gpus_per_node, [](std::uint32_t n) {
      return with_role(fmt::format("with {} GPU{} on each node", n, n == 1 ? "" : "s"),
                       [n](RoleAsk& r) { r.gpus_per_node = n; });
    });
  else if (ask.gpus_per_task > 0)
    search.try_fewer(ask.gpus_per_task, [](std::uint32_t n) {
      return with_role(fmt::format("with {} GPU{} for each task", n, n == 1 ? "" : "s"),
                       [n](RoleAsk& r) { r.gpus_per_task = n; });
    });
  if (ask.nodes_min > 1)
    search.try_fewer(ask.nodes_min, [&](std::uint32_t n) {
      return with_role(fmt::format("on {} node{}", n, n == 1 ? "" : "s"), [n](RoleAsk& r) {
        // As many tasks on each node as before.
        r.tasks = std::max(1u, r.tasks / r.nodes_min * n);
        r.nodes_min = n;
        r.nodes_max = std::min(r.nodes_max, n);
      });
    });
  if (ask.cpus_per_task > 1)
    search.try_fewer(ask.cpus_per_task, [](std::uint32_t n) {
      return with_role(fmt::format("with {} CPU{} for each task", n, n == 1 ? "" : "s"),
                       [n](RoleAsk& r) { r.cpus_per_task = n; });
    });
}

void try_other_kinds(Search& search) {
  const RoleAsk& ask = search.workload().roles[0];
  if (!ask.gpu_type.empty()) {
    std::set<std::string> types;
    for (const NodeSpec& node : search.spec().nodes)
      for (const DeviceSpec& device : node.devices)
        if (device.kind == "gpu" && !device.type.empty()) types.insert(device.type);
    types.erase(ask.gpu_type);
    for (const std::string& type : types)
      search.try_change(
          with_role("with GPUs of " + type, [type](RoleAsk& r) { r.gpu_type = type; }));
  }
  if (!ask.nodes_in.empty())
    search.try_change(with_role("on any node", [](RoleAsk& r) { r.nodes_in.clear(); }));
  if (!ask.features.empty())
    search.try_change(with_role("without its constraint", [](RoleAsk& r) { r.features.clear(); }));
  if (ask.exclusive)
    search.try_change(with_role("without --exclusive", [](RoleAsk& r) { r.exclusive = false; }));
}

void try_other_places(Search& search, const Supposition& supposed) {
  const Workload& workload = search.workload();
  for (const PartitionSpec& partition : search.spec().partitions) {
    const auto& asked = workload.partitions;
    const bool listed = std::find(asked.begin(), asked.end(), partition.name) != asked.end() ||
                        (asked.empty() && partition.is_default);
    // Who may use a partition for some groups is not known here.
    if (listed || partition.state != PartitionState::kUp || partition.hidden ||
        partition.root_only || !partition.allow_groups.empty())
      continue;
    Improvement change;
    change.change = "in partition " + partition.name;
    change.command =
        fmt::format("scontrol update jobid={} partition={}", search.id(), partition.name);
    change.edit = [name = partition.name](Workload& w) { w.partitions = {name}; };
    search.try_change(std::move(change));
  }
  std::set<std::string> parents;
  for (const QueueSpec& queue : supposed.state.queues->queues) parents.insert(queue.parent);
  for (const QueueSpec& queue : supposed.state.queues->queues) {
    if (parents.contains(queue.name) || queue.state != QueueState::kOpen ||
        queue.name == workload.extras->terms.queue)
      continue;
    Improvement change;
    change.change = "in queue " + queue.name;
    change.edit = [name = queue.name](Workload& w) { w.extras.edit().terms.queue = name; };
    search.try_change(std::move(change));
  }
  if (workload.extras->reservation.empty()) return;
  Improvement change;
  change.change = "without --reservation";
  change.edit = [](Workload& w) { w.extras.edit().reservation.clear(); };
  search.try_change(std::move(change));
}

}  // namespace

void Supposition::change(WorkloadId workload, const std::function<void(Workload&)>& edit) {
  const WorkloadEntry* known = state.workloads.find(workload.value());
  if (!known) return;
  WorkloadEntry entry = *known;
  edit(entry.workload);
  state.workloads.put(workload.value(), std::make_shared<const WorkloadEntry>(std::move(entry)));
  // What was promised was room for the request as it was.
  PromiseBook book = *state.promises;
  std::erase_if(book.records,
                [&](const PromiseRecord& record) { return record.workload == workload; });
  state.promises = std::make_shared<const PromiseBook>(std::move(book));
}

WorkloadId Supposition::add(Workload workload) {
  WorkloadEntry entry;
  entry.workload = std::move(workload);
  WorkloadId id = entry.workload.id = WorkloadId(state.next_id++);
  entry.workload.submitted = now;
  // Of an array the first element is asked about.
  entry.workload.array.clear();
  const auto& partitions = *entry.workload.partitions;
  if (const Association* mine =
          association_for(*state.accounts, entry.workload.account, entry.workload.user,
                          partitions.empty() ? "" : partitions.front()))
    entry.association = mine->id;
  entry.simple_unstarted = true;
  state.workloads.put(id.value(), std::make_shared<const WorkloadEntry>(std::move(entry)));
  agenda.pending.insert(id.value());
  return id;
}

std::map<ElementKey, Expected> expected_starts(const Supposition& supposed) {
  PassInput input{supposed.state, supposed.agenda, supposed.now, supposed.profile};
  input.reserve_depth = supposed.depth;
  Plan result = plan(input);
  std::map<ElementKey, Expected> out;
  for (const Waiting& waiting : result.waiting) {
    Expected& expected = out[{waiting.element.workload, waiting.element.gang}];
    expected.wait = waiting.wait;
    expected.start = waiting.wait->planned_start;
  }
  for (const Promise& promise : result.promises) {
    Expected& expected = out[{promise.element.workload, promise.element.gang}];
    expected.start = promise.at;
    expected.nodes = promise.nodes;
  }
  // Of an array the first start counts, whatever waits of it.
  for (const Start& start : result.starts) {
    Expected& expected = out[{start.element.workload, start.element.gang}];
    expected.start = supposed.now;
    expected.wait.reset();
    expected.nodes.clear();
    for (const Slot& slot : start.slots)
      if (expected.nodes.empty() || expected.nodes.back() != slot.node)
        expected.nodes.push_back(slot.node);
  }
  return out;
}

std::vector<Improvement> improvements(const Supposition& supposed, const ElementKey& element,
                                      std::size_t most) {
  const WorkloadEntry* entry = supposed.state.workloads.find(element.first.value());
  if (!entry || entry->workload.roles.empty()) return {};
  Search search(supposed, element);
  try_shorter_limits(search);
  if (entry->workload.roles.size() == 1) {
    try_smaller(search);
    try_other_kinds(search);
  }
  try_other_places(search, supposed);
  return search.take(most);
}

}  // namespace tutti::scheduler
