#include "agent/supervisor_link.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace tutti::agent {
namespace {

using SocketCall = int (*)(int, const sockaddr*, socklen_t);

Result<Descriptor> socket_in_directory(const std::string& directory, const std::string& name,
                                       int type, SocketCall call) {
  Descriptor socket(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return fail_errno(errno, "socket");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::string path = directory + "/" + name;
  Descriptor opened;
  if (path.size() >= sizeof address.sun_path) {
    opened = Descriptor(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!opened) return fail_errno(errno, directory);
    path = fmt::format("/proc/self/fd/{}/{}", opened.get(), name);
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (call(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return fail_errno(errno, directory + "/" + name);
  }
  return socket;
}

}  // namespace

Result<Descriptor> bind_in_directory(const std::string& directory, const std::string& name,
                                     int type) {
  return socket_in_directory(directory, name, type, ::bind);
}
Result<Descriptor> connect_in_directory(const std::string& directory, const std::string& name,
                                        int type) {
  return socket_in_directory(directory, name, type, ::connect);
}

Status SupervisorLink::listen(const std::string& directory) {
  auto socket = bind_in_directory(directory, "control", SOCK_SEQPACKET);
  if (!socket) return tl::unexpected(socket.error());
  if (::listen(socket->get(), 4) != 0) return fail_errno(errno, "listen");
  listener_ = std::move(*socket);
  return {};
}

bool SupervisorLink::accept() {
  Descriptor accepted(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!accepted) return false;
  drop();
  connection_ = std::move(accepted);
  return true;
}

void SupervisorLink::drop() {
  connection_.reset();
  queue_.clear();
}

void SupervisorLink::send(const from_supervisor::Message& message) {
  if (!connection_) return;
  // An agent that does not read for so long is stuck; the next one is told everything again.
  constexpr std::size_t kQueueMax = 100'000;
  if (queue_.size() > kQueueMax) return drop();
  queue_.push_back(encode_frame(message));
  on_writable();
}

void SupervisorLink::on_writable() {
  while (connection_ && !queue_.empty()) {
    const std::string& packet = queue_.front();
    if (::send(connection_.get(), packet.data(), packet.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == ENOBUFS) return;
      // The status of very many ranks can be too large for a packet: it is in status.json.
      if (errno == EMSGSIZE) {
        queue_.pop_front();
        continue;
      }
      return drop();
    }
    queue_.pop_front();
  }
}

std::vector<std::pair<to_supervisor::Message, std::string>> SupervisorLink::receive() {
  std::vector<std::pair<to_supervisor::Message, std::string>> messages;
  std::array<char, kPacketPayloadMax + 4096> buffer;
  while (connection_) {
    const ssize_t n = ::recv(connection_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    if (n <= 0) {
      drop();
      break;
    }
    auto frame = decode_frame<to_supervisor::Message>(
        std::string_view(buffer.data(), static_cast<std::size_t>(n)));
    if (frame) messages.emplace_back(std::move(frame->first), std::string(frame->second));
  }
  return messages;
}

}  // namespace tutti::agent
