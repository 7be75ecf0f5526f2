// Suppositions: the plan of a state that somebody changed in thought. Copies are cheap (the tables
// share their records), the production planner decides, nothing is kept.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/plan.h"

namespace tutti::scheduler {

struct Supposition {
  ClusterState state;
  Agenda agenda;
  Instant now;
  std::string profile = "tutti";
  std::uint32_t depth = 1000;  // of planned starts: more than a pass has time for

  // Another version of the workload.
  void change(WorkloadId workload, const std::function<void(Workload&)>& edit);
  // One that has not been submitted; gets the next number.
  WorkloadId add(Workload workload);
};

// What a plan has for an element.
struct Expected {
  Instant start;  // the time of the question if it starts at once; unset = not planned
  std::vector<NodeIndex> nodes;
  std::shared_ptr<const Wait> wait;  // if it does not start at once
};
using ElementKey = std::pair<WorkloadId, GangId>;  // no gang = the next unstarted element
std::map<ElementKey, Expected> expected_starts(const Supposition& supposed);

// A change of a request that starts it at once, or sooner than it is planned.
struct Improvement {
  std::string change;   // "with a time limit of 3600 s"
  std::string command;  // of its owner, if there is one: "scontrol update jobid=12 timelimit=60"
  Expected expected;
  std::function<void(Workload&)> edit;
};

// The cheapest improvements of each kind (shorter limit, fewer GPUs, nodes or CPUs, another GPU
// type, partition or queue), each of them planned and found true. At most `most`, the earliest
// start first. Cost: some twenty passes.
std::vector<Improvement> improvements(const Supposition& supposed, const ElementKey& element,
                                      std::size_t most = 6);

}  // namespace tutti::scheduler
