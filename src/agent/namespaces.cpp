#include "agent/namespaces.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace tutti::agent {

namespace detail {

namespace {
struct Aside {
  int (*function)(void*);
  void* argument;
  int result;
};
int run_function(void* pointer) {
  auto& aside = *static_cast<Aside*>(pointer);
  aside.result = aside.function(aside.argument);
  return 0;
}
}  // namespace

int run_aside(int (*function)(void*), void* argument) {
  const CloneStack stack;
  if (stack.top() == nullptr) return errno;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  Aside aside{function, argument, 0};
  const pid_t pid =
      ::clone(run_function, stack.top(), CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD, &aside);
  const int error = errno;
  if (pid > 0) {
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return pid < 0 ? error : aside.result;
}

int with_user_namespace(pid_t pid, int wanted) {
  struct stat ours{};
  struct stat theirs{};
  if (::stat("/proc/self/ns/user", &ours) == 0 &&
      ::stat(fmt::format("/proc/{}/ns/user", pid).c_str(), &theirs) == 0 &&
      ours.st_ino != theirs.st_ino) {
    wanted |= CLONE_NEWUSER;
  }
  return wanted;
}

}  // namespace detail

namespace {

struct Probe {
  bool user_namespace = false;
  uid_t uid = 0;
  gid_t gid = 0;
  int user_error = 0;
  int network_error = 0;
  int host_name_error = 0;
  int mounts_error = 0;
};

int try_namespaces(void* pointer) {
  auto& probe = *static_cast<Probe*>(pointer);
  if (probe.user_namespace) {
    if (::unshare(CLONE_NEWUSER) < 0) return probe.user_error = errno;
    probe.user_error = detail::write_id_maps(0, probe.uid, 0, probe.gid);
    if (probe.user_error) return probe.user_error;
  }
  if (::unshare(CLONE_NEWNET) < 0) probe.network_error = errno;
  if (::unshare(CLONE_NEWUTS) < 0) probe.host_name_error = errno;
  // Some systems let a user make the namespace and then forbid to use it: mount something.
  if (::unshare(CLONE_NEWNS) < 0 ||
      ::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) < 0 ||
      ::mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=4k") < 0) {
    probe.mounts_error = errno;
  }
  return 0;
}

std::string explain(std::string_view kind, int error) {
  std::string text = fmt::format("{} namespace: {}", kind, strerror(error));
  if (error == EPERM || error == EACCES) {
    text += " (forbidden to this user, or by the container this runs in)";
  } else if (error == ENOSPC || error == EUSERS) {
    text += " (see /proc/sys/user/max_*_namespaces)";
  } else if (error == EINVAL) {
    text += " (this kernel is built without it)";
  }
  return text;
}

}  // namespace

NamespaceSupport probe_namespaces() {
  NamespaceSupport support;
  Probe probe;
  probe.uid = ::geteuid();
  probe.gid = ::getegid();
  int error = detail::run_aside(try_namespaces, &probe);
  if (probe.network_error == EPERM && probe.mounts_error == EPERM) {
    const Probe direct = probe;
    probe = Probe{true, direct.uid, direct.gid, 0, 0, 0, 0};
    error = detail::run_aside(try_namespaces, &probe);
    support.through_user_namespace = true;
    if (probe.user_error) {
      support.missing.push_back(explain("user", probe.user_error));
      probe.network_error = direct.network_error;
      probe.host_name_error = direct.host_name_error;
      probe.mounts_error = direct.mounts_error;
    }
  }
  if (error && !probe.user_error) {
    probe.network_error = probe.host_name_error = probe.mounts_error = error;
  }
  const auto take = [&](bool& flag, std::string_view kind, int failed) {
    flag = failed == 0;
    if (failed) support.missing.push_back(explain(kind, failed));
  };
  take(support.network, "network", probe.network_error);
  take(support.host_name, "host name (UTS)", probe.host_name_error);
  take(support.mounts, "mount", probe.mounts_error);
  return support;
}

Status enter_node(const ProcessRef& holder) {
  auto process = open_process(holder);
  if (!process) return tl::unexpected(process.error());
  const int flags =
      detail::with_user_namespace(holder.pid, CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWNS);
  if (::setns(process->get(), flags) < 0) {
    return fail_errno(errno, fmt::format("entering the namespaces of process {}", holder.pid));
  }
  return {};
}

namespace {

struct Listen {
  int pidfd = -1;
  int flags = 0;
  sockaddr_storage address{};
  socklen_t size = 0;
  int socket = -1;
};

int open_listener(void* pointer) {
  auto& listen = *static_cast<Listen*>(pointer);
  if (::setns(listen.pidfd, listen.flags) < 0) return errno;
  const int fd = ::socket(listen.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return errno;
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&listen.address), listen.size) < 0 ||
      ::listen(fd, 1024) < 0) {
    const int error = errno;
    ::close(fd);
    return error;
  }
  listen.socket = fd;
  return 0;
}

}  // namespace

Result<Descriptor> listen_in_switch(const ProcessRef& holder, const ListenAddress& where) {
  auto process = open_process(holder);
  if (!process) return tl::unexpected(process.error());
  Listen listen;
  listen.pidfd = process->get();
  listen.flags = detail::with_user_namespace(holder.pid, CLONE_NEWNET);
  auto* v4 = reinterpret_cast<sockaddr_in*>(&listen.address);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&listen.address);
  if (::inet_pton(AF_INET, where.address.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(where.port);
    listen.size = sizeof *v4;
  } else if (::inet_pton(AF_INET6, where.address.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(where.port);
    listen.size = sizeof *v6;
  } else {
    return invalid("not an IP address: " + where.address);
  }
  if (const int error = detail::run_aside(open_listener, &listen)) {
    return fail_errno(error, fmt::format("listening on {} port {} in the cluster's network",
                                         where.address, where.port));
  }
  return Descriptor(listen.socket);
}

Result<std::uint16_t> local_port(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) < 0) {
    return fail_errno(errno, "getsockname");
  }
  // Both families have the port at the same place.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

Status become_user_in_userns(uid_t uid, gid_t gid) {
  const uid_t outside_uid = ::geteuid();
  const gid_t outside_gid = ::getegid();
  if (::unshare(CLONE_NEWUSER) < 0) return fail_errno(errno, "user namespace");
  if (const int error = detail::write_id_maps(uid, outside_uid, gid, outside_gid)) {
    return fail_errno(error, fmt::format("mapping uid {} and gid {}", uid, gid));
  }
  return {};
}

}  // namespace tutti::agent
