// RollCalls: who has answered in the roll calls under way, and what the nodes of running steps have
// reported. Bookkeeping only, never persisted: after a restart the gangs that are `preparing` are
// called again, and agents report the rest.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "model/agent_protocol.h"
#include "model/gang.h"
#include "model/launch.h"

namespace tutti::controller {

struct GangCall {
  Epoch epoch;
  std::set<NodeIndex> missing;  // not ready yet
  Instant deadline;
};

struct StepRun {
  StepKey key;
  bool running = false;                // "go" was said
  std::vector<NodeIndex> nodes;        // of the step, in its order
  std::vector<std::string> node_names;
  std::vector<StepOrder> orders;       // per node; kept until every node is ready
  std::set<NodeIndex> missing;         // not ready yet
  std::set<NodeIndex> unfinished;      // have not reported the end yet
  Instant deadline;                    // of the roll call
  Instant kill_at;                     // when an end_step is repeated without grace
  ExitStatus worst;
  Usage usage;
  bool out_of_memory = false, never_ran = false, ending = false;
  Outcome forced = Outcome::kNone;     // cancelled, timed out, refused: wins over the exit status
  std::optional<std::uint32_t> by_uid;
  std::string why;
  std::vector<std::uint64_t> output_sizes;  // per node, once it has ended
};

struct RollCalls {
  std::map<GangId, GangCall> gangs;
  std::map<StepKey, StepRun> steps;

  StepRun* find(const StepKey& key) {
    auto it = steps.find(key);
    return it == steps.end() ? nullptr : &it->second;
  }
  // The earliest deadline of all roll calls.
  Instant next_deadline() const {
    Instant next = Instant::never();
    for (const auto& [gang, call] : gangs) next = std::min(next, call.deadline);
    for (const auto& [key, run] : steps)
      if (!run.running) next = std::min(next, run.deadline);
    return next;
  }
};

// The worse of two ends: a signal counts as 128 + its number.
inline ExitStatus worse(const ExitStatus& a, const ExitStatus& b) {
  auto rank = [](const ExitStatus& s) { return s.signal ? 128 + s.signal : s.code; };
  return rank(a) >= rank(b) ? a : b;
}

}  // namespace tutti::controller
