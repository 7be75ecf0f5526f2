#include "agent/node_mounts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "agent/device_nodes.h"

namespace tutti::agent {

namespace {

Status mount_at(const char* source, const std::string& target, const char* type,
                unsigned long flags, const char* options) {
  if (::mount(source, target.c_str(), type, flags, options) == 0) return {};
  return fail_errno(errno, fmt::format("mounting {} on {}", source ? source : "?", target));
}

Status make_directory(const std::string& path, mode_t mode) {
  if (::mkdir(path.c_str(), mode) == 0 || errno == EEXIST) return {};
  return fail_errno(errno, "making " + path);
}

Status make_file(const std::string& path, std::string_view text) {
  Descriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd) return fail_errno(errno, "making " + path);
  if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return fail_errno(errno, "writing " + path);
  }
  return {};
}

// A new /dev, built aside and moved over the old one at the end.
class DeviceTree {
 public:
  DeviceTree(std::string root, std::vector<std::string>& missing)
      : root_(std::move(root)), missing_(missing) {}

  Status build(const std::vector<NodeDevice>& devices) {
    Status status = make_directory(root_, 0755);
    if (status) status = mount_at("tutti-dev", root_, "tmpfs", MS_NOSUID, "mode=755,size=1m");
    constexpr std::array<std::tuple<const char*, unsigned, unsigned>, 7> kStandard{
        {{"/dev/null", 1, 3},
         {"/dev/zero", 1, 5},
         {"/dev/full", 1, 7},
         {"/dev/random", 1, 8},
         {"/dev/urandom", 1, 9},
         {"/dev/tty", 5, 0},
         {"/dev/console", 5, 1}}};
    for (const auto& [path, major, minor] : kStandard) {
      if (status) status = add_node(path, ::makedev(major, minor));
    }
    for (const auto& path : shared_device_paths()) {
      if (status) status = add_host_node(path);
    }
    for (const auto& device : devices) {
      if (status) status = device.real ? add_host_node(device.path) : add_declared(device);
    }
    if (status) status = add_directories();
    if (status) status = add_links();
    if (status && ::mount(root_.c_str(), "/dev", nullptr, MS_MOVE, nullptr) < 0) {
      status = fail_errno(errno, fmt::format("moving {} to /dev", root_));
    }
    return status;
  }

 private:
  std::string here(const std::string& path) const {
    return root_ + path.substr(std::string_view("/dev").size());
  }
  Status make_parents(const std::string& path) {
    for (auto at = path.find('/', 5); at != std::string::npos; at = path.find('/', at + 1)) {
      if (auto status = make_directory(here(path.substr(0, at)), 0755); !status) return status;
    }
    return {};
  }
  // A node of its own, or the host's one where making nodes is forbidden.
  Status add_node(const std::string& path, dev_t device) {
    if (auto status = make_parents(path); !status) return status;
    if (::mknod(here(path).c_str(), S_IFCHR | 0666, device) == 0) return {};
    if (errno != EPERM) return fail_errno(errno, "making " + path);
    return bind_host(path);
  }
  Status bind_host(const std::string& path) {
    if (auto status = make_file(here(path), ""); !status) return status;
    if (::mount(path.c_str(), here(path).c_str(), nullptr, MS_BIND, nullptr) < 0) {
      missing_.push_back(fmt::format("{}: {}", path, strerror(errno)));
      ::unlink(here(path).c_str());
    }
    return {};
  }
  Status add_host_node(const std::string& path) {
    struct stat status{};
    if (::stat(path.c_str(), &status) < 0) return fail_errno(errno, path);
    return add_node(path, status.st_rdev);
  }
  Status add_declared(const NodeDevice& device) {
    if (auto status = make_parents(device.path); !status) return status;
    const auto target = here(device.path);
    if (::mknod(target.c_str(), S_IFCHR | 0666, ::makedev(device.major, device.minor)) == 0) {
      return {};
    }
    if (errno == EEXIST) return invalid("device declared twice: " + device.path);
    if (!told_) {
      missing_.push_back(fmt::format("GPU isolation: {}: {} (plain files stand in for the GPUs)",
                                     device.path, strerror(errno)));
      told_ = true;
    }
    return make_file(target, "");
  }
  Status add_directories() {
    Status status;
    // No devices, so the host's are shown.
    for (const auto* path : {"/dev/mqueue", "/dev/hugepages"}) {
      if (::access(path, F_OK) != 0) continue;
      if (status) status = make_directory(here(path), 0755);
      if (status && ::mount(path, here(path).c_str(), nullptr, MS_BIND | MS_REC, nullptr) < 0) {
        missing_.push_back(fmt::format("{}: {}", path, strerror(errno)));
      }
    }
    if (status) status = add_terminals();
    if (status) status = make_directory(here("/dev/shm"), 01777);
    if (status) {
      status = mount_at("tutti-shm", here("/dev/shm"), "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777");
    }
    return status;
  }
  // The host's terminals, so that one passed in keeps its name. Their multiplexer is looked up
  // beside the folder of its own file system and cannot be bound elsewhere (the kernel's
  // devpts_acquire), so who may not make nodes gets terminals of the node's own.
  Status add_terminals() {
    const auto folder = here("/dev/pts");
    if (auto status = make_directory(folder, 0755); !status) return status;
    if (::mknod(here("/dev/ptmx").c_str(), S_IFCHR | 0666, ::makedev(5, 2)) == 0) {
      return mount_at("/dev/pts", folder, nullptr, MS_BIND, nullptr);
    }
    if (errno != EPERM) return fail_errno(errno, "making /dev/ptmx");
    auto status = mount_at("devpts", folder, "devpts", MS_NOSUID | MS_NOEXEC,
                           "newinstance,ptmxmode=0666,mode=0620");
    if (!status) return status;
    return add_link("pts/ptmx", "/ptmx");
  }
  Status add_link(const char* target, const char* name) {
    if (::symlink(target, (root_ + name).c_str()) == 0) return {};
    return fail_errno(errno, fmt::format("making /dev{}", name));
  }
  Status add_links() {
    Status status = add_link("/proc/self/fd", "/fd");
    if (status) status = add_link("/proc/self/fd/0", "/stdin");
    if (status) status = add_link("/proc/self/fd/1", "/stdout");
    if (status) status = add_link("/proc/self/fd/2", "/stderr");
    // systemd's journal socket, so that logger(1) works in a job.
    std::array<char, 256> target{};
    const bool log = ::readlink("/dev/log", target.data(), target.size() - 1) > 0;
    if (status && log) status = add_link(target.data(), "/log");
    return status;
  }

  std::string root_;
  std::vector<std::string>& missing_;
  bool told_ = false;
};

}  // namespace

Status make_node_mounts(const NodeMounts& node, std::vector<std::string>& missing) {
  // Nothing of ours reaches the host; what the host mounts or unmounts later still reaches us, so
  // that a node neither misses a file system nor keeps a removed one busy.
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) < 0) {
    return fail_errno(errno, "separating the mounts");
  }
  for (const auto& device : node.devices) {
    if (!device.path.starts_with("/dev/") || device.path.find("/../") != std::string::npos) {
      return invalid("a device file must be below /dev/: " + device.path);
    }
  }
  ::umask(0);
  const auto hostname = node.directory + "/hostname";
  if (auto status = make_file(hostname, node.name + "\n"); !status) return status;
  for (const auto& [source, target] : {std::pair(node.hosts_path, std::string("/etc/hosts")),
                                       std::pair(hostname, std::string("/etc/hostname"))}) {
    if (auto status = mount_at(source.c_str(), target, nullptr, MS_BIND, nullptr); !status) {
      missing.push_back(status.error().message);
    }
  }
  auto status = DeviceTree(node.directory + "/dev", missing).build(node.devices);
  ::umask(022);
  return status;
}

}  // namespace tutti::agent
