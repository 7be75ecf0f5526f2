// Whole lives of random clusters in the simulator's world: arrivals, ends, failed and repaired
// nodes, drains, cancelled jobs and changing quotas as they come. Every pass is the production
// planner's, every change goes through the production fold. What is looked at here is written from
// the invariants of the design and reads the state alone; the planner's own lint runs besides.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "simulator/world.h"
#include "tests/property/random_cluster.h"

namespace tutti::property {
namespace {

using simulator::World;

class Life {
 public:
  static Life make(std::uint32_t seed) {
    RandomCluster source(seed);
    source.make_nodes(6);
    static const char* const kProfiles[] = {"tutti", "tutti", "tutti", "easy", "fcfs"};
    simulator::WorldOptions options;
    options.profile = kProfiles[source.below(5)];
    options.start_delay = Duration::seconds(source.below(3));
    options.release_delay = Duration::seconds(source.below(3));
    options.lint = true;
    options.forget = source.chance(50);
    auto world = World::create(*source.state.spec, source.now, options);
    EXPECT_TRUE(world);
    return Life(std::move(source), std::move(*world));
  }

  // Something happens, then time goes on to the next thing that is due or a random while.
  void step() {
    for (std::uint32_t i = random_.below(3); i > 0; --i) submit();
    if (random_.chance(15)) disturb();
    const Instant until = world_.now() + Duration::seconds(1 + random_.below(30));
    advance(std::min(until, world_.next_due()));
  }

  // Nobody comes any more, nothing is in the way: nodes are well, nothing is held or limited.
  void let_it_be() {
    const ClusterSpec& spec = *world_.state().spec;
    for (NodeIndex i = 0; i < spec.nodes.size(); ++i) {
      NodeState well = *world_.state().node(i);
      well.status = NodeStatus::kUp;
      well.drained = well.down = false;
      must(world_.change(NodeChanged{spec.nodes[i].name, well}));
    }
    must(world_.change(QueuesConfigured{}));
  }
  void run_dry() {
    for (int i = 0; i < 5'000; ++i) {
      if (world_.next_due() < Instant::never())
        advance(world_.next_due());
      else if (!forget_failures())
        return;
    }
  }

  const World& world() const { return world_; }
  std::size_t submitted() const { return submitted_; }

 private:
  Life(RandomCluster random, World world) : random_(std::move(random)), world_(std::move(world)) {}

  static void must(const Status& status) { ASSERT_TRUE(status) << status.error().message; }
  void advance(Instant to) { must(world_.advance(to)); }

  // As the controller does after a while: nodes that failed under a gang are tried again. False
  // when there was nothing to forget.
  bool forget_failures() {
    std::vector<GangId> avoiding;
    for (std::uint32_t id : world_.agenda().pending)
      for (GangId gang : world_.state().workloads.find(id)->gangs)
        if (const Gang* known = world_.state().gangs.find(gang.value());
            known && known->state == GangState::kPending && !known->avoid_nodes.empty())
          avoiding.push_back(gang);
    for (GangId gang : avoiding) must(world_.change(AvoidanceExpired{gang}));
    return !avoiding.empty();
  }

  void submit() {
    random_.now = world_.now();
    Workload workload = random_.make_workload();
    workload.hold = Hold::kNone;
    workload.extras.edit().reservation.clear();
    if (random_.chance(60)) workload.extras.edit().terms.queue = random_.chance(50) ? "a" : "b";
    const Duration run = Duration::seconds(1 + random_.below(150));
    if (world_.submit(std::move(workload), run)) ++submitted_;  // else it can never run
  }

  void disturb() {
    const ClusterState& state = world_.state();
    const auto node =
        static_cast<NodeIndex>(random_.below(static_cast<std::uint32_t>(state.spec->nodes.size())));
    switch (random_.below(5)) {
      case 0:
        must(state.node(node)->status == NodeStatus::kUp ? world_.fail_node(node, "failed")
                                                         : world_.repair_node(node));
        return;
      case 1: {
        NodeState changed = *state.node(node);
        changed.drained = !changed.drained;
        must(world_.change(NodeChanged{state.spec->nodes[node].name, changed}));
        return;
      }
      case 2:
        if (!world_.agenda().pending.empty()) {
          const WorkloadId id(*world_.agenda().pending.begin());
          const WorkloadEntry* entry = state.workloads.find(id.value());
          if (entry->has_unstarted())
            must(world_.change(ElementsCancelled{id, "", Outcome::kCancelled, std::nullopt}));
        }
        return;
      default:
        must(world_.change(QueuesConfigured{random_queues()}));
    }
  }

  QueueTree random_queues() {
    QueueTree tree;
    if (random_.chance(20)) return tree;
    auto amount = [&]() -> std::optional<std::uint64_t> {
      if (random_.chance(40)) return std::nullopt;
      return random_.below(6);
    };
    tree.queues.push_back(QueueSpec{.name = "root"});
    for (const char* name : {"a", "b"}) {
      QueueSpec queue{.name = name, .parent = "root"};
      for (const char* resource : {"gpu", "gpu:a", "cpu"})
        if (random_.chance(50)) queue.quotas.push_back({resource, amount(), amount(), amount()});
      queue.weight = 1 + random_.below(3);
      if (random_.chance(30)) queue.strictness = QueueStrictness::kBestEffort;
      tree.queues.push_back(std::move(queue));
    }
    if (random_.chance(30)) tree.default_queue = "a";
    return tree;
  }

  RandomCluster random_;
  World world_;
  std::size_t submitted_ = 0;
};

// Invariants 1 and 2, read off the state: the first sentence that is wrong.
std::string what_is_held_wrongly(const ClusterState& state, const Agenda& agenda) {
  std::map<NodeIndex, std::set<std::uint16_t>> cpus, gpus;
  std::map<NodeIndex, std::uint64_t> memory;
  std::map<NodeIndex, std::uint32_t> owners, alone;
  for (std::uint32_t id : agenda.active) {
    const Gang* gang = state.gangs.find(id);
    if (!gang) return "a hold without an owner";
    const std::string name = "gang " + std::to_string(id);
    const WorkloadEntry* entry = state.workloads.find(gang->workload.value());
    if (!entry) return name + " belongs to nobody";
    std::vector<std::set<NodeIndex>> nodes_of_role(entry->workload.roles.size());
    for (const Slot& slot : gang->slots) {
      nodes_of_role.at(slot.role).insert(slot.node);
      if (slot.released) continue;
      const NodeSpec& node = state.spec->nodes.at(slot.node);
      for (std::uint16_t cpu : slot.cpu_ids)
        if (cpu >= node.cpus || !cpus[slot.node].insert(cpu).second)
          return name + " has a CPU twice";
      for (std::uint16_t gpu : slot.gpus)
        if (gpu >= node.devices.size() || !gpus[slot.node].insert(gpu).second)
          return name + " has a GPU twice";
      if ((memory[slot.node] += slot.memory_mib) > node.memory_mib)
        return name + " has more memory than there is";
      ++owners[slot.node];
      alone[slot.node] += slot.exclusive;
    }
    if (gang->state == GangState::kEnding) continue;
    for (std::size_t role = 0; role < nodes_of_role.size(); ++role)
      if (nodes_of_role[role].size() < entry->workload.roles[role].nodes_min)
        return name + " holds a part of what it needs";
  }
  for (const auto& [node, count] : alone)
    if (count > 0 && owners[node] > count) return "an exclusive node is shared";
  return "";
}

std::string how_to_repeat(std::uint32_t seed, int step) {
  return "step " + std::to_string(step) + "; repeat: TUTTI_PROPERTY_SEED=" + std::to_string(seed) +
         " property_test --gtest_filter=LifeProperty.*";
}

TEST(LifeProperty, NothingIsHeldTwiceOrInPartAndARestartChangesNothing) {
  for (std::uint32_t seed : seeds(1000)) {
    Life life = Life::make(seed);
    for (int step = 0; step < 25; ++step) {
      ASSERT_NO_FATAL_FAILURE(life.step()) << how_to_repeat(seed, step);
      if (testing::Test::HasFatalFailure()) FAIL() << how_to_repeat(seed, step);
      const World& world = life.world();
      ASSERT_EQ(what_is_held_wrongly(world.state(), world.agenda()), "")
          << how_to_repeat(seed, step);
      if (step % 12 != 11) continue;
      auto restored = state::decode_snapshot(state::encode_snapshot(world.state()));
      ASSERT_TRUE(restored) << restored.error().message << how_to_repeat(seed, step);
      const Agenda agenda = state::derive_agenda(*restored);
      ASSERT_EQ(agenda, world.agenda()) << how_to_repeat(seed, step);
      scheduler::PassInput input = world.input();
      ASSERT_EQ(render(scheduler::plan({*restored, agenda, input.now, input.profile, input.budget,
                                        input.reserve_depth})),
                render(scheduler::plan(input)))
          << how_to_repeat(seed, step);
    }
  }
}

// Without arrivals, failures and limits, everything that can run does, and ends.
TEST(LifeProperty, WithoutArrivalsEverythingEnds) {
  std::size_t ended = 0;
  for (std::uint32_t seed : seeds(1000)) {
    Life life = Life::make(seed);
    for (int step = 0; step < 12; ++step) life.step();
    life.let_it_be();
    life.run_dry();
    if (testing::Test::HasFatalFailure()) FAIL() << how_to_repeat(seed, 12);
    const World& world = life.world();
    ASSERT_TRUE(world.agenda().active.empty()) << how_to_repeat(seed, 12);
    ASSERT_TRUE(world.agenda().pending.empty()) << how_to_repeat(seed, 12) << "\n"
                                                << render(world.last_plan());
    ended += life.submitted();
  }
  EXPECT_GE(ended, share(3000));
}

}  // namespace
}  // namespace tutti::property
