// Published: the immutable picture readers get. Made after every commit; a reader that holds one
// never waits for the controller and never sees half a change.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model/cluster_state.h"
#include "model/views.h"
#include "scheduler/plan.h"

namespace tutti::controller {

struct PassResult {
  std::vector<scheduler::Waiting> waiting;    // sorted by workload, gang
  std::vector<scheduler::Promise> promises;
};

struct Published {
  ClusterState state;
  std::shared_ptr<const PassResult> pass = std::make_shared<PassResult>();
  DiagView diag;
};

}  // namespace tutti::controller
