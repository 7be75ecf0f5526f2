#include "cli/agent_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <thread>

#include "agent/agent.h"
#include "agent/cgroups.h"
#include "agent/device_users.h"
#include "agent/devices.h"
#include "agent/process.h"
#include "agent/uplink.h"
#include "cli/cluster_setup.h"
#include "wire/client_channel.h"

namespace tutti::cli {
namespace {

// Processes and threads of one gang: what a big job needs, and never so many that a job that forks
// for ever leaves none to the machine.
std::uint32_t default_pids_max() {
  constexpr std::uint64_t kMax = 32768, kMin = 2048, kForEachCpu = 512;
  auto text = agent::read_small_file("/proc/sys/kernel/pid_max");
  const std::uint64_t all = text ? std::strtoull(text->c_str(), nullptr, 10) : 0;
  const std::uint64_t cpus = std::max(std::thread::hardware_concurrency(), 1u);
  const std::uint64_t wanted = std::clamp(cpus * kForEachCpu, kMin, kMax);
  return static_cast<std::uint32_t>(all == 0 ? wanted : std::min(wanted, all / 4));
}

// Lines with a time stamp (UTC) in a file that is put aside at 10 MiB.
class LogFile {
 public:
  explicit LogFile(std::string path) : path_(std::move(path)) { open(); }
  void write(const std::string& text) {
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    ::gmtime_r(&now, &utc);
    char stamp[32];
    std::strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ", &utc);
    const std::string line = fmt::format("{} {}\n", stamp, text);
    constexpr off_t kSizeMax = 10 << 20;
    struct stat status{};
    const int fd = file_ ? file_.get() : STDERR_FILENO;
    if (::write(fd, line.data(), line.size()) < 0 || !file_) return;
    if (::fstat(fd, &status) == 0 && status.st_size > kSizeMax) {
      ::rename(path_.c_str(), (path_ + ".1").c_str());
      open();
    }
  }

 private:
  void open() {
    if (path_.empty()) return;
    file_ = agent::Descriptor(
        ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644));
  }
  std::string path_;
  agent::Descriptor file_;
};

class ChannelUplink final : public agent::Uplink {
 public:
  ChannelUplink(const AgentSetup& setup, LogFile& log)
      : endpoint_(setup.controller), key_(setup.key), log_(log) {}

  void dial() override {
    if (channel_) say(channel_->closed_reason());
    channel_.reset();
    auto channel =
        wire::ClientChannel::connect(endpoint_, "/v1/agent", {.token = key_, .channel = {}});
    if (channel) {
      channel_.emplace(std::move(*channel));
    } else {
      say(channel.error().message);
    }
  }
  bool is_open() const override { return channel_ && channel_->is_open(); }
  bool is_ready() const override { return is_open() && channel_->is_ready(); }
  int fd() const override { return channel_ ? channel_->fd() : -1; }
  bool wants_write() const override { return is_open() && channel_->want_write(); }
  std::vector<std::string> on_readable() override {
    if (!channel_) return {};
    const bool was_ready = channel_->is_ready();
    auto frames = channel_->on_readable();
    if (!was_ready && channel_->is_ready()) {
      last_said_.clear();
      log_.write("connected to the controller at " + wire::to_string(endpoint_));
    }
    return frames;
  }
  void on_writable() override {
    if (channel_) channel_->on_writable();
  }
  void keep_alive() override {
    if (channel_) channel_->keep_alive();
  }
  void send(std::string_view frame) override {
    // A channel that breaks here is seen by is_open(); the next Hello says all again.
    if (is_ready()) (void)channel_->send(frame);
  }
  std::size_t queued_bytes() const override { return channel_ ? channel_->queued_bytes() : 0; }

 private:
  // The same reason again and again is one line.
  void say(const std::string& reason) {
    if (reason.empty() || reason == last_said_) return;
    last_said_ = reason;
    log_.write(fmt::format("no connection to the controller at {}: {}", wire::to_string(endpoint_),
                           reason));
  }
  wire::Endpoint endpoint_;
  std::string key_;
  LogFile& log_;
  std::optional<wire::ClientChannel> channel_;
  std::string last_said_;
};

// Where this node's groups are: found out once, so that an agent started from another session
// finds the groups of its jobs; again after a reboot or when the place is gone.
agent::CgroupLayout cgroup_layout(const std::string& directory, LogFile& log) {
  const std::string path = directory + "/cgroups.json";
  if (auto text = agent::read_small_file(path)) {
    auto layout = from_json<agent::CgroupLayout>(*text);
    const auto exists = [](const auto& hierarchy) {
      return ::access(hierarchy.path.c_str(), W_OK) == 0;
    };
    if (layout && !layout->hierarchies.empty() &&
        std::all_of(layout->hierarchies.begin(), layout->hierarchies.end(), exists)) {
      return *layout;
    }
  }
  auto layout = agent::probe_cgroups();
  const std::string text = to_json(layout);
  agent::Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    log.write("cannot keep " + path);
  }
  return layout;
}

// Rules for the GPUs that are real files here; empty when none is: nothing to isolate.
std::vector<std::optional<agent::DeviceRule>> gpu_rules(const std::vector<DeviceSpec>& devices) {
  std::vector<std::optional<agent::DeviceRule>> rules;
  bool any = false;
  for (const auto& device : devices) {
    auto rule = device.file.empty() ? Result<agent::DeviceRule>(invalid("no file"))
                                    : agent::device_rule(device.file);
    any = any || rule;
    rules.push_back(rule ? std::optional(*rule) : std::nullopt);
  }
  if (!any) rules.clear();
  return rules;
}

void set_devices(agent::AgentOptions& options, const AgentSetup& setup) {
  auto rules = gpu_rules(setup.devices);
  if (!rules.empty()) {
    options.device_rules = [rules = std::move(rules), standard = agent::standard_devices()](
                               const std::vector<std::uint16_t>& gpus) {
      auto allowed = standard;
      for (const auto gpu : gpus) {
        if (gpu < rules.size() && rules[gpu]) allowed.push_back(*rules[gpu]);
      }
      return allowed;
    };
  }
  // Declared devices have no driver that could hold memory for a stranger.
  if (setup.is_virtual) return;
  options.strangers = [devices = setup.devices](const std::vector<std::uint16_t>& gpus) {
    std::vector<std::string> paths;
    for (const auto gpu : gpus) {
      if (gpu < devices.size() && !devices[gpu].file.empty()) paths.push_back(devices[gpu].file);
    }
    return agent::device_users(paths);
  };
}

// The client program beside this one is also a supervisor, and starts in half of the time. It is held
// open by its descriptor, so that it stays the one of this build when the file is replaced. Nothing
// where there is none.
std::optional<std::string> small_supervisor() {
  const std::string own = own_executable();
  const agent::Descriptor file(
      ::open((own.substr(0, own.rfind('/') + 1) + "tutti-client").c_str(), O_PATH | O_CLOEXEC));
  if (!file) return std::nullopt;
  // Above the descriptors that a supervisor is given.
  const int kept = ::fcntl(file.get(), F_DUPFD_CLOEXEC, 64);
  if (kept < 0) return std::nullopt;
  return fmt::format("/proc/self/fd/{}", kept);
}

Status make_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0711) == 0 || errno == EEXIST) return {};
  return fail_errno(errno, path);
}

}  // namespace

Status run_agent(const AgentSetup& setup) {
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGTERM);
  sigaddset(&mask, SIGINT);
  ::sigprocmask(SIG_BLOCK, &mask, nullptr);
  agent::Descriptor stop(::signalfd(-1, &mask, SFD_CLOEXEC));
  if (!stop) return fail_errno(errno, "signalfd");
  LogFile log(setup.log_path);
  agent::AgentOptions options;
  options.node = setup.node;
  options.directory = setup.state_dir + "/nodes/" + setup.node;
  for (const auto& path : {setup.state_dir + "/nodes", options.directory}) {
    if (auto made = make_directory(path); !made) return made;
  }
  const auto layout = cgroup_layout(options.directory, log);
  auto cgroups = agent::open_cgroups(layout, setup.cluster_id, setup.node);
  options.version = setup.version;
  if (auto small = small_supervisor()) options.supervisor = {*small, "supervisor"};
  options.pids_max = setup.pids_max != 0 ? setup.pids_max : default_pids_max();
  options.bind_cpus = !setup.is_virtual && cgroups->features().cpuset;
  options.log = [&log](const std::string& line) { log.write(line); };
  set_devices(options, setup);
  for (const auto& missing : cgroups->features().missing) log.write("missing: " + missing);
  ChannelUplink uplink(setup, log);
  auto agent = agent::Agent::create(std::move(options), uplink, std::move(cgroups));
  if (!agent) return tl::unexpected(agent.error());
  (*agent)->run(stop.get());
  agent->reset();
  // The last one out: nothing of an idle node stays behind.
  cgroups = agent::open_cgroups(layout, setup.cluster_id, setup.node);
  const bool idle = cgroups->jobs().empty();
  if (idle && !cgroups->remove_node()) log.write("the node's cgroups could not be removed");
  log.write(idle ? "stopped" : "stopped; running steps go on");
  return {};
}

}  // namespace tutti::cli
