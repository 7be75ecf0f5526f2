// Firm promises over the life of random clusters.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "state/apply.h"
#include "tests/property/random_cluster.h"

namespace tutti::property {
namespace {

using scheduler::Plan;

// Jobs that differ in age, size and length only; each ends at its limit or before.
struct Life {
  RandomCluster cluster;
  std::map<std::uint32_t, Instant> ends;  // by gang
  bool arrays = false;

  explicit Life(std::uint32_t seed) : cluster(seed) {
    cluster.make_nodes(4);
    for (NodeIndex i = 0; i < cluster.state.spec->nodes.size(); ++i) {
      NodeChanged event{cluster.state.spec->nodes[i].name, *cluster.state.node(i)};
      event.state.drained = false;
      cluster.apply(event);
    }
  }
  void submit_some() {
    for (std::uint32_t i = cluster.below(3); i > 0; --i) {
      Workload workload = cluster.make_workload();
      workload.hold = Hold::kNone;
      workload.begin = Instant();
      workload.partitions = {};
      if (!arrays) {
        workload.array.clear();
        workload.array_throttle = 0;
      }
      workload.extras.edit().fixed_priority.reset();
      workload.time_limit = Duration::seconds(300 * (1 + cluster.below(20)));
      if (scheduler::check_can_ever_run(*cluster.state.spec, workload)) cluster.submit(workload);
    }
  }
  void note_ends() {
    for (std::uint32_t id : cluster.agenda.active) {
      if (ends.contains(id)) continue;
      const Gang* gang = cluster.state.gangs.find(id);
      Duration limit = gang->limit_end - gang->started;
      ends[id] = gang->started +
                 Duration::seconds(
                     cluster.chance(50)
                         ? limit.whole_seconds()
                         : 1 + cluster.below(static_cast<std::uint32_t>(limit.whole_seconds())));
    }
  }
  void end_what_is_over() {
    for (auto it = ends.begin(); it != ends.end();) {
      if (it->second > cluster.now) {
        ++it;
        continue;
      }
      cluster.end_gang(GangId(it->first));
      it = ends.erase(it);
    }
  }
  Instant next_end() const {
    Instant next = Instant::never();
    for (const auto& [id, end] : ends) next = std::min(next, end);
    return next;
  }
  void step() {
    Instant next = std::min(next_end(), cluster.now + Duration::seconds(60 + cluster.below(900)));
    cluster.now = std::max(next, cluster.now);
    end_what_is_over();
    submit_some();
  }
};

TEST(PromiseProperty, WithNothingLostAFirmPromiseNeverSlips) {
  std::uint32_t firm = 0, kept = 0;
  for (std::uint32_t seed : seeds(300)) {
    Life life(seed);
    std::map<std::pair<WorkloadId, GangId>, Instant> promised;
    for (int i = 0; i < 40; ++i) {
      life.step();
      scheduler::PassInput input = life.cluster.input();
      Plan plan = scheduler::plan(input);
      ASSERT_EQ(scheduler::lint(input, plan), std::vector<std::string>()) << "seed " << seed;
      for (const PromiseChange& change : plan.promise_changes) {
        const auto key = std::pair(change.workload, change.gang);
        const bool bound = promised.contains(key);
        if (change.step == PromiseStep::kFirm) {
          promised[key] = change.at;
          ++firm;
        } else if (bound) {
          ASSERT_NE(change.step, PromiseStep::kDropped)
              << "seed " << seed << " step " << i << ": job " << change.workload.value() << ": "
              << change.cause;
          ASSERT_LE(change.at, promised[key]) << "seed " << seed << " step " << i << ": job "
                                              << change.workload.value() << ": " << change.cause;
          promised[key] = change.at;
        }
      }
      for (const auto& start : plan.starts) {
        auto it = promised.find({start.element.workload, start.element.gang});
        if (it == promised.end()) continue;
        ASSERT_LT(life.cluster.now, it->second + Duration::seconds(60)) << "seed " << seed;
        promised.erase(it);
        ++kept;
      }
      life.cluster.carry_out(plan);
      life.note_ends();
      // None is overdue: what was promised a time that has come has started.
      for (const auto& [key, at] : promised)
        ASSERT_GT(at + Duration::seconds(60), life.cluster.now)
            << "seed " << seed << ": job " << key.first.value() << "\n"
            << render(plan);
    }
  }
  EXPECT_GE(firm, share(200));
  EXPECT_GE(kept, share(100));
}

// Whatever happens, a firm promise that slips has a cause (lint looks), and a restart changes
// nothing: the plan from the folded events is the same.
TEST(PromiseProperty, ASlipHasACauseAndARestartChangesNothing) {
  std::uint32_t slips = 0;
  for (std::uint32_t seed : seeds(200)) {
    Life life(seed);
    life.arrays = true;
    RandomCluster& cluster = life.cluster;
    for (int i = 0; i < 30; ++i) {
      life.step();
      if (cluster.chance(10)) {
        auto node = cluster.below(static_cast<std::uint32_t>(cluster.state.spec->nodes.size()));
        NodeChanged event{cluster.state.spec->nodes[node].name, *cluster.state.node(node)};
        event.state.drained = !event.state.drained;
        cluster.apply(event);
      }
      if (cluster.chance(5)) cluster.reserve();
      scheduler::PassInput input = cluster.input();
      Plan plan = scheduler::plan(input);
      ASSERT_EQ(scheduler::lint(input, plan), std::vector<std::string>()) << "seed " << seed;
      for (const PromiseChange& change : plan.promise_changes)
        slips += change.step == PromiseStep::kMoved && !change.cause.empty();
      if (i % 10 == 9) {
        RandomCluster other(seed);
        other.now = cluster.now;
        for (const Event& event : cluster.events)
          ASSERT_TRUE(state::apply(other.state, other.agenda, event)) << "seed " << seed;
        ASSERT_EQ(render(scheduler::plan(other.input())), render(plan)) << "seed " << seed;
      }
      cluster.carry_out(plan);
      life.note_ends();
    }
  }
  EXPECT_GE(slips, share(5));
}

}  // namespace
}  // namespace tutti::property
