// Nodes and partitions as v0.0.42 has them: sinfo --json. "sinfo" is that version's list; "nodes"
// is what older clients and the REST API's /nodes have.
#include <algorithm>

#include "base/text.h"
#include "frontend/slurm/json_output.h"
#include "frontend/slurm/sinfo_render.h"

namespace tutti::slurm {
namespace {

std::vector<std::string> state_list(const SlurmNodeState& state) {
  std::vector<std::string> out;
  std::string joined = node_state_complete(state);
  for (std::string_view piece : split(joined, '+')) out.emplace_back(piece);
  return out;
}

void range(JsonOut& out, std::string_view key, std::uint64_t value) {
  out.open(key);
  out.number("minimum", value);
  out.number("maximum", value);
  out.close();
}

void add_partition(JsonOut& out, const PartitionSpec& p) {
  out.open("partition");
  out.text("name", p.name);
  out.open("nodes");
  out.text("configured", fold_nodes(p.nodes));
  out.number("total", p.nodes.size());
  out.close();
  out.open("partition");
  out.list("state", {p.state == PartitionState::kUp     ? "UP"
                     : p.state == PartitionState::kDown ? "DOWN"
                                                        : "DRAIN"});
  out.close();
  out.open("maximums");
  if (p.max_time && !p.max_time->is_infinite())
    out.maybe("time", static_cast<std::uint64_t>(p.max_time->whole_seconds() / 60));
  else
    out.infinite("time");
  if (p.max_nodes == kNoLimit)
    out.infinite("nodes");
  else
    out.maybe("nodes", p.max_nodes);
  out.close();
  out.open("defaults");
  out.maybe("time",
            p.default_time
                ? std::optional(static_cast<std::uint64_t>(p.default_time->whole_seconds() / 60))
                : std::nullopt);
  out.close();
  out.open("priority");
  out.number("job_factor", p.priority_job_factor);
  out.number("tier", p.priority_tier);
  out.close();
  out.boolean("default", p.is_default);
  out.close();
}

void add_line(JsonOut& out, const NodeView& node, const PartitionSpec& p, const StateView& view,
              const UserNames& users) {
  SlurmNodeState s = node_state(node);
  bool other = s.drain || s.base == NodeBase::kDown || s.base == NodeBase::kUnknown;
  out.open("");
  out.open("node");
  out.list("state", state_list(s));
  out.close();
  out.open("nodes");
  out.number("allocated", !other && s.busy());
  out.number("idle", !other && !s.busy());
  out.number("other", other);
  out.number("total", 1);
  out.list("hostnames", {node.spec.name});
  out.list("addresses", {node.spec.address.empty() ? node.spec.name : node.spec.address});
  out.list("nodes", {node.spec.name});
  out.close();
  out.open("cpus");
  out.number("minimum", node.spec.cpus);
  out.number("maximum", node.spec.cpus);
  out.number("idle", other ? 0 : node.spec.cpus - std::min(node.cpus_allocated, node.spec.cpus));
  out.number("allocated", node.cpus_allocated);
  out.number("total", node.spec.cpus);
  out.close();
  range(out, "sockets", node.spec.sockets);
  range(out, "cores", node.spec.cores_per_socket);
  range(out, "threads", node.spec.threads_per_core);
  range(out, "disk", 0);
  out.open("memory");
  out.number("minimum", node.spec.memory_mib);
  out.number("maximum", node.spec.memory_mib);
  out.number("allocated", node.memory_mib_allocated);
  out.close();
  range(out, "weight", node.spec.weight);
  out.open("features");
  out.text("total", join(node.spec.features, ","));
  out.text("active", join(node.spec.features, ","));
  out.close();
  out.open("gres");
  out.text("total", node.spec.devices.empty() ? "" : node_gres(node.spec));
  out.text("used", node_gres_used(node));
  out.close();
  out.text("cluster", view.cluster);
  out.text("comment", "");
  out.text("extra", "");
  out.open("reason");
  out.text("description", node.state.reason);
  out.text("user", node.state.reason.empty() ? "" : user_name(users, node.state.reason_uid));
  out.time("time", node.state.reason_at);
  out.close();
  out.text("reservation", "");
  add_partition(out, p);
  out.close();
}

}  // namespace

void add_node(JsonOut& out, const NodeView& node, const StateView& view, const UserNames& users) {
  SlurmNodeState s = node_state(node);
  const NodeSpec& spec = node.spec;
  std::uint64_t used = std::min(node.cpus_allocated, spec.cpus);
  out.open("");
  out.text("name", spec.name);
  out.text("hostname", spec.name);
  out.text("address", spec.address.empty() ? spec.name : spec.address);
  out.list("state", state_list(s));
  out.number("cpus", spec.cpus);
  out.number("effective_cpus", spec.cpus);
  out.number("alloc_cpus", used);
  out.number("alloc_idle_cpus", spec.cpus - used);
  out.number("sockets", spec.sockets);
  out.number("boards", 1);
  out.number("cores", spec.cores_per_socket);
  out.number("threads", spec.threads_per_core);
  out.number("real_memory", spec.memory_mib);
  out.number("alloc_memory", node.memory_mib_allocated);
  out.maybe("free_mem", std::nullopt);
  out.number("temporary_disk", 0);
  out.number("weight", spec.weight);
  out.list("features", spec.features);
  out.list("active_features", spec.features);
  out.text("gres", spec.devices.empty() ? "" : node_gres(spec));
  out.text("gres_used", node_gres_used(node));
  out.text("gres_drained", "N/A");
  out.text("tres", node_tres(spec));
  out.text("tres_used", node_tres_used(node));
  std::vector<std::string> partitions;
  for (const PartitionSpec& p : view.partitions)
    if (std::find(p.nodes.begin(), p.nodes.end(), spec.name) != p.nodes.end())
      partitions.push_back(p.name);
  out.list("partitions", partitions);
  out.text("reason", node.state.reason);
  out.time("reason_changed_at", node.state.reason_at);
  out.text("reason_set_by_user",
           node.state.reason.empty() ? "" : user_name(users, node.state.reason_uid));
  out.time("boot_time", node.state.booted);
  out.time("slurmd_start_time", node.state.agent_started);
  out.time("last_busy", node.state.changed);
  out.text("operating_system", node.state.kernel);
  out.text("version", node.state.agent_version);
  out.text("comment", "");
  out.text("extra", "");
  out.close();
}

Output render_sinfo_json(const StateView& view, const SinfoOptions& o) {
  JsonOut out;
  std::vector<const NodeView*> nodes = selected_nodes(view, o);
  out.open("");
  out.open_list("sinfo");
  for (const PartitionSpec& p : view.partitions) {
    if (!o.partitions.empty() &&
        std::find(o.partitions.begin(), o.partitions.end(), p.name) == o.partitions.end())
      continue;
    for (const NodeView* node : nodes)
      if (std::find(p.nodes.begin(), p.nodes.end(), node->spec.name) != p.nodes.end())
        add_line(out, *node, p, view, o.users);
  }
  out.close_list();
  out.open_list("nodes");
  for (const NodeView* node : nodes) add_node(out, *node, view, o.users);
  out.close_list();
  add_meta(out, view.cluster, "sinfo");
  out.close();
  return {out.take(), {}, 0};
}

}  // namespace tutti::slurm
