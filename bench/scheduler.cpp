// What a pass costs: the rows of the scheduler's cost table that apply so far, and how they grow.
//   full pass: N nodes x 8 GPUs nearly full, Q pending gangs of 1,000 shapes, from scratch
//   one event: a job ends in such a cluster; the pass that decides what follows
//   burst:     J single-slot starts decided in one pass on N empty nodes
//   large gang: 1,024 nodes at once in free room: the whole pass; then its placement alone, with two
//   levels of topology
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdlib>

#include "scheduler/place.h"
#include "scheduler/plan.h"
#include "state/apply.h"

namespace {

using namespace tutti;

struct World {
  ClusterState state;
  Agenda agenda;
  Instant now = Instant::from_ms(1'000'000);

  void apply(EventBody body) {
    auto status = state::apply(state, agenda, {now, std::move(body)});
    if (status) return;
    fmt::print(stderr, "{}\n", status.error().message);
    std::abort();
  }
  explicit World(std::uint32_t nodes) {
    ClusterSpec spec;
    PartitionSpec partition{.name = "batch", .is_default = true};
    for (std::uint32_t i = 0; i < nodes; ++i) {
      NodeSpec node;
      node.name = fmt::format("big{:05}", i);
      node.kind = NodeKind::kPlanned;
      node.cpus = 128;
      node.threads_per_core = 2;
      node.memory_mib = 1'000'000;
      node.devices.assign(8, DeviceSpec{"gpu", i % 2 == 0 ? "h100" : "a100", ""});
      partition.nodes.push_back(node.name);
      spec.nodes.push_back(std::move(node));
    }
    spec.partitions.push_back(std::move(partition));
    apply(ClusterConfigured{std::move(spec)});
  }
  void submit(RoleAsk ask, Duration limit) {
    Workload workload;
    workload.id = WorkloadId(state.next_id);
    workload.submitted = now;
    workload.roles = {std::move(ask)};
    workload.time_limit = limit;
    apply(WorkloadSubmitted{std::move(workload)});
  }
  void fill() {
    for (const auto& start : scheduler::plan({state, agenda, now}).starts)
      apply(GangAllocated{GangId(start.element.workload.value()), start.element.workload,
                          std::nullopt, Epoch(state.next_epoch), start.partition, start.slots,
                          now + start.limit});
  }
};

// One of 1,000 different requests.
RoleAsk shape(std::uint32_t number) {
  RoleAsk ask;
  ask.gpus_per_node = 1 + number % 8;
  ask.nodes_min = ask.nodes_max = 1 + number / 8 % 5;
  ask.tasks = ask.nodes_min;
  ask.cpus_per_task = 1 + number / 40 % 25;
  if (number % 3 == 0) ask.gpu_type = number % 2 == 0 ? "h100" : "a100";
  return ask;
}

World full_world(std::uint32_t nodes, std::uint32_t queue) {
  World world(nodes);
  for (std::uint32_t i = 0; i < 2 * nodes; ++i)
    world.submit({.gpus_per_node = 4}, Duration::minutes(60 + i % 500));
  world.fill();
  for (std::uint32_t i = 0; i < queue; ++i)
    world.submit(shape(i % 1000), Duration::minutes(30 + i % 7 * 60));
  return world;
}

void full_pass(benchmark::State& bench) {
  World world = full_world(static_cast<std::uint32_t>(bench.range(0)),
                           static_cast<std::uint32_t>(bench.range(1)));
  scheduler::PassStats stats;
  for (auto _ : bench) stats = scheduler::plan({world.state, world.agenda, world.now}).stats;
  bench.counters["shapes"] = static_cast<double>(stats.shapes);
  bench.counters["started"] = static_cast<double>(stats.placed);
  bench.counters["work"] = static_cast<double>(stats.work_units);
}
BENCHMARK(full_pass)
    ->ArgNames({"nodes", "queue"})
    ->Args({100, 10'000})
    ->Args({1'000, 10'000})
    ->Args({10'000, 10'000})
    ->Args({100'000, 10'000})
    ->Args({10'000, 1'000})
    ->Args({10'000, 100'000})
    ->Args({10'000, 1'000'000})
    ->Unit(benchmark::kMillisecond);

void one_event(benchmark::State& bench) {
  World world = full_world(static_cast<std::uint32_t>(bench.range(0)),
                           static_cast<std::uint32_t>(bench.range(1)));
  for (auto _ : bench) {
    bench.PauseTiming();
    const GangId gang(*world.agenda.active.begin());
    const auto slots =
        static_cast<std::uint32_t>(world.state.gangs.find(gang.value())->slots.size());
    bench.ResumeTiming();
    GangEnding ending;
    ending.gang = gang;
    ending.outcome = Outcome::kCompleted;
    world.apply(ending);
    for (std::uint32_t slot = 0; slot < slots; ++slot) world.apply(SlotReleased{gang, slot});
    benchmark::DoNotOptimize(scheduler::plan({world.state, world.agenda, world.now}));
  }
}
BENCHMARK(one_event)
    ->ArgNames({"nodes", "queue"})
    ->Args({10'000, 100'000})
    ->Iterations(20)
    ->Unit(benchmark::kMillisecond);

void burst(benchmark::State& bench) {
  World world(static_cast<std::uint32_t>(bench.range(0)));
  auto jobs = static_cast<std::uint32_t>(bench.range(1));
  for (std::uint32_t i = 0; i < jobs; ++i) {
    RoleAsk ask;
    ask.cpus_per_task = 1 + i % static_cast<std::uint32_t>(bench.range(2));
    world.submit(ask, Duration::minutes(60));
  }
  std::size_t started = 0;
  for (auto _ : bench)
    started = scheduler::plan({world.state, world.agenda, world.now}).starts.size();
  bench.counters["started"] = static_cast<double>(started);
  bench.counters["starts/s"] = benchmark::Counter(static_cast<double>(started),
                                                  benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(burst)
    ->ArgNames({"nodes", "jobs", "shapes"})
    ->Args({1'000, 5'000, 1})
    ->Args({1'000, 5'000, 16})
    ->Args({10'000, 100'000, 16})
    ->Unit(benchmark::kMillisecond);

void large_gang(benchmark::State& bench) {
  World world(static_cast<std::uint32_t>(bench.range(0)));
  world.submit({.nodes_min = 1024,
                .nodes_max = 1024,
                .tasks = 8192,
                .tasks_per_node = 8,
                .gpus_per_node = 8},
               Duration::minutes(60));
  for (auto _ : bench)
    benchmark::DoNotOptimize(scheduler::plan({world.state, world.agenda, world.now}));
}
// Blocks of 2,500 nodes, racks of 50.
void large_gang_by_topology(benchmark::State& bench) {
  World world(static_cast<std::uint32_t>(bench.range(0)));
  ClusterSpec spec = *world.state.spec;
  spec.topology_levels = {"block", "rack"};
  for (std::size_t i = 0; i < spec.nodes.size(); ++i) {
    spec.nodes[i].labels["block"] = fmt::format("b{}", i / 2500);
    spec.nodes[i].labels["rack"] = fmt::format("r{}", i / 50);
  }
  scheduler::ClusterIndex cluster(spec);
  scheduler::NodeSet all(cluster.size());
  for (const auto& kind : cluster.classes()) all |= kind.members;
  scheduler::FreeMap free(cluster, all);
  free.build_index();
  scheduler::Timeline timeline(free);
  RoleAsk ask{.nodes_min = 1024,
              .nodes_max = 1024,
              .tasks = 8192,
              .tasks_per_node = 8,
              .gpus_per_node = 8};
  auto shape = scheduler::resolve_shape(cluster, 0, {ask}, {});
  for (auto _ : bench) {
    scheduler::RoomNow room(free, timeline, world.now, Instant::never());
    auto placed = scheduler::place_gang(room, shape, all);
    if (!placed) bench.SkipWithError("not placed");
    benchmark::DoNotOptimize(placed);
  }
}
BENCHMARK(large_gang_by_topology)->ArgName("nodes")->Arg(10'000)->Unit(benchmark::kMillisecond);

BENCHMARK(large_gang)->ArgName("nodes")->Arg(2'048)->Arg(10'000)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
