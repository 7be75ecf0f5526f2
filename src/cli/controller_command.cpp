#include "cli/controller_command.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <mutex>

#include "agent/namespaces.h"
#include "cli/state_dir.h"
#include "cli/version.h"
#include "controller/service.h"
#include "journal/journal.h"
#include "wire/server.h"
#include "wire/token.h"

namespace tutti::cli {

namespace {

class SystemClock : public controller::Clock {
 public:
  Instant now() const override {
    return Instant::from_ms(std::chrono::duration_cast<std::chrono::milliseconds>(
                                std::chrono::system_clock::now().time_since_epoch()).count());
  }
};

class SystemUsers : public controller::Users {
 public:
  std::string user_name(std::uint32_t uid) override {
    auto [it, is_new] = users_.try_emplace(uid);
    if (is_new)
      if (const passwd* user = getpwuid(uid)) it->second = user->pw_name;
    return it->second;
  }
  std::string group_name(std::uint32_t gid) override {
    auto [it, is_new] = groups_.try_emplace(gid);
    if (is_new)
      if (const group* entry = getgrgid(gid)) it->second = entry->gr_name;
    return it->second;
  }
  bool in_group(std::uint32_t uid, const std::string& name) override {
    const group* entry = getgrnam(name.c_str());
    if (!entry) return false;
    gid_t gid = entry->gr_gid;
    const passwd* user = getpwuid(uid);
    if (!user) return false;
    std::vector<gid_t> groups(256);
    int count = static_cast<int>(groups.size());
    if (getgrouplist(user->pw_name, user->pw_gid, groups.data(), &count) < 0) return false;
    groups.resize(static_cast<std::size_t>(count));
    return std::find(groups.begin(), groups.end(), gid) != groups.end();
  }

 private:
  std::map<std::uint32_t, std::string> users_, groups_;
};

class ChannelLink : public Link {
 public:
  explicit ChannelLink(std::shared_ptr<wire::Channel> channel) : channel_(std::move(channel)) {}
  bool send(std::string message) override { return channel_->send(std::move(message)); }
  void close(std::string reason) override { channel_->close(std::move(reason)); }

 private:
  std::shared_ptr<wire::Channel> channel_;
};

// Who may do what, by the way the question came in.
struct Gate {
  std::string token, agent_key;
  bool all_users = false;
  std::uint32_t own_uid = 0;

  controller::Caller caller(const wire::Peer& peer) const {
    controller::Caller who;
    if (peer.transport == wire::Transport::kUnix) {
      who.known = all_users || peer.uid == own_uid || peer.uid == 0;
      who.uid = peer.uid;
      who.gid = peer.gid;
      who.is_operator = peer.uid == 0 || peer.uid == own_uid;
    } else if (wire::equal_constant_time(peer.token, token)) {
      who = {true, true, own_uid, 0};
    }
    return who;
  }
  bool is_agent(const wire::Peer& peer) const {
    if (wire::equal_constant_time(peer.token, agent_key)) return true;
    return peer.transport == wire::Transport::kUnix && (peer.uid == 0 || peer.uid == own_uid) && !all_users;
  }
};

// Links by channel, so that callbacks find theirs.
struct LinkKeeper {
  std::mutex mutex;
  std::map<const wire::Channel*, std::shared_ptr<ChannelLink>> links;
  std::shared_ptr<ChannelLink> find(const wire::Channel& channel) {
    std::lock_guard lock(mutex);
    auto it = links.find(&channel);
    return it == links.end() ? nullptr : it->second;
  }
  std::shared_ptr<ChannelLink> take(const wire::Channel& channel) {
    std::lock_guard lock(mutex);
    auto it = links.find(&channel);
    if (it == links.end()) return nullptr;
    auto link = it->second;
    links.erase(it);
    return link;
  }
};

wire::Response response(controller::HttpAnswer answer) {
  wire::Response r;
  r.status = answer.status;
  r.content_type = std::move(answer.content_type);
  r.body = std::move(answer.body);
  return r;
}

void wire_up(wire::Server& server, controller::Service& service, const Gate& gate, LinkKeeper& keeper) {
  server.handle([&service, &gate](wire::Request request, wire::Responder responder) {
    controller::ApiCall call;
    call.caller = gate.caller(request.peer);
    call.method = request.method;
    call.path = request.path;
    call.body = std::move(request.body);
    for (auto& [name, value] : request.query) call.query[name] = value;
    auto shared = std::make_shared<wire::Responder>(std::move(responder));
    call.reply = [shared](controller::HttpAnswer answer) { (*shared)(response(std::move(answer))); };
    service.call(std::move(call));
  });
  server.on_channel("/v1/agent", [&service, &gate, &keeper](wire::Request request, wire::Upgrade upgrade) {
    if (!gate.is_agent(request.peer))
      return upgrade.refuse({403, "application/json", R"({"code":"denied","message":"this is not an agent's key"})", {}});
    wire::ChannelCallbacks callbacks;
    callbacks.on_message = [&service, &keeper](wire::Channel& channel, std::string frame) {
      if (auto link = keeper.find(channel)) service.agent_message(link, std::move(frame));
    };
    callbacks.on_closed = [&service, &keeper](wire::Channel& channel, const std::string&) {
      if (auto link = keeper.take(channel)) service.agent_closed(link);
    };
    auto channel = upgrade.accept(callbacks);
    std::lock_guard lock(keeper.mutex);
    keeper.links[channel.get()] = std::make_shared<ChannelLink>(channel);
  });
  server.on_channel("/v1/attach", [&service, &gate, &keeper](wire::Request request, wire::Upgrade upgrade) {
    controller::Caller caller = gate.caller(request.peer);
    if (!caller.known) return upgrade.refuse({403, "application/json", R"({"code":"denied","message":"who are you?"})", {}});
    GangId gang(static_cast<std::uint32_t>(std::strtoul(request.query_value("gang").c_str(), nullptr, 10)));
    wire::ChannelCallbacks callbacks;
    callbacks.on_message = [&service, &keeper](wire::Channel& channel, std::string frame) {
      if (auto link = keeper.find(channel)) service.client_message(link, std::move(frame));
    };
    callbacks.on_closed = [&service, &keeper](wire::Channel& channel, const std::string&) {
      if (auto link = keeper.take(channel)) service.client_closed(link);
    };
    auto channel = upgrade.accept(callbacks);
    auto link = std::make_shared<ChannelLink>(channel);
    {
      std::lock_guard lock(keeper.mutex);
      keeper.links[channel.get()] = link;
    }
    service.client_opened(link, caller, gang);
  });
}

int open_unix_socket(const std::string& path, mode_t mode) {
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (fd < 0 || path.size() >= sizeof address.sun_path) return -1;
  path.copy(address.sun_path, path.size());
  unlink(path.c_str());
  mode_t old = umask(0777 & ~mode);
  bool good = bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 && listen(fd, 1024) == 0;
  umask(old);
  if (good) return fd;
  close(fd);
  return -1;
}

// From root to the user the controller runs as. What needs root is open by now.
Status drop_to(const std::string& user) {
  const passwd* entry = getpwnam(user.c_str());
  if (!entry) return fail(ErrorCode::kNotFound, fmt::format("there is no user {} to run the controller as: `tutti up` makes it", user));
  if (initgroups(user.c_str(), entry->pw_gid) != 0 || setgid(entry->pw_gid) != 0 || setuid(entry->pw_uid) != 0)
    return fail_errno(errno, fmt::format("becoming user {}", user));
  prctl(PR_SET_DUMPABLE, 1);
  return {};
}

// TUTTI_CRASH_AT=NAME[:N] ends the process at the N-th passing of a named point, as kill -9 would.
controller::CrashPoint crash_point_from_environment() {
  const char* spec = std::getenv("TUTTI_CRASH_AT");
  if (!spec || !*spec) return [](const char*) {};
  std::string text = spec;
  std::size_t colon = text.find(':');
  std::string name = text.substr(0, colon);
  long passes = colon == std::string::npos ? 1 : std::strtol(text.c_str() + colon + 1, nullptr, 10);
  return [name, left = passes](const char* point) mutable {
    if (name == point && --left == 0) raise(SIGKILL);
  };
}

int complain(const Error& error) {
  fmt::print(stderr, "tutti controller: {}\n", to_string(error));
  return 1;
}

Result<std::vector<int>> open_listeners(const std::string& dir, const ClusterFile& file) {
  std::vector<int> listeners;
  int local = open_unix_socket(dir + "/api.sock", file.serves_all_users ? 0666 : 0600);
  if (local < 0) return fail_errno(errno, dir + "/api.sock");
  listeners.push_back(local);
  auto holder = read_holder(dir, "switch");
  if (holder && agent::is_alive(holder->process)) {
    auto socket = agent::listen_in_switch(holder->process, {std::string(agent::kSwitchAddress), kAgentPort});
    if (!socket) return tl::unexpected<Error>(socket.error());
    listeners.push_back(socket->release());
  }
  return listeners;
}

void wait_for_end() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  int received = 0;
  sigwait(&set, &received);
}

// Signals that end it are waited for, not handled; as many descriptors as the machine allows.
void set_up_process() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

// A living controller holds the journal's lock; its socket must not be taken from it.
bool is_served(const std::string& dir) {
  int lock = open((dir + "/journal/journal.lock").c_str(), O_RDWR | O_CLOEXEC);
  if (lock < 0) return false;
  bool taken = flock(lock, LOCK_EX | LOCK_NB) != 0;
  close(lock);
  return taken;
}

}  // namespace

int run_controller(const std::string& dir) {
  auto file = read_cluster_file(dir);
  if (!file) return complain(file.error());
  set_up_process();
  Gate gate;
  auto key = wire::read_key_file(dir + "/agent.key");
  if (!key) return complain(key.error());
  gate.agent_key = *key;
  auto token = wire::read_key_file(dir + "/token");
  if (!token) return complain(token.error());
  gate.token = *token;
  gate.all_users = file->serves_all_users;
  if (is_served(dir)) return complain({ErrorCode::kConflict, "", fmt::format("another controller already serves {}", dir), {}});
  auto listeners = open_listeners(dir, *file);
  if (!listeners) return complain(listeners.error());
  (void)set_pid(dir, "controller", getpid());
  if (geteuid() == 0 && !file->run_as.empty())
    if (Status dropped = drop_to(file->run_as); !dropped) return complain(dropped.error());
  gate.own_uid = getuid();

  SystemClock clock;
  SystemUsers users;
  LogOptions log_options;
  log_options.clock = [&clock] { return clock.now(); };
  auto log = Log::to_file(dir + "/log/controller.log", std::move(log_options));
  if (!log) return complain(log.error());
  log->info("controller_starts", {{"version", kVersion}, {"pid", getpid()}, {"state", dir}});
  journal::OpenOptions options;
  options.directory = dir + "/journal";
  options.cluster_id = file->cluster_id;
  auto opened = journal::open(options);
  if (!opened) {
    log->error("journal_refused", {{"error", opened.error().message}});
    return complain(opened.error());
  }
  for (const std::string& note : opened->report.notes) log->warning("journal_note", {{"note", note}});
  log->info("journal_open", {{"events", opened->report.events}, {"last", opened->report.last_sequence}, {"dropped_bytes", opened->report.log_bytes_dropped}});

  char host[256] = "localhost";
  gethostname(host, sizeof host - 1);
  controller::ServiceOptions service_options;
  service_options.about = {std::string(kVersion), host, clock.now()};
  service_options.crash_point = crash_point_from_environment();
  std::uint64_t snapshot_sequence = opened->report.snapshot_sequence;
  controller::Service service(std::move(service_options), std::move(opened->journal), clock, users, *log);
  Status started = service.start(opened->snapshot, snapshot_sequence, file->spec);
  if (!started) {
    log->error("start_failed", {{"error", started.error().message}});
    return complain(started.error());
  }
  LinkKeeper keeper;
  wire::ServerOptions server_options;
  server_options.listening_descriptors = std::move(*listeners);
  server_options.tcp_addresses = file->listen;
  wire::Server server(std::move(server_options));
  wire_up(server, service, gate, keeper);
  if (Status serving = server.start(); !serving) {
    log->error("cannot_listen", {{"error", serving.error().message}});
    service.stop();
    return complain(serving.error());
  }
  log->info("controller_serves", {});
  wait_for_end();
  log->info("controller_stops", {});
  service.stop();
  server.stop();
  return 0;
}

}  // namespace tutti::cli
