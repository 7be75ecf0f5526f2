#include "tests/property/random_cluster.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <optional>

#include "base/text.h"

namespace tutti::property {

namespace {

std::optional<std::uint32_t> from_environment(const char* name) {
  const char* text = std::getenv(name);
  return text ? parse_integer<std::uint32_t>(text) : std::nullopt;
}

std::uint32_t scaled(std::uint32_t number) {
  const std::uint64_t percent = from_environment("TUTTI_PROPERTY_PERCENT").value_or(100);
  return static_cast<std::uint32_t>(number * percent / 100);
}

}  // namespace

std::vector<std::uint32_t> seeds(std::uint32_t usual) {
  if (auto one = from_environment("TUTTI_PROPERTY_SEED")) return {*one};
  std::vector<std::uint32_t> out(std::max(scaled(usual), 1u));
  std::iota(out.begin(), out.end(), 1u);
  return out;
}

std::uint32_t share(std::uint32_t of_the_usual) {
  return from_environment("TUTTI_PROPERTY_SEED") ? 0 : scaled(of_the_usual) / 2;
}

void RandomCluster::apply(EventBody body) {
  Event event{now, std::move(body)};
  Status status = state::apply(state, agenda, event);
  ASSERT_TRUE(status) << status.error().message;
  events.push_back(std::move(event));
}

void RandomCluster::make_nodes(std::uint32_t most_nodes) {
  ClusterSpec spec;
  spec.kill_wait = Duration();
  std::uint32_t count = 1 + below(most_nodes);
  PartitionSpec all{.name = "all", .is_default = true}, some{.name = "some"};
  for (std::uint32_t i = 0; i < count; ++i) {
    NodeSpec node;
    node.name = "n" + std::to_string(i);
    node.kind = NodeKind::kPlanned;
    node.threads_per_core = 1 + below(2);
    node.cpus = node.threads_per_core * (1 + below(4));
    node.memory_mib = 10 * (1 + below(4));
    for (std::uint32_t gpu = below(5); gpu > 0; --gpu)
      node.devices.push_back({"gpu", chance(70) ? "a" : "b", ""});
    if (chance(50)) node.features.push_back("x");
    if (chance(50)) node.features.push_back("y");
    node.weight = 1 + below(2);
    if (chance(15)) node.initial_drain_reason = "drained";
    all.nodes.push_back(node.name);
    if (chance(60)) some.nodes.push_back(node.name);
    spec.nodes.push_back(node);
  }
  some.priority_tier = 1 + below(2);
  spec.partitions = {all, some};
  apply(ClusterConfigured{spec});
}

RoleAsk RandomCluster::make_ask() {
  RoleAsk ask;
  ask.nodes_min = 1 + below(3);
  ask.nodes_max = chance(40) ? kNoLimit : ask.nodes_min + below(3);
  ask.tasks = 1 + below(6);
  if (chance(30)) ask.tasks_per_node = 1 + below(3);
  ask.cpus_per_task = 1 + below(2);
  if (chance(20)) ask.cpus_per_gpu = 1 + below(2);
  if (chance(10)) ask.cpus_per_node = 1 + below(4);
  switch (below(5)) {
    case 0:
      ask.gpus_per_node = 1 + below(4);
      break;
    case 1:
      ask.gpus_per_task = 1 + below(2);
      break;
    case 2:
      ask.gpus_total = 1 + below(6);
      break;
    default:
      break;
  }
  if (chance(30)) ask.gpu_type = chance(50) ? "a" : "b";
  switch (below(6)) {
    case 0:
      ask.memory_mib_per_node = 10 * (1 + below(3));
      break;
    case 1:
      ask.memory_mib_per_cpu = 5 * (1 + below(2));
      break;
    case 2:
      ask.memory_mib_per_gpu = 5 * (1 + below(3));
      break;
    case 3:
      ask.memory_whole_node = chance(50);
      break;
    default:
      break;
  }
  ask.exclusive = chance(10);
  ask.contiguous = chance(10);
  static const std::vector<std::string> kFeatures{"", "", "x", "x&y", "x|y", "[x|y]"};
  ask.features = kFeatures[below(6)];
  const auto& nodes = state.spec->nodes;
  if (chance(15)) ask.nodes_in = {nodes[below(static_cast<std::uint32_t>(nodes.size()))].name};
  if (chance(15)) ask.nodes_out = {nodes[below(static_cast<std::uint32_t>(nodes.size()))].name};
  return ask;
}

Workload RandomCluster::make_workload() {
  Workload workload;
  workload.roles = {make_ask()};
  if (chance(15)) workload.roles.edit().push_back(make_ask());
  if (chance(80)) workload.time_limit = Duration::seconds(10 * (1 + below(20)));
  if (chance(30)) workload.partitions = {"some"};
  if (chance(10)) workload.partitions = {"some", "all"};
  if (chance(20)) {
    workload.array = "0-2";
    workload.array_throttle = below(3);
  }
  if (chance(50)) workload.extras.edit().fixed_priority = 1 + below(5);
  if (chance(10)) workload.hold = Hold::kUser;
  if (!state.reservations->all.empty() && chance(20))
    workload.extras.edit().reservation = state.reservations->all[0].name;
  if (chance(10)) workload.begin = now + Duration::seconds(below(30));
  return workload;
}

WorkloadId RandomCluster::submit(Workload workload) {
  workload.id = WorkloadId(state.next_id);
  workload.submitted = now;
  apply(WorkloadSubmitted{workload});
  return workload.id;
}

void RandomCluster::reserve() {
  Reservation out;
  out.name = "r" + std::to_string(below(3));
  out.start = now + Duration::seconds(below(100));
  out.end = out.start + Duration::seconds(1 + below(200));
  for (const NodeSpec& node : state.spec->nodes)
    if (chance(50)) out.nodes.push_back(node.name);
  if (chance(50)) out.flags.push_back(ReservationFlag::kMaint);
  if (chance(10)) out.flags.push_back(ReservationFlag::kDaily);
  apply(ReservationSet{out});
}

void RandomCluster::carry_out(const scheduler::Plan& plan) {
  for (const scheduler::Start& start : plan.starts) {
    const WorkloadEntry* entry = state.workloads.find(start.element.workload.value());
    GangId gang = start.element.gang;
    if (!gang) gang = GangId(entry->gangs.empty() ? start.element.workload.value() : state.next_id);
    Instant end = start.limit.is_infinite() ? Instant() : now + start.limit;
    apply(GangAllocated{gang, start.element.workload, start.element.array_index,
                        Epoch(state.next_epoch), start.partition, start.slots, end, start.rendezvous_port});
    apply(GangStarted{gang, end});
  }
  if (!plan.promise_changes.empty()) apply(PromisesChanged{plan.promise_changes});
}

scheduler::Plan RandomCluster::pass() {
  scheduler::Plan plan = scheduler::plan(input());
  carry_out(plan);
  return plan;
}

void RandomCluster::end_gang(GangId id) {
  const Gang* gang = state.gangs.find(id.value());
  std::size_t slots = gang->slots.size();
  GangEnding ending;
  ending.gang = id;
  ending.outcome = Outcome::kCompleted;
  apply(ending);
  for (std::uint32_t slot = 0; slot < slots; ++slot) apply(SlotReleased{id, slot});
}

std::string render(const scheduler::Plan& plan) {
  std::string out;
  auto element = [](const scheduler::ElementRef& ref) {
    return fmt::format("{}.{}.{}", ref.workload.value(),
                       ref.array_index ? static_cast<int>(*ref.array_index) : -1, ref.gang.value());
  };
  for (const auto& start : plan.starts) {
    out += fmt::format("start {} {} {} {}\n", element(start.element), start.partition,
                       start.limit.ms(), start.backfilled);
    for (const Slot& slot : start.slots)
      out += fmt::format("  {} {} {} [{}] [{}] {} {}\n", slot.node, slot.role, slot.tasks,
                         fmt::join(slot.cpu_ids, " "), fmt::join(slot.gpus, " "), slot.memory_mib,
                         slot.exclusive);
  }
  for (const auto& promise : plan.promises)
    out += fmt::format("promise {} {} [{}]\n", element(promise.element), promise.at.ms(),
                       fmt::join(promise.nodes, " "));
  for (const auto& waiting : plan.waiting)
    out += fmt::format("wait {} {} {} [{}] {}\n", element(waiting.element), waiting.wait->reason,
                       waiting.wait->text, join(waiting.wait->blockers, ", "),
                       waiting.wait->planned_start.ms());
  out += fmt::format("next {}\n", plan.next_look.ms());
  return out;
}

}  // namespace tutti::property
