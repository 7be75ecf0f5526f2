#include "wire/detail/listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "wire/endpoint.h"

namespace tutti::wire::detail {
namespace {

constexpr int kBacklog = 4096;

std::string address_text(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    return fmt::format("{}:{}", text, ntohs(v4.sin_port));
  }
  if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
    return fmt::format("[{}]:{}", text, ntohs(v6.sin6_port));
  }
  return {};
}

// Is the file at `path` free to be replaced: missing, or a socket that nobody answers on?
Status check_replaceable(const std::string& path) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return {};
    return fail_errno(errno, "cannot look at socket path " + path);
  }
  if (!S_ISSOCK(info.st_mode)) {
    return fail(ErrorCode::kConflict, path + " exists and is not a socket; not replaced");
  }
  const Result<int> answer = start_connecting(Endpoint::at_path(path));
  if (answer) ::close(*answer);
  if (answer || answer.error().reason == "queue_full") {
    return fail(ErrorCode::kConflict, "another process already serves " + path, "in_use");
  }
  if (answer.error().code == ErrorCode::kDenied) return tl::unexpected<Error>(answer.error());
  return {};
}

}  // namespace

Listener::Listener(Listener&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      transport_(other.transport_),
      address_(std::move(other.address_)),
      file_(std::exchange(other.file_, {})),
      device_(other.device_),
      inode_(other.inode_) {}

Listener::~Listener() {
  if (descriptor_ >= 0) ::close(descriptor_);
  struct stat info{};
  if (!file_.empty() && ::lstat(file_.c_str(), &info) == 0 && info.st_dev == device_ &&
      info.st_ino == inode_) {
    (void)::unlink(file_.c_str());
  }
}

Result<Listener> Listener::at_path(const std::string& path, unsigned mode) {
  // Bound under another name and renamed: the socket appears with its permissions and listening.
  const std::string temporary = fmt::format("{}.{}", path, ::getpid());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (temporary.size() >= sizeof address.sun_path) {
    return invalid(fmt::format("socket path is too long ({} bytes): {}", path.size(), path));
  }
  if (Status free = check_replaceable(path); !free) return tl::unexpected<Error>(free.error());
  std::memcpy(address.sun_path, temporary.data(), temporary.size());
  Listener listener;
  listener.transport_ = Transport::kUnix;
  listener.address_ = path;
  listener.descriptor_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (listener.descriptor_ < 0) return fail_errno(errno, "cannot create a socket");
  // The mode of the new file follows the descriptor's, masked by umask; chmod then sets the rest.
  (void)::fchmod(listener.descriptor_, mode);
  (void)::unlink(temporary.c_str());
  if (::bind(listener.descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
      0) {
    return fail_errno(errno, "cannot create socket " + path);
  }
  struct stat info{};
  if (::chmod(temporary.c_str(), mode) != 0 || ::lstat(temporary.c_str(), &info) != 0 ||
      ::listen(listener.descriptor_, kBacklog) != 0 ||
      ::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    (void)::unlink(temporary.c_str());
    return fail_errno(error, "cannot serve socket " + path);
  }
  listener.file_ = path;
  listener.device_ = info.st_dev;
  listener.inode_ = info.st_ino;
  return listener;
}

Result<Listener> Listener::at_address(const std::string& address) {
  const Result<Endpoint> endpoint = Endpoint::parse(address);
  if (!endpoint) return tl::unexpected<Error>(endpoint.error());
  sockaddr_storage storage{};
  auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
  socklen_t size = 0;
  if (::inet_pton(AF_INET, endpoint->host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(endpoint->port);
    size = sizeof v4;
  } else if (::inet_pton(AF_INET6, endpoint->host.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(endpoint->port);
    size = sizeof v6;
  } else {
    return invalid(
        fmt::format("cannot listen on '{}': expected a numeric address such as "
                    "127.0.0.1:8080 or [::1]:8080",
                    address));
  }
  const int descriptor = ::socket(storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return fail_errno(errno, "cannot listen on " + address);
  const int on = 1;
  (void)::setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (storage.ss_family == AF_INET6) {
    (void)::setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  }
  if (::bind(descriptor, reinterpret_cast<const sockaddr*>(&storage), size) != 0 ||
      ::listen(descriptor, kBacklog) != 0) {
    const int error = errno;
    ::close(descriptor);
    return fail_errno(error, "cannot listen on " + address);
  }
  return adopt(descriptor);
}

Result<Listener> Listener::adopt(int descriptor) {
  Listener listener;
  listener.descriptor_ = descriptor;
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  int listening = 0;
  socklen_t listening_size = sizeof listening;
  if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      ::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listening, &listening_size) != 0) {
    return fail_errno(errno, fmt::format("descriptor {} is not a socket", descriptor));
  }
  if (listening == 0) return invalid(fmt::format("descriptor {} is not listening", descriptor));
  const int flags = ::fcntl(descriptor, F_GETFL);
  if (flags < 0 || ::fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) != 0 ||
      ::fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0) {
    return fail_errno(errno, fmt::format("cannot prepare descriptor {}", descriptor));
  }
  listener.transport_ = address.ss_family == AF_UNIX ? Transport::kUnix : Transport::kTcp;
  listener.address_ = address_text(address);
  return listener;
}

Peer describe_peer(int descriptor, Transport transport) {
  Peer peer;
  peer.transport = transport;
  if (transport == Transport::kUnix) {
    ucred credentials{};
    socklen_t size = sizeof credentials;
    if (::getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0) {
      peer.uid = credentials.uid;
      peer.gid = credentials.gid;
      peer.pid = credentials.pid;
    }
    return peer;
  }
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getpeername(descriptor, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
    peer.remote_address = address_text(address);
  }
  return peer;
}

}  // namespace tutti::wire::detail
