// AgentsEngine: nodes with an agent that has dialled the controller. It routes each order to the
// planned engine or to the agent's link, and knows which agents are connected.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/planned.h"
#include "model/cluster.h"

namespace tutti {

class AgentsEngine : public Engine {
 public:
  // Which nodes are planned; to be called again after a change of the configuration.
  // Links move along with their nodes' names; those of nodes that are gone are closed.
  void configure(const ClusterSpec& spec);

  // The agent of `node` is reached by this link from now on; returns the one it replaces.
  std::shared_ptr<Link> connect(NodeIndex node, std::shared_ptr<Link> link);
  // The link is gone. Returns the node it served, unless another link has replaced it.
  std::optional<NodeIndex> disconnect(const Link* link);
  std::optional<NodeIndex> node_of(const Link* link) const;
  std::size_t connected() const { return links_.size(); }

  bool send(NodeIndex node, const to_agent::Message& order, std::string_view payload) override;
  bool reachable(NodeIndex node) const override;
  std::vector<AgentAnswer> take_answers() override { return planned_.take_answers(); }
  // Answers that were taken in vain: they come first next time.
  void give_back(std::vector<AgentAnswer> answers) { planned_.give_back(std::move(answers)); }
  bool has_answers() const { return planned_.has_answers(); }

 private:
  std::map<NodeIndex, std::shared_ptr<Link>> links_;
  std::vector<std::string> names_;
  std::vector<bool> is_planned_;
  PlannedEngine planned_;
};

}  // namespace tutti
