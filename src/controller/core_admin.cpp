// What operators do to nodes, partitions and the configuration.
#include <algorithm>
#include <fmt/format.h>

#include "base/hostlist.h"
#include "controller/core.h"
#include "model/reasons.h"

namespace tutti::controller {

namespace {
Error not_operator(const std::string& what) {
  return {ErrorCode::kDenied, std::string(reason::kNotOperator), fmt::format("only an operator may {}", what), {}};
}
}  // namespace

void Core::on_node_request(ApiCall& call) {
  auto request = from_json<NodeRequest>(std::string_view(call.body));
  if (!request) return refuse(call, Error{ErrorCode::kInvalid, std::string(reason::kMalformed), request.error().message, {}});
  if (!call.caller.is_operator) return refuse(call, not_operator("change nodes"));
  auto names = expand_hostlist(request->nodes);
  if (!names) return refuse(call, names.error());
  const std::string& action = request->action;
  if (action != "drain" && action != "resume" && action != "undrain" && action != "down")
    return refuse(call, Error{ErrorCode::kInvalid, std::string(reason::kMalformed), fmt::format("unknown node action \"{}\": expected drain, resume, undrain or down", action), {}});
  if ((action == "drain" || action == "down") && request->reason.empty())
    return refuse(call, Error{ErrorCode::kInvalid, "reason_missing", "a reason is needed to drain a node or take it down", {}});
  ActionReply reply;
  for (const std::string& name : *names) {
    auto index = node_index(name);
    if (!index) {
      reply.results.push_back({name, ApiError{ErrorCode::kNotFound, std::string(reason::kUnknownNode), fmt::format("node {} is not configured", name)}});
      continue;
    }
    NodeState next = *state_.node(*index);
    if (action == "resume" || action == "undrain") {
      next.drained = next.down = false;
      next.reason.clear();
    } else {
      (action == "drain" ? next.drained : next.down) = true;
      next.reason = request->reason;
      next.reason_uid = call.caller.uid;
      next.reason_at = now_;
    }
    next.changed = now_;
    record(NodeChanged{name, std::move(next)});
    if (action == "down") fail_gangs_on(*index, "the node was taken down: " + request->reason);
    reply.results.push_back({name, {}});
  }
  answer(call, {200, to_json(reply)});
}

void Core::fail_gangs_on(NodeIndex node, const std::string& why) {
  std::vector<GangId> hit;
  for (std::uint32_t id : agenda_.active) {
    const Gang* g = state_.gangs.find(id);
    if (holds(*g, node))
      hit.push_back(g->id);
  }
  for (GangId id : hit) node_failed(id, node, why);
}

void Core::on_partition_request(ApiCall& call) {
  auto request = from_json<PartitionRequest>(std::string_view(call.body));
  if (!request) return refuse(call, Error{ErrorCode::kInvalid, std::string(reason::kMalformed), request.error().message, {}});
  if (!call.caller.is_operator) return refuse(call, not_operator("change partitions"));
  const auto& partitions = state_.spec->partitions;
  bool known = std::any_of(partitions.begin(), partitions.end(), [&](const PartitionSpec& p) { return p.name == request->partition; });
  if (!known) return refuse(call, Error{ErrorCode::kNotFound, std::string(reason::kInvalidPartition), fmt::format("partition {} is not configured", request->partition), {}});
  record(PartitionChanged{request->partition, request->state});
  answer(call, {200, to_json(ActionReply{{{request->partition, {}}}})});
}

void Core::on_shutdown(ApiCall& call) {
  if (!call.caller.is_operator) return refuse(call, not_operator("stop the cluster"));
  auto document = JsonDocument::parse(call.body.empty() ? "{}" : call.body);
  bool requeue = !document || document->root().find("requeue").as_bool(true);
  shutting_down_ = true;
  end_all(requeue);
  answer(call, {200, to_json(ActionReply{})});
}

Status Core::configure(const ClusterSpec& spec) {
  if (to_json(spec) == to_json(*state_.spec)) return {};
  std::set<std::string> names;
  for (const NodeSpec& node : spec.nodes) names.insert(node.name);
  for (std::uint32_t id : agenda_.active)
    for (const Slot& slot : state_.gangs.find(id)->slots)
      if (!names.contains(state_.spec->nodes[slot.node].name))
        return fail(ErrorCode::kConflict, fmt::format("node {} cannot be removed: job {} holds it", state_.spec->nodes[slot.node].name, id));
  // What planned nodes answered names them by their old places.
  take_planned_answers();
  auto old = state_.spec;
  record(ClusterConfigured{spec});
  move_books(*old, spec);
  after_commit([this, spec] { engine_.configure(spec); });
  return {};
}

// Everything here that names nodes by their place.
void Core::move_books(const ClusterSpec& from, const ClusterSpec& to) {
  node_by_name_.clear();
  for (NodeIndex i = 0; i < to.nodes.size(); ++i) node_by_name_[to.nodes[i].name] = i;
  std::map<NodeIndex, NodeIndex> places;
  for (NodeIndex i = 0; i < from.nodes.size(); ++i)
    if (auto place = node_index(from.nodes[i].name)) places[i] = *place;
  auto moved = [&](const std::set<NodeIndex>& nodes) {
    std::set<NodeIndex> result;
    for (NodeIndex node : nodes)
      if (auto it = places.find(node); it != places.end()) result.insert(it->second);
    return result;
  };
  std::vector<GangId> gangs;
  for (const auto& [id, call] : calls_.gangs()) gangs.push_back(id);
  for (GangId id : gangs) {
    GangCall& call = *calls_.edit(id);
    call.missing = moved(call.missing);
  }
  std::vector<StepKey> steps;
  for (const auto& [key, run] : calls_.steps()) steps.push_back(key);
  for (const StepKey& key : steps) {
    StepRun& run = *calls_.edit(key);
    run.missing = moved(run.missing);
    run.unfinished = moved(run.unfinished);
    for (NodeIndex& node : run.nodes)
      if (auto it = places.find(node); it != places.end()) node = it->second;
  }
  std::map<NodeIndex, Instant> unknown;
  for (const auto& [node, since] : unknown_since_)
    if (auto it = places.find(node); it != places.end()) unknown[it->second] = since;
  unknown_since_ = std::move(unknown);
}

void Core::on_configure(ApiCall& call) {
  auto request = from_json<ConfigureRequest>(std::string_view(call.body));
  if (!request) return refuse(call, Error{ErrorCode::kInvalid, std::string(reason::kMalformed), request.error().message, {}});
  if (!call.caller.is_operator) return refuse(call, not_operator("change the configuration"));
  Status done = configure(request->spec);
  if (!done) return refuse(call, done.error());
  answer(call, {200, to_json(ActionReply{})});
}

}  // namespace tutti::controller
