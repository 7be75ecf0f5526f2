// tutti doctor: what this installation has and lacks.
#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>

#include "agent/cgroups.h"
#include "agent/devices.h"
#include "agent/namespaces.h"
#include "cli/api_client.h"
#include "cli/slurm_context.h"
#include "cli/tutti_commands.h"
#include "cli/version.h"
#include "model/views.h"

namespace tutti::cli {

namespace {

struct Finding {
  std::string topic, state, text;  // state: "ok", "note", "bad"
};
void describe(auto& a, Finding& x) {
  a("topic", x.topic);
  a("state", x.state);
  a("text", x.text);
}

std::uint64_t size_below(const std::string& path) {
  std::uint64_t total = 0;
  std::error_code error;
  for (auto it = std::filesystem::recursive_directory_iterator(path, std::filesystem::directory_options::skip_permission_denied, error);
       !error && it != std::filesystem::recursive_directory_iterator(); it.increment(error))
    if (it->is_regular_file(error)) total += it->file_size(error);
  return total;
}

void look_at_machine(std::vector<Finding>& findings) {
  agent::Inventory inventory = agent::take_inventory();
  findings.push_back({"machine", "ok", fmt::format("{} CPUs, {} MiB memory, {} GPUs found", inventory.cpus, inventory.memory_mib, inventory.gpus.size())});
  for (const auto& gpu : inventory.gpus) findings.push_back({"gpu", "ok", fmt::format("{} {} {} MiB", gpu.file, gpu.type, gpu.memory_mib)});
  for (const std::string& m : inventory.missing) findings.push_back({"machine", "note", m});
  agent::NamespaceSupport namespaces = agent::probe_namespaces();
  findings.push_back({"namespaces", namespaces.all() ? "ok" : "note", namespaces.all() ? (namespaces.through_user_namespace ? "virtual nodes work, inside a user namespace" : "virtual nodes work") : "no virtual nodes on this machine"});
  for (const std::string& m : namespaces.missing) findings.push_back({"namespaces", "note", m});
}

void look_at_cluster(const std::string& dir, std::vector<Finding>& findings) {
  auto file = read_cluster_file(dir);
  if (!file) {
    findings.push_back({"cluster", "note", file.error().message});
    return;
  }
  findings.push_back({"state", "ok", fmt::format("{} (format {}), {} bytes of logs", dir, file->format, size_below(dir + "/log"))});
  const auto processes = read_pids(dir);
  for (const ClusterProcess& p : processes) findings.push_back({"process", "ok", fmt::format("{} is pid {}", p.name, p.process.pid)});
  if (processes.empty()) {
    findings.push_back({"cluster", "note", "it is down: `tutti up` starts it"});
    return;
  }
  if (!all_running(dir, *file)) findings.push_back({"process", "bad", "controller or agents are missing: `tutti up` starts what is missing"});
  ApiClient api(dir);
  api.patience = Duration();
  auto diag = api.get_as<DiagView>("/v1/diag");
  if (!diag) {
    findings.push_back({"controller", "bad", diag.error().message});
    return;
  }
  findings.push_back({"controller", "ok", fmt::format("answers; {} agents connected, {} jobs pending, {} running", diag->agents_connected, diag->jobs_pending, diag->jobs_running)});
  findings.push_back({"journal", "ok", fmt::format("{} bytes, {} in the log, {} events since the last snapshot", diag->journal_bytes, diag->wal_bytes, diag->events_since_snapshot)});
  auto view = api.get_as<StateView>("/v1/state?with=nodes");
  if (!view) return;
  for (const NodeView& node : view->nodes) {
    if (node.spec.kind == NodeKind::kPlanned) continue;
    bool good = node.state.status == NodeStatus::kUp && !node.state.drained && !node.state.down;
    findings.push_back({"node", good ? "ok" : "bad", fmt::format("{} is {}{}{}", node.spec.name, enum_name(node.state.status), node.state.drained ? ", drained" : "", node.state.reason.empty() ? "" : ": " + node.state.reason)});
    if (!node.state.agent_version.empty() && node.state.agent_version != kVersion)
      findings.push_back({"node", "note", fmt::format("{} runs agent {}, this is {}", node.spec.name, node.state.agent_version, kVersion)});
  }
}

// What this user may do is not what a cluster of root does.
void look_at_cgroups(const std::string& dir, std::vector<Finding>& findings) {
  auto file = read_cluster_file(dir);
  if (geteuid() != 0 && file && !file->run_as.empty()) {
    findings.push_back({"cgroups", "note", "the cluster's own are root's to look at: run `tutti doctor` as root"});
    return;
  }
  agent::CgroupLayout cgroups = agent::probe_cgroups();
  std::string version = cgroups.version == agent::CgroupVersion::kV2 ? "v2" : cgroups.version == agent::CgroupVersion::kV1 ? "v1" : "none: jobs are not isolated";
  findings.push_back({"cgroups", cgroups.version == agent::CgroupVersion::kNone ? "note" : "ok", version});
  for (const std::string& m : cgroups.missing) findings.push_back({"cgroups", "note", "missing: " + m});
}

}  // namespace

int run_doctor(const DoctorOptions& options) {
  std::vector<Finding> findings;
  findings.push_back({"version", "ok", fmt::format("tutti {}, command line of Slurm {}", kVersion, kSlurmVersion)});
  look_at_machine(findings);
  look_at_cgroups(options.state_dir, findings);
  look_at_cluster(options.state_dir, findings);
  bool bad = false;
  for (const Finding& f : findings) bad |= f.state == "bad";
  if (options.json) {
    print_out(to_json(findings) + "\n");
    return bad ? 1 : 0;
  }
  for (const Finding& f : findings) print_out(fmt::format("{:<5} {:<11} {}\n", f.state, f.topic, f.text));
  return bad ? 1 : 0;
}

}  // namespace tutti::cli
