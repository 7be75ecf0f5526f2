#include "engine/agents.h"

#include <utility>

namespace tutti {

void AgentsEngine::configure(const ClusterSpec& spec) {
  std::map<std::string, std::shared_ptr<Link>> by_name;
  for (auto& [node, link] : links_) by_name[names_.at(node)] = std::move(link);
  links_.clear();
  is_planned_.clear();
  names_.clear();
  for (const NodeSpec& node : spec.nodes) {
    if (auto it = by_name.find(node.name); it != by_name.end()) {
      links_[static_cast<NodeIndex>(names_.size())] = std::move(it->second);
      by_name.erase(it);
    }
    is_planned_.push_back(node.kind == NodeKind::kPlanned);
    names_.push_back(node.name);
  }
  for (auto& [name, link] : by_name) link->close("node " + name + " is no longer configured");
}

std::shared_ptr<Link> AgentsEngine::connect(NodeIndex node, std::shared_ptr<Link> link) {
  return std::exchange(links_[node], std::move(link));
}

std::optional<NodeIndex> AgentsEngine::disconnect(const Link* link) {
  std::optional<NodeIndex> node = node_of(link);
  if (node) links_.erase(*node);
  return node;
}

std::optional<NodeIndex> AgentsEngine::node_of(const Link* link) const {
  for (const auto& [node, known] : links_)
    if (known.get() == link) return node;
  return std::nullopt;
}

bool AgentsEngine::send(NodeIndex node, const to_agent::Message& order, std::string_view payload) {
  if (node < is_planned_.size() && is_planned_[node]) return planned_.send(node, order, payload);
  auto it = links_.find(node);
  return it != links_.end() && it->second->send(encode_frame(order, payload));
}

bool AgentsEngine::reachable(NodeIndex node) const {
  return (node < is_planned_.size() && is_planned_[node]) || links_.contains(node);
}

}  // namespace tutti
