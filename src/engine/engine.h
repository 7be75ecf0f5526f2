// Engine: where orders for a node go. What stands behind a node (an agent on the wire, nothing at
// all for a planned one) differs; what it is told and what it answers do not.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/agent_protocol.h"
#include "model/ids.h"

namespace tutti {

// The controller's end of a connection. Implemented by the wire; a fake in tests.
class Link {
 public:
  virtual ~Link() = default;
  // Queues one message in order; false when the connection is gone. Any thread.
  virtual bool send(std::string message) = 0;
  virtual void close(std::string reason) = 0;
};

struct AgentAnswer {
  NodeIndex node = 0;
  from_agent::Message message;
  std::string payload;
};

class Engine {
 public:
  virtual ~Engine() = default;
  // Queues the order; false when nobody listens there now: the answer will not come, and the order
  // is given again when the node reports back.
  virtual bool send(NodeIndex node, const to_agent::Message& order, std::string_view payload) = 0;
  // Whether somebody listens there now.
  virtual bool reachable(NodeIndex node) const = 0;
  // Answers that came without a connection of their own; the controller asks after each turn.
  virtual std::vector<AgentAnswer> take_answers() = 0;
};

}  // namespace tutti
