// Properties of the planner on random small clusters. A failure prints the seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "model/reasons.h"
#include "tests/property/random_cluster.h"

namespace tutti::property {
namespace {

using scheduler::Plan;

constexpr std::uint32_t kInstances = 1500;

// As the controller does: what can never run is refused (now and then one slips through, as after
// a change of the configuration).
void submit_sensible(RandomCluster& cluster) {
  for (std::uint32_t tries = 0; tries < 20; ++tries) {
    Workload workload = cluster.make_workload();
    if (!cluster.chance(5) && !scheduler::check_can_ever_run(*cluster.state.spec, workload))
      continue;
    cluster.submit(workload);
    return;
  }
}

// A cluster in the middle of its life: things run, some have ended, more wait.
RandomCluster busy_cluster(std::uint32_t seed) {
  RandomCluster cluster(seed);
  cluster.make_nodes(6);
  if (cluster.chance(25)) cluster.reserve();
  static const char* const kProfiles[] = {"tutti", "tutti", "easy", "fcfs"};
  cluster.profile = kProfiles[cluster.below(4)];
  for (std::uint32_t round = cluster.below(4); round > 0; --round) {
    for (std::uint32_t i = cluster.below(4); i > 0; --i) submit_sensible(cluster);
    cluster.pass();
    std::vector<std::uint32_t> active(cluster.agenda.active.begin(), cluster.agenda.active.end());
    for (std::uint32_t gang : active)
      if (cluster.chance(30)) cluster.end_gang(GangId(gang));
    cluster.now = cluster.now + Duration::seconds(cluster.below(40));
  }
  for (std::uint32_t i = 1 + cluster.below(5); i > 0; --i) submit_sensible(cluster);
  return cluster;
}

TEST(SchedulerProperty, PlansAreSound) {
  for (std::uint32_t seed : seeds(kInstances)) {
    RandomCluster cluster = busy_cluster(seed);
    Plan plan = scheduler::plan(cluster.input());
    ASSERT_EQ(scheduler::lint(cluster.input(), plan), std::vector<std::string>())
        << "seed " << seed;
  }
}

TEST(SchedulerProperty, SameStateSamePlanWhateverTheOrderOfInput) {
  for (std::uint32_t seed : seeds(kInstances)) {
    RandomCluster cluster = busy_cluster(seed);
    std::string first = render(scheduler::plan(cluster.input()));
    ASSERT_EQ(render(scheduler::plan(cluster.input())), first) << "seed " << seed;
    // The last submissions in another order, into fresh tables.
    std::vector<Event> events = cluster.events;
    auto last = std::find_if(events.rbegin(), events.rend(), [](const Event& event) {
      return !std::holds_alternative<WorkloadSubmitted>(event.body);
    });
    std::reverse(last.base(), events.end());
    RandomCluster other(seed);
    other.profile = cluster.profile;
    other.now = cluster.now;
    for (const Event& event : events)
      ASSERT_TRUE(state::apply(other.state, other.agenda, event)) << "seed " << seed;
    ASSERT_EQ(render(scheduler::plan(other.input())), first) << "seed " << seed;
  }
}

TEST(SchedulerProperty, NothingMoreStartsRightAfterAPass) {
  for (std::uint32_t seed : seeds(kInstances)) {
    RandomCluster cluster = busy_cluster(seed);
    Plan first = cluster.pass();
    Plan second = scheduler::plan(cluster.input());
    ASSERT_TRUE(second.starts.empty()) << "seed " << seed << "\n"
                                       << render(first) << render(second);
  }
}

// A job in several partitions that starts in a later one gives its promise back only after others
// were judged by it; the next pass makes it good.
bool has_several_partitions(const RandomCluster& cluster) {
  return std::any_of(cluster.events.begin(), cluster.events.end(), [](const Event& event) {
    const auto* submitted = std::get_if<WorkloadSubmitted>(&event.body);
    return submitted && submitted->workload.partitions.size() > 1;
  });
}

TEST(SchedulerProperty, NoStartDelaysThePromiseToTheHead) {
  std::uint32_t promises = 0;
  for (std::uint32_t seed : seeds(kInstances)) {
    RandomCluster cluster = busy_cluster(seed);
    if (has_several_partitions(cluster)) continue;
    Plan plan = cluster.pass();
    if (plan.promises.empty()) continue;
    ++promises;
    Plan again = scheduler::plan(cluster.input());
    ASSERT_FALSE(again.promises.empty()) << "seed " << seed;
    ASSERT_EQ(again.promises[0].element, plan.promises[0].element) << "seed " << seed << "\n"
                                                                   << render(plan) << "--- then\n"
                                                                   << render(again);
    ASSERT_LE(again.promises[0].at, plan.promises[0].at) << "seed " << seed;
  }
  EXPECT_GE(promises, share(kInstances / 20));
}

// Takes away what a reason names; false if it names something that cannot be taken away here.
bool remove_blockers(RandomCluster& cluster, const scheduler::ElementRef& element,
                     const Wait& wait) {
  auto cancel = [&](std::uint32_t id) {
    const WorkloadEntry* entry = cluster.state.workloads.find(id);
    if (entry && entry->has_unstarted())
      cluster.apply(ElementsCancelled{WorkloadId(id), "", Outcome::kCancelled, std::nullopt});
  };
  for (const std::string& blocker : wait.blockers) {
    if (blocker == "running jobs on its nodes") {
      std::vector<std::uint32_t> all(cluster.agenda.active.begin(), cluster.agenda.active.end());
      for (std::uint32_t gang : all) cluster.end_gang(GangId(gang));
    } else if (blocker == "jobs ahead") {
      std::vector<std::uint32_t> all(cluster.agenda.pending.begin(), cluster.agenda.pending.end());
      for (std::uint32_t id : all)
        if (id != element.workload.value()) cancel(id);
    } else if (blocker.starts_with("reservation ")) {
      cluster.apply(ReservationRemoved{blocker.substr(12), std::nullopt});
    } else if (blocker.starts_with("node ")) {
      std::string name(split(blocker, ' ')[1]);
      for (NodeIndex i = 0; i < cluster.state.spec->nodes.size(); ++i) {
        if (cluster.state.spec->nodes[i].name != name) continue;
        NodeChanged event{name, *cluster.state.node(i)};
        event.state.drained = false;
        cluster.apply(event);
      }
    } else if (blocker.starts_with("job ")) {
      std::string_view rest = std::string_view(blocker).substr(4);
      auto id = parse_integer<std::uint32_t>(rest.substr(0, rest.find('_')));
      std::optional<std::uint32_t> index;
      if (rest.find('_') != std::string_view::npos)
        index = parse_integer<std::uint32_t>(rest.substr(rest.find('_') + 1));
      std::vector<std::uint32_t> all(cluster.agenda.active.begin(), cluster.agenda.active.end());
      bool running = false;
      for (std::uint32_t gang_id : all) {
        const Gang* gang = cluster.state.gangs.find(gang_id);
        if (gang->workload.value() != *id || gang->array_index != index) continue;
        running = true;
        cluster.end_gang(GangId(gang_id));
      }
      if (!running && WorkloadId(*id) != element.workload) cancel(*id);
    } else {
      return false;
    }
  }
  return true;
}

TEST(SchedulerProperty, ReasonsAreTrue) {
  std::uint32_t checked = 0;
  static const std::set<std::string, std::less<>> kAboutRoom{
      std::string(reason::kResources),
      std::string(reason::kPriority),
      std::string(reason::kNodesDown),
      std::string(reason::kRequestedNodesBusy),
      std::string(reason::kReservedForMaintenance),
      std::string(reason::kReservedForOthers)};
  for (std::uint32_t seed : seeds(kInstances)) {
    RandomCluster before = busy_cluster(seed);
    Plan plan = before.pass();
    for (const auto& waiting : plan.waiting) {
      if (!kAboutRoom.contains(waiting.wait->reason)) continue;
      RandomCluster cluster = before;
      if (!remove_blockers(cluster, waiting.element, *waiting.wait)) continue;
      ++checked;
      Plan after = scheduler::plan(cluster.input());
      bool starts = std::any_of(after.starts.begin(), after.starts.end(), [&](const auto& start) {
        return start.element == waiting.element;
      });
      ASSERT_TRUE(starts)
          << "seed " << seed << ": job " << waiting.element.workload.value() << " waits for ["
          << join(waiting.wait->blockers, "; ") << "]\n"
          << render(plan) << "--- without them\n"
          << render(after)
          << to_json(cluster.state.workloads.find(waiting.element.workload.value())->workload)
          << "\n"
          << to_json(*cluster.state.spec);
    }
  }
  EXPECT_GE(checked, share(kInstances / 20));
}

// With exact limits, no arrivals and unchanged order, the planned start of the head is its start.
TEST(SchedulerProperty, ThePromiseToTheHeadIsKept) {
  std::uint32_t kept = 0;
  for (std::uint32_t seed : seeds(kInstances)) {
    RandomCluster cluster = busy_cluster(seed);
    if (has_several_partitions(cluster)) continue;
    Plan plan = cluster.pass();
    if (plan.promises.empty()) continue;
    // Jobs of higher order that become eligible in between may come first.
    bool may_be_overtaken =
        plan.next_look < Instant::never() ||
        std::any_of(
            plan.waiting.begin(), plan.waiting.end(),
            [](const auto& waiting) { return waiting.wait->reason == reason::kArrayThrottle; });
    if (may_be_overtaken) continue;
    scheduler::Promise head = plan.promises[0];
    while (cluster.now < head.at) {
      Instant next = head.at;
      for (std::uint32_t id : cluster.agenda.active) {
        Instant end = cluster.state.gangs.find(id)->limit_end;
        if (end.is_set()) next = std::min(next, std::max(end, cluster.now));
      }
      cluster.now = next;
      std::vector<std::uint32_t> active(cluster.agenda.active.begin(), cluster.agenda.active.end());
      for (std::uint32_t id : active) {
        Instant end = cluster.state.gangs.find(id)->limit_end;
        if (end.is_set() && end <= cluster.now) cluster.end_gang(GangId(id));
      }
      plan = cluster.pass();
    }
    const WorkloadEntry* entry = cluster.state.workloads.find(head.element.workload.value());
    bool waits = head.element.array_index ? entry->unstarted.contains(*head.element.array_index)
                                          : entry->simple_unstarted;
    ASSERT_FALSE(waits) << "seed " << seed << "\n" << render(plan);
    ++kept;
  }
  EXPECT_GE(kept, share(kInstances / 20));
}

}  // namespace
}  // namespace tutti::property
