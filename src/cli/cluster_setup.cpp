#include "cli/cluster_setup.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <netinet/in.h>
#include <pwd.h>
#include <set>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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

// In place: nodes have this very file mounted.
Status rewrite_file(const std::string& path, const std::string& text) {
  agent::Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!file || pwrite(file.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()) ||
      ftruncate(file.get(), static_cast<off_t>(text.size())) != 0)
    return fail_errno(errno, path);
  return {};
}

bool has_address(std::uint32_t ipv4) {
  agent::Descriptor probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(ipv4);
  return probe && bind(probe.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
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
  int out = open(fmt::format("{}/log/{}.out", dir, log).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
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

Status make_top_dir(const std::string& dir) {
  if (Status made = make_parents(dir); !made) return made;
  std::optional<std::uint32_t> self = geteuid() == 0 ? std::optional<std::uint32_t>(0) : std::nullopt;
  return make_dir(dir, 0755, self, 0);
}

Status make_state_dir(const std::string& dir, ClusterFile& file) {
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

Status allow_virtual_nodes(ClusterFile& file) {
  agent::NamespaceSupport support = agent::probe_namespaces();
  file.user_namespace = support.through_user_namespace;
  if (support.all()) return {};
  std::string why;
  for (const std::string& m : support.missing) why += "\n  " + m;
  return fail(ErrorCode::kDenied, "virtual nodes need namespaces, which this machine refuses:" + why);
}

namespace {

// Ends the process of this name, or with "agent." all agents, at once.
Status stop_all(const std::string& dir, std::string_view which) {
  std::vector<ClusterProcess> stopping;
  for (const ClusterProcess& p : read_pids(dir)) {
    if (p.name != which && !(which.ends_with('.') && p.name.starts_with(which))) continue;
    stopping.push_back(p);
    if (auto fd = agent::open_process(p.process)) syscall(SYS_pidfd_send_signal, fd->get(), SIGTERM, nullptr, 0);
  }
  for (const ClusterProcess& p : stopping) {
    if (Status stopped = agent::stop_process(p.process, std::chrono::seconds(10)); !stopped) return stopped;
    (void)clear_pid(dir, p.name, p.process.pid);
  }
  return {};
}

// A place for each virtual node, the old ones kept. Real nodes have one too: they are in hosts.
void give_places(ClusterFile& file) {
  std::set<std::string> wanted, placed;
  for (const tutti::NodeSpec& node : file.spec.nodes)
    if (node.kind != NodeKind::kPlanned) wanted.insert(node.name);
  for (std::string& place : file.places) {
    if (!wanted.contains(place)) place.clear();
    placed.insert(place);
  }
  std::size_t at = 0;
  for (const tutti::NodeSpec& node : file.spec.nodes) {
    if (node.kind == NodeKind::kPlanned || placed.contains(node.name)) continue;
    while (at < file.places.size() && !file.places[at].empty()) ++at;
    if (at == file.places.size()) file.places.emplace_back();
    file.places[at] = node.name;
  }
}

// Device numbers of declared GPUs are unique over the cluster.
constexpr std::uint32_t kMinorsPerNode = 64;

Result<agent::VirtualNodeSpec> holder_spec(const std::string& dir, const tutti::NodeSpec& node, std::uint32_t place) {
  agent::VirtualNodeSpec spec;
  spec.name = node.name;
  spec.index = place;
  spec.directory = dir + "/nodes/" + node.name;
  if (Status made = make_dir(spec.directory, 0755, std::nullopt, 0); !made) return tl::unexpected<Error>(made.error());
  if (node.devices.size() > kMinorsPerNode)
    return invalid(fmt::format("node {} has {} devices: a virtual node has at most {}", node.name, node.devices.size(), kMinorsPerNode));
  static const std::uint32_t major = agent::pick_gpu_major();
  for (std::size_t d = 0; d < node.devices.size(); ++d) {
    if (node.devices[d].file.empty()) continue;
    agent::NodeDevice device;
    device.path = node.devices[d].file;
    device.real = access(device.path.c_str(), F_OK) == 0;
    device.major = major;
    device.minor = place * kMinorsPerNode + static_cast<std::uint32_t>(d);
    spec.devices.push_back(std::move(device));
  }
  return spec;
}

// The switch that is alive, or a new one. In the network of a dead one nobody is reached: its agents
// and the controller, which listens there, are ended; steps go on and are adopted.
Result<agent::HolderHandle> have_switch(const std::string& dir, const ClusterFile& file, const std::vector<std::string>& command, bool& fresh) {
  auto known = read_holder(dir, "switch");
  fresh = !known || !agent::is_alive(known->process);
  if (!fresh) return known;
  for (std::string_view prefix : {"agent.", "controller", "holder."})
    if (Status stopped = stop_all(dir, prefix); !stopped) return tl::unexpected<Error>(stopped.error());
  auto started = agent::start_switch({command, file.user_namespace});
  if (!started) return started;
  if (Status written = write_holder(dir, "switch", *started); !written) return tl::unexpected<Error>(written.error());
  (void)set_pid(dir, "holder.switch", started->process.pid);
  return started;
}

}  // namespace

Status start_holders(const std::string& dir, ClusterFile& file, std::vector<std::string>& notes) {
  if (!is_virtual(file.spec)) return {};
  std::vector<std::string> command{own_executable(), "node-holder"};
  bool fresh = false;
  auto switch_holder = have_switch(dir, file, command, fresh);
  if (!switch_holder) return tl::unexpected<Error>(switch_holder.error());
  std::vector<std::string> before = file.places;
  give_places(file);
  if (file.places != before)
    if (Status written = write_cluster_file(dir, file); !written) return written;
  std::string hosts = dir + "/nodes/hosts";
  if (Status written = rewrite_file(hosts, agent::hosts_text(file.places)); !written) return written;
  std::vector<agent::VirtualNodeSpec> wanted;
  std::set<std::string> missing(switch_holder->missing.begin(), switch_holder->missing.end());
  for (const tutti::NodeSpec& node : file.spec.nodes) {
    if (node.kind != NodeKind::kVirtual) continue;
    auto holder = read_holder(dir, node.name);
    if (!fresh && holder && agent::is_alive(holder->process)) continue;
    if (!fresh)
      if (Status stopped = stop_all(dir, "agent." + node.name); !stopped) return stopped;
    auto place = std::find(file.places.begin(), file.places.end(), node.name) - file.places.begin();
    auto spec = holder_spec(dir, node, static_cast<std::uint32_t>(place));
    if (!spec) return tl::unexpected<Error>(spec.error());
    spec->command = command;
    spec->switch_holder = switch_holder->process;
    spec->hosts_path = hosts;
    wanted.push_back(std::move(*spec));
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
  for (const ClusterProcess& p : read_pids(dir)) running.insert(p.name);
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

namespace {

// Ends the holders of these names ("switch", nodes) and forgets them.
Status stop_holders_of(const std::string& dir, const std::vector<std::string>& names) {
  std::vector<agent::ProcessRef> holders;
  for (const std::string& name : names) {
    auto holder = read_holder(dir, name);
    if (holder && agent::is_alive(holder->process)) holders.push_back(holder->process);
  }
  if (Status stopped = agent::stop_holders(holders); !stopped) return stopped;
  for (const std::string& name : names) {
    if (auto holder = read_holder(dir, name)) (void)clear_pid(dir, "holder." + name, holder->process.pid);
    unlink(fmt::format("{}/holders/{}.json", dir, name).c_str());
  }
  return {};
}

std::vector<std::string> names_below(const std::string& directory, std::string_view ending) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    std::string name = entry.path().filename().string();
    if (name.ends_with(ending)) names.push_back(name.substr(0, name.size() - ending.size()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

Status stop_daemons(const std::string& dir) {
  if (Status stopped = stop_all(dir, "agent."); !stopped) return stopped;
  if (Status stopped = stop_all(dir, "controller"); !stopped) return stopped;
  if (Status stopped = stop_holders_of(dir, names_below(dir + "/holders", ".json")); !stopped) return stopped;
  unlink((dir + "/api.sock").c_str());
  return {};
}

Status follow_spec(const std::string& dir, ClusterFile& file, std::vector<std::string>& notes) {
  if (Status written = write_cluster_file(dir, file); !written) return written;
  std::set<std::string> wanted;
  for (const tutti::NodeSpec& node : file.spec.nodes)
    if (node.kind != NodeKind::kPlanned) wanted.insert(node.name);
  std::vector<std::string> gone;
  for (const ClusterProcess& p : read_pids(dir)) {
    if (!p.name.starts_with("agent.") || wanted.contains(p.name.substr(6))) continue;
    if (Status stopped = agent::stop_process(p.process, std::chrono::seconds(10)); !stopped) return stopped;
    (void)clear_pid(dir, p.name, p.process.pid);
    gone.push_back(p.name.substr(6));
  }
  if (Status stopped = stop_holders_of(dir, gone); !stopped) return stopped;
  if (Status holders = start_holders(dir, file, notes); !holders) return holders;
  return start_daemons(dir, file);
}

Result<agent::Descriptor> lock_setup(const std::string& dir) {
  agent::Descriptor lock(open((dir + "/setup.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock) return fail_errno(errno, dir + "/setup.lock");
  while (flock(lock.get(), LOCK_EX) != 0)
    if (errno != EINTR) return fail_errno(errno, dir + "/setup.lock");
  return lock;
}

Result<std::string> listen_address(const std::string& text) {
  std::size_t colon = text.rfind(':');
  std::string address = colon == std::string::npos ? std::string() : text.substr(0, colon);
  std::string port = colon == std::string::npos ? text : text.substr(colon + 1);
  bool digits = !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == std::string::npos;
  if (!digits || std::stoul(port) > 65535)
    return invalid(fmt::format("--listen {}: expected [ADDRESS:]PORT", text));
  unsigned char bytes[16];
  if (address.empty()) {
    // A machine may have one loopback only.
    address = has_address(INADDR_LOOPBACK) ? "127.0.0.1" : "[::1]";
  } else if (address.front() == '[' && address.back() == ']') {
    if (inet_pton(AF_INET6, address.substr(1, address.size() - 2).c_str(), bytes) != 1) address.clear();
  } else if (inet_pton(AF_INET, address.c_str(), bytes) != 1) {
    address.clear();
  }
  if (address.empty()) return invalid(fmt::format("--listen {}: expected an IPv4 address or an IPv6 address in brackets", text));
  return address + ":" + port;
}

}  // namespace tutti::cli
