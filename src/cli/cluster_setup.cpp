#include "cli/cluster_setup.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <set>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "agent/device_nodes.h"
#include "agent/namespaces.h"
#include "agent/process.h"
#include "agent/virtual_cluster.h"
#include "base/text.h"
#include "cli/api_client.h"
#include "model/views.h"
#include "wire/token.h"

namespace tutti::cli {

namespace {

using Clock = std::chrono::steady_clock;

Status make_dir(const std::string& path, mode_t mode, std::optional<std::uint32_t> uid, std::uint32_t gid) {
  if (mkdir(path.c_str(), mode) != 0 && errno != EEXIST) return fail_errno(errno, path);
  if (uid && chown(path.c_str(), *uid, gid) != 0) return fail_errno(errno, path);
  if (chmod(path.c_str(), mode) != 0) return fail_errno(errno, path);
  return {};
}

Status make_parents(const std::string& path) {
  for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) {
    std::string part = path.substr(0, at);
    if (mkdir(part.c_str(), 0755) != 0 && errno != EEXIST) return fail_errno(errno, part);
  }
  return {};
}

std::vector<std::string> plain_environment() {
  std::vector<std::string> environment;
  for (char** e = environ; *e; ++e) {
    std::string_view entry = *e;
    for (std::string_view keep : {"PATH=", "HOME=", "LANG=", "LC_", "TZ=", "TUTTI_", "USER=", "ASAN_", "UBSAN_", "TSAN_"})
      if (entry.starts_with(keep)) environment.emplace_back(entry);
  }
  return environment;
}

Result<pid_t> spawn_daemon(const std::string& dir, const std::vector<std::string>& arguments, const std::string& log) {
  agent::SpawnOptions options;
  options.program = own_executable();
  options.arguments = {"tutti"};
  options.arguments.insert(options.arguments.end(), arguments.begin(), arguments.end());
  options.environment = plain_environment();
  options.directory = "/";
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  int out = open(fmt::format("{}/log/{}.out", dir, log).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (out < 0) out = open("/dev/null", O_WRONLY | O_CLOEXEC);
  options.descriptors = {{null, 0}, {out, 1}, {out, 2}};
  auto spawned = agent::spawn(options);
  close(null);
  close(out);
  if (!spawned) return tl::unexpected<Error>(spawned.error());
  return spawned->pid;
}

// The last lines a daemon printed before it died, for the error message.
std::string last_words(const std::string& dir, const std::string& log) {
  auto text = agent::read_small_file(fmt::format("{}/log/{}.out", dir, log));
  if (!text || text->empty()) return "";
  return ": " + text->substr(text->size() > 600 ? text->size() - 600 : 0);
}

bool reaped(pid_t pid) { return waitpid(pid, nullptr, WNOHANG) == pid; }

Status create_user(const std::string& name) {
  if (getpwnam(name.c_str())) return {};
  agent::SpawnOptions options;
  options.program = "/usr/sbin/useradd";
  options.arguments = {"useradd", "--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin", name};
  options.environment = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
  auto spawned = agent::spawn(options);
  if (!spawned) return fail(spawned.error().code, "making user tutti: " + spawned.error().message);
  int status = 0;
  waitpid(spawned->pid, &status, 0);
  if (!getpwnam(name.c_str())) return fail(ErrorCode::kDenied, fmt::format("useradd could not make user {}", name));
  return {};
}

}  // namespace

Status make_state_dir(const std::string& dir, ClusterFile& file) {
  if (Status made = make_parents(dir); !made) return made;
  bool root = geteuid() == 0;
  std::optional<std::uint32_t> owner;
  std::uint32_t group = 0;
  if (root) {
    file.run_as = "tutti";
    file.serves_all_users = true;
    if (Status user = create_user(file.run_as); !user) return user;
    const passwd* entry = getpwnam(file.run_as.c_str());
    owner = entry->pw_uid;
    group = entry->pw_gid;
  }
  if (file.cluster_id.empty()) file.cluster_id = wire::make_token().substr(0, 12);
  std::optional<std::uint32_t> self = root ? std::optional<std::uint32_t>(0) : std::nullopt;
  struct Wanted { std::string path; mode_t mode; std::optional<std::uint32_t> uid; std::uint32_t gid; };
  for (const Wanted& w : {Wanted{dir, 0755, self, 0}, Wanted{dir + "/journal", 0700, owner, group},
                          Wanted{dir + "/log", 0755, owner, group}, Wanted{dir + "/nodes", 0755, self, 0},
                          Wanted{dir + "/holders", 0755, self, 0}})
    if (Status made = make_dir(w.path, w.mode, w.uid, w.gid); !made) return made;
  for (const char* key : {"/agent.key", "/token"})
    if (access((dir + key).c_str(), F_OK) != 0)
      if (Status written = wire::write_key_file(dir + key, wire::make_token()); !written) return written;
  return write_cluster_file(dir, file);
}

Status start_holders(const std::string& dir, const ClusterFile& file, std::vector<std::string>& notes) {
  if (!is_virtual(file.spec)) return {};
  std::vector<std::string> command{own_executable(), "node-holder"};
  auto known = read_holder(dir, "switch");
  bool fresh = !known || !agent::is_alive(known->process);
  agent::HolderHandle switch_holder;
  if (fresh) {
    auto started = agent::start_switch({command, file.user_namespace});
    if (!started) return tl::unexpected<Error>(started.error());
    switch_holder = *started;
    if (Status written = write_holder(dir, "switch", switch_holder); !written) return written;
    (void)set_pid(dir, "holder.switch", switch_holder.process.pid);
  } else {
    switch_holder = *known;
  }
  std::vector<std::string> names;
  for (const tutti::NodeSpec& node : file.spec.nodes)
    if (node.kind != NodeKind::kPlanned) names.push_back(node.name);
  std::string hosts = dir + "/nodes/hosts";
  if (Status written = replace_file(hosts, agent::hosts_text(names), 0644); !written) return written;
  auto major = agent::pick_gpu_major();
  std::vector<agent::VirtualNodeSpec> wanted;
  std::uint32_t index = 0, minor = 0;
  std::set<std::string> missing(switch_holder.missing.begin(), switch_holder.missing.end());
  for (const tutti::NodeSpec& node : file.spec.nodes) {
    if (node.kind == NodeKind::kPlanned) continue;
    std::uint32_t first_minor = minor;
    minor += static_cast<std::uint32_t>(node.devices.size());
    std::uint32_t this_index = index++;
    if (node.kind != NodeKind::kVirtual) continue;
    auto holder = read_holder(dir, node.name);
    if (!fresh && holder && agent::is_alive(holder->process)) continue;
    agent::VirtualNodeSpec spec;
    spec.command = command;
    spec.switch_holder = switch_holder.process;
    spec.name = node.name;
    spec.index = this_index;
    spec.directory = dir + "/nodes/" + node.name;
    spec.hosts_path = hosts;
    if (Status made = make_dir(spec.directory, 0755, std::nullopt, 0); !made) return made;
    for (std::size_t d = 0; d < node.devices.size(); ++d) {
      if (node.devices[d].file.empty()) continue;
      agent::NodeDevice device;
      device.path = node.devices[d].file;
      device.real = access(device.path.c_str(), F_OK) == 0;
      device.major = major;
      device.minor = first_minor + static_cast<std::uint32_t>(d);
      spec.devices.push_back(std::move(device));
    }
    wanted.push_back(std::move(spec));
  }
  if (wanted.empty()) return {};
  auto started = agent::start_nodes(wanted);
  if (!started) return tl::unexpected<Error>(started.error());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (Status written = write_holder(dir, wanted[i].name, (*started)[i]); !written) return written;
    (void)set_pid(dir, "holder." + wanted[i].name, (*started)[i].process.pid);
    missing.insert((*started)[i].missing.begin(), (*started)[i].missing.end());
  }
  notes.insert(notes.end(), missing.begin(), missing.end());
  return {};
}

bool all_running(const std::string& dir, const ClusterFile& file) {
  std::set<std::string> running;
  for (const auto& [name, pid] : read_pids(dir)) running.insert(name);
  if (!running.contains("controller")) return false;
  for (const tutti::NodeSpec& node : file.spec.nodes)
    if (node.kind != NodeKind::kPlanned && !running.contains("agent." + node.name)) return false;
  return true;
}

namespace {

Status wait_for_controller(ApiClient& api, const std::string& dir, pid_t pid) {
  api.patience = Duration();
  auto give_up = Clock::now() + std::chrono::seconds(30);
  while (true) {
    auto ping = api.get("/v1/ping");
    if (ping) return {};
    if (pid > 0 && reaped(pid)) return fail(ErrorCode::kUnavailable, "the controller did not start" + last_words(dir, "controller"));
    if (Clock::now() > give_up) return fail(ErrorCode::kUnavailable, "the controller does not answer: " + ping.error().message);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

Status wait_for_nodes(ApiClient& api, const std::string& dir, const std::vector<std::pair<std::string, pid_t>>& agents) {
  auto give_up = Clock::now() + std::chrono::seconds(60);
  while (true) {
    auto view = api.get_as<StateView>("/v1/state?with=nodes");
    if (!view) return tl::unexpected<Error>(view.error());
    std::string waiting;
    for (const NodeView& node : view->nodes)
      if (node.spec.kind != NodeKind::kPlanned && node.state.status != NodeStatus::kUp) waiting = node.spec.name;
    if (waiting.empty()) return {};
    for (const auto& [name, pid] : agents)
      if (reaped(pid)) return fail(ErrorCode::kUnavailable, fmt::format("the agent of {} did not start{}", name, last_words(dir, "agent." + name)));
    if (Clock::now() > give_up) return fail(ErrorCode::kUnavailable, fmt::format("node {} did not come up in 60 s: see {}/log/agent.{}.log", waiting, dir, waiting));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace

Status start_daemons(const std::string& dir, const ClusterFile& file) {
  pid_t controller = 0;
  if (!pid_of(dir, "controller")) {
    auto spawned = spawn_daemon(dir, {"controller", "--state", dir}, "controller");
    if (!spawned) return tl::unexpected<Error>(spawned.error());
    controller = *spawned;
  }
  ApiClient api(dir);
  if (Status ready = wait_for_controller(api, dir, controller); !ready) return ready;
  std::vector<std::pair<std::string, pid_t>> agents;
  for (const tutti::NodeSpec& node : file.spec.nodes) {
    if (node.kind == NodeKind::kPlanned || pid_of(dir, "agent." + node.name)) continue;
    auto spawned = spawn_daemon(dir, {"agent", "--state", dir, "--node", node.name}, "agent." + node.name);
    if (!spawned) return tl::unexpected<Error>(spawned.error());
    agents.push_back({node.name, *spawned});
  }
  return wait_for_nodes(api, dir, agents);
}

Status stop_daemons(const std::string& dir) {
  auto stop_all = [&](std::string_view prefix) -> Status {
    std::vector<std::pair<std::string, agent::ProcessRef>> stopping;
    for (const auto& [name, pid] : read_pids(dir)) {
      if (!name.starts_with(prefix)) continue;
      auto process = agent::process_ref(pid);
      if (process) stopping.push_back({name, *process});
      kill(pid, SIGTERM);
    }
    for (const auto& [name, process] : stopping) {
      Status stopped = agent::stop_process(process, std::chrono::seconds(10));
      if (!stopped) return stopped;
      (void)set_pid(dir, name, 0);
    }
    return {};
  };
  if (Status stopped = stop_all("agent."); !stopped) return stopped;
  if (Status stopped = stop_all("controller"); !stopped) return stopped;
  std::vector<agent::ProcessRef> holders;
  std::vector<std::string> names;
  for (const auto& [name, pid] : read_pids(dir)) {
    if (!name.starts_with("holder.")) continue;
    names.push_back(name);
    auto holder = read_holder(dir, name.substr(7));
    if (holder && agent::is_alive(holder->process)) holders.push_back(holder->process);
  }
  if (Status stopped = agent::stop_holders(holders); !stopped) return stopped;
  for (const std::string& name : names) {
    (void)set_pid(dir, name, 0);
    unlink(fmt::format("{}/holders/{}.json", dir, name.substr(7)).c_str());
  }
  unlink((dir + "/api.sock").c_str());
  return {};
}

}  // namespace tutti::cli
