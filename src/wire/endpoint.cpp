#include "wire/endpoint.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "wire/resolve.h"

namespace tutti::wire {
namespace {

tl::unexpected<Error> unreachable(int error, const Endpoint& endpoint) {
  if (error == EACCES || error == EPERM) {
    return fail(ErrorCode::kDenied, "no permission to connect to " + to_string(endpoint));
  }
  if (error == ENOENT) {
    return fail(ErrorCode::kUnavailable,
                fmt::format("nothing listens at {}: no such socket", to_string(endpoint)));
  }
  if (error == ECONNREFUSED) {
    return fail(ErrorCode::kUnavailable,
                fmt::format("nothing listens at {}: connection refused", to_string(endpoint)));
  }
  return fail(ErrorCode::kUnavailable,
              fmt::format("cannot connect to {}: {}", to_string(endpoint), std::strerror(error)),
              error == EAGAIN ? "queue_full" : "");
}

Result<int> connect_address(const Endpoint& endpoint, const sockaddr* address, socklen_t size) {
  const int descriptor =
      ::socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return fail_errno(errno, "cannot create a socket");
  if (address->sa_family != AF_UNIX) {
    const int on = 1;
    (void)::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  if (::connect(descriptor, address, size) == 0 || errno == EINPROGRESS) return descriptor;
  const int error = errno;
  ::close(descriptor);
  return unreachable(error, endpoint);
}

Result<int> connect_by_name(const Endpoint& endpoint) {
  const Result<std::vector<Address>> addresses = resolve(endpoint.host, endpoint.port);
  if (!addresses) return tl::unexpected<Error>(addresses.error());
  Result<int> result = -1;
  for (const Address& address : *addresses) {
    result = connect_address(endpoint, reinterpret_cast<const sockaddr*>(&address.bytes), address.size);
    if (result) break;
  }
  return result;
}

}  // namespace

Result<Endpoint> Endpoint::parse(std::string_view text) {
  const std::string_view whole = text;
  if (text.starts_with("unix:")) text.remove_prefix(5);
  if (text.starts_with('/')) return at_path(std::string(text));
  if (text.starts_with("http://")) text.remove_prefix(7);
  if (text.ends_with('/')) text.remove_suffix(1);
  const std::size_t colon = text.rfind(':');
  Endpoint endpoint;
  if (colon != std::string_view::npos) {
    std::string_view host = text.substr(0, colon);
    const std::string_view port = text.substr(colon + 1);
    const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
    if (bracketed) host = host.substr(1, host.size() - 2);
    const auto [end, error] =
        std::from_chars(port.data(), port.data() + port.size(), endpoint.port);
    if (error == std::errc() && end == port.data() + port.size() && !host.empty() &&
        (bracketed || host.find(':') == std::string_view::npos)) {
      endpoint.host = host;
      return endpoint;
    }
  }
  return invalid(
      fmt::format("bad address '{}': expected /path, unix:/path, host:port or [ipv6]:port", whole));
}

std::string to_string(const Endpoint& endpoint) {
  if (!endpoint.unix_path.empty()) return "unix:" + endpoint.unix_path;
  if (endpoint.host.find(':') != std::string::npos) {
    return fmt::format("[{}]:{}", endpoint.host, endpoint.port);
  }
  return fmt::format("{}:{}", endpoint.host, endpoint.port);
}

Result<int> start_connecting(const Endpoint& endpoint) {
  if (!endpoint.unix_path.empty()) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (endpoint.unix_path.size() >= sizeof address.sun_path) {
      return invalid(fmt::format("socket path of {} bytes is too long, {} are possible: {}",
                                 endpoint.unix_path.size(), sizeof address.sun_path - 1,
                                 endpoint.unix_path));
    }
    std::memcpy(address.sun_path, endpoint.unix_path.data(), endpoint.unix_path.size());
    return connect_address(endpoint, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
  // Numeric addresses don't go through the resolver: it loads libraries and may ask the network.
  sockaddr_in v4{};
  if (::inet_pton(AF_INET, endpoint.host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(endpoint.port);
    return connect_address(endpoint, reinterpret_cast<const sockaddr*>(&v4), sizeof v4);
  }
  sockaddr_in6 v6{};
  if (::inet_pton(AF_INET6, endpoint.host.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(endpoint.port);
    return connect_address(endpoint, reinterpret_cast<const sockaddr*>(&v6), sizeof v6);
  }
  return connect_by_name(endpoint);
}

Result<int> connect_within(const Endpoint& endpoint, Duration deadline) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(deadline.ms());
  auto pause = std::chrono::milliseconds(1);
  while (true) {
    Result<int> started = start_connecting(endpoint);
    if (!started && started.error().reason == "queue_full" && Clock::now() + pause < end) {
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 2, std::chrono::milliseconds(50));
      continue;
    }
    if (!started || !endpoint.unix_path.empty()) return started;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    pollfd ready{*started, POLLOUT, 0};
    const int count = ::poll(&ready, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (count < 0 && errno == EINTR) {
      ::close(*started);
      continue;
    }
    int error = ETIMEDOUT;
    socklen_t size = sizeof error;
    if (count > 0) (void)::getsockopt(*started, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error == 0) return started;
    ::close(*started);
    return unreachable(error, endpoint);
  }
}

}  // namespace tutti::wire
