// Small random clusters with work running and waiting, for properties of the scheduler. All
// randomness comes from the seed; a failing test prints it, and TUTTI_PROPERTY_SEED=N repeats that
// instance alone. TUTTI_PROPERTY_PERCENT=10000 is the nightly size, a hundred times the usual one.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "model/event.h"
#include "scheduler/plan.h"
#include "state/apply.h"

namespace tutti::property {

// Seeds 1 to `usual`, or as many as the environment says (see above).
std::vector<std::uint32_t> seeds(std::uint32_t usual);
// How often something must have been seen so that a property was not empty, as the environment
// scales it; 0 when one instance is repeated.
std::uint32_t share(std::uint32_t of_the_usual);

class RandomCluster {
 public:
  explicit RandomCluster(std::uint32_t seed) : random_(seed) {}

  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(random_() % bound); }
  bool chance(std::uint32_t percent) { return below(100) < percent; }

  // Nodes and partitions; some nodes drained.
  void make_nodes(std::uint32_t most_nodes);
  // A request that a cluster of this size may or may not hold.
  RoleAsk make_ask();
  WorkloadId submit(Workload workload);
  // An administrator's reservation of some nodes, now or soon.
  void reserve();
  Workload make_workload();
  // Plans and carries out the starts.
  scheduler::Plan pass();
  void carry_out(const scheduler::Plan& plan);
  void end_gang(GangId gang);
  void apply(EventBody body);

  scheduler::PassInput input() const { return {state, agenda, now, profile}; }

  ClusterState state;
  Agenda agenda;
  Instant now = Instant::from_ms(1'000'000);
  std::string profile = "tutti";
  std::vector<Event> events;  // all that were applied

 private:
  std::mt19937 random_;
};

// The plan as text, every byte that matters.
std::string render(const scheduler::Plan& plan);

}  // namespace tutti::property
