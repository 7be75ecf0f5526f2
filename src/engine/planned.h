// PlannedEngine: nodes that exist only in the plan. Orders are answered at once as a faultless agent
// would; nothing runs, so a gang ends only when it is told to.
#pragma once

#include <vector>

#include "engine/engine.h"

namespace tutti {

class PlannedEngine : public Engine {
 public:
  bool send(NodeIndex node, const to_agent::Message& order, std::string_view payload) override;
  bool reachable(NodeIndex) const override { return true; }
  std::vector<AgentAnswer> take_answers() override;
  void give_back(std::vector<AgentAnswer> answers);
  bool has_answers() const { return !answers_.empty(); }

 private:
  std::vector<AgentAnswer> answers_;
};

}  // namespace tutti
