#include "wire/client_channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "wire/detail/frame.h"
#include "wire/detail/plain_http.h"

namespace tutti::wire {
namespace {

using Clock = std::chrono::steady_clock;
using detail::FrameEvent;
using detail::Opcode;
using detail::Side;

constexpr std::size_t kReadBytesPerCall = std::size_t{1} << 20;
constexpr std::size_t kRefusalBytesShown = 300;

std::chrono::milliseconds chrono_ms(Duration d) { return std::chrono::milliseconds(d.ms()); }

}  // namespace

struct ClientChannel::Impl {
  Endpoint endpoint;
  ClientChannelOptions options;
  detail::FrameReader reader;
  int descriptor = -1;
  bool connected = false;  // the kernel has said so, or data has moved
  bool ready = false;
  std::string key;
  std::string greeting;  // the handshake, not yet sent
  std::string queue;     // frames
  std::size_t sent = 0;  // bytes of `queue` the kernel has taken
  std::string head;      // of the answer, while not ready
  std::string reason;
  int status = 0;
  bool ping_outstanding = false;
  Clock::time_point last_received = Clock::now();
  Clock::time_point last_progress = Clock::now();
  std::vector<std::string> messages;
  std::vector<FrameEvent> events;

  Impl(Endpoint to, ClientChannelOptions with)
      : endpoint(std::move(to)),
        options(std::move(with)),
        reader(Side::kClient, options.channel.message_bytes_max) {}

  ~Impl() { shut(""); }

  void shut(std::string why) {
    if (descriptor < 0) return;
    ::close(descriptor);
    descriptor = -1;
    reason = std::move(why);
    std::string().swap(queue);
    sent = 0;
  }

  // Tells the server why, as far as the kernel takes it now, and closes.
  void say_goodbye(std::uint16_t code, std::string_view told, std::string why) {
    if (descriptor < 0) return;
    if (ready) {
      detail::append_close(queue, Side::kClient, code, told);
      write();
    }
    if (descriptor >= 0) (void)::shutdown(descriptor, SHUT_WR);
    shut({});
    reason = std::move(why);  // also when the goodbye itself could not be sent
  }

  // Sends from `text`, starting at `from`; false when the kernel takes no more (or it failed).
  bool send_some(std::string_view text, std::size_t& from) {
    while (from < text.size()) {
      const ssize_t n =
          ::send(descriptor, text.data() + from, text.size() - from, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && (errno == EAGAIN || errno == ENOTCONN)) return false;
      if (n < 0) {
        // What the server said before it went away may still be there to be read.
        if (errno == EPIPE || errno == ECONNRESET) read();
        shut(connection_lost());
        return false;
      }
      connected = true;
      last_progress = Clock::now();
      from += static_cast<std::size_t>(n);
    }
    return true;
  }

  void write() {
    if (descriptor < 0) return;
    if (!greeting.empty()) {
      std::size_t from = 0;
      (void)send_some(greeting, from);
      greeting.erase(0, from);
    }
    if (!ready || descriptor < 0) return;
    if (send_some(queue, sent)) {
      queue.clear();
      if (queue.capacity() > kReadBytesPerCall) queue.shrink_to_fit();
      sent = 0;
    } else if (sent > kReadBytesPerCall) {
      queue.erase(0, sent);
      sent = 0;
    }
  }

  void on_writable() {
    if (descriptor < 0) return;
    if (!connected) {
      int error = 0;
      socklen_t size = sizeof error;
      (void)::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size);
      if (error != 0) {
        return shut(
            fmt::format("cannot connect to {}: {}", to_string(endpoint), std::strerror(error)));
      }
      connected = true;
    }
    write();
  }

  std::string connection_lost() const {
    return fmt::format("connection to {} lost{}", to_string(endpoint),
                       ready ? "" : " before the channel was open");
  }

  void read() {
    std::size_t total = 0;
    std::string buffer(std::size_t{64} * 1024, '\0');
    while (descriptor >= 0 && total < kReadBytesPerCall) {
      // Of the answer to the handshake not one byte too many is taken: a message that came with it
      // would be in our memory, and nothing would wake the caller's poll() for it.
      const int flags = MSG_DONTWAIT | (ready ? 0 : MSG_PEEK);
      const ssize_t n = ::recv(descriptor, buffer.data(), buffer.size(), flags);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && (errno == EAGAIN || errno == ENOTCONN)) return;
      if (n <= 0) return shut(connection_lost());
      total += static_cast<std::size_t>(n);
      connected = true;
      last_received = Clock::now();
      ping_outstanding = false;
      const std::string_view bytes(buffer.data(), static_cast<std::size_t>(n));
      if (!ready) {
        read_handshake(bytes);
        return;
      }
      receive(bytes);
      if (bytes.size() < buffer.size()) return;
    }
  }

  // `bytes` were only looked at.
  void read_handshake(std::string_view bytes) {
    const std::size_t before = head.size();
    head += bytes;
    const std::size_t end = head.find("\r\n\r\n");
    std::string consumed(end == std::string::npos ? bytes.size() : end + 4 - before, '\0');
    (void)::recv(descriptor, consumed.data(), consumed.size(), MSG_DONTWAIT);
    if (end == std::string::npos) {
      if (head.size() > detail::kReplyHeadBytesMax) shut("the answer to the handshake is too long");
      return;
    }
    const Result<detail::ReplyHead> reply =
        detail::parse_reply_head(std::string_view(head).substr(0, end + 4));
    if (!reply) return shut(reply.error().message);
    const std::string rest = head.substr(end + 4);
    if (reply->status != 101) {
      status = reply->status;
      const std::string text =
          rest.substr(0, std::min(rest.find_last_not_of("\r\n") + 1, kRefusalBytesShown));
      return shut(fmt::format("{} refused the channel: {} {}{}{}", to_string(endpoint), status,
                              status_text(status), text.empty() ? "" : ": ", text));
    }
    if (reply->header("Sec-WebSocket-Accept") != detail::websocket_accept(key)) {
      return shut(to_string(endpoint) + " answered the handshake with a wrong key");
    }
    std::string().swap(head);
    ready = true;
    write();
  }

  void receive(std::string_view bytes) {
    events.clear();
    const bool intact = reader.feed(bytes, events);
    bool answer = false;
    for (FrameEvent& event : events) {
      switch (event.kind) {
        case FrameEvent::Kind::kMessage:
          messages.push_back(std::move(event.payload));
          break;
        case FrameEvent::Kind::kPing:
          // A server that pings and never reads must not fill the memory.
          if (queue.size() - sent > options.channel.queue_bytes_max) break;
          detail::append_frame(queue, Side::kClient, Opcode::kPong, event.payload);
          answer = true;
          break;
        case FrameEvent::Kind::kPong:
          break;
        case FrameEvent::Kind::kClose:
          return say_goodbye(event.code == 1005 ? detail::kCloseNormal : event.code, event.payload,
                             event.payload.empty() ? "closed by the server"
                                                   : "closed by the server: " + event.payload);
      }
    }
    if (!intact) {
      return say_goodbye(reader.error_code(), reader.error(), "protocol error: " + reader.error());
    }
    if (answer) write();
  }

  // Waits for the handshake, then for the queue to be empty; reads nothing that comes after it.
  Status wait(Duration deadline, bool (*done)(const Impl&)) {
    const Clock::time_point end =
        Clock::now() + chrono_ms(std::min(deadline, Duration::minutes(60 * 24)));
    while (descriptor >= 0 && !done(*this)) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
      if (left.count() <= 0) {
        return fail(
            ErrorCode::kUnavailable,
            fmt::format("{} did not answer within {} ms", to_string(endpoint), deadline.ms()),
            "deadline");
      }
      pollfd state{descriptor, 0, 0};
      if (!ready) state.events |= POLLIN;
      if (wants_write()) state.events |= POLLOUT;
      if (::poll(&state, 1, static_cast<int>(left.count())) <= 0) continue;
      if ((state.revents & POLLOUT) != 0) on_writable();
      if (ready && (state.revents & (POLLERR | POLLHUP)) != 0) write();
      if (!ready && (state.revents & ~POLLOUT) != 0) read();
    }
    if (descriptor >= 0) return {};
    const bool denied = status == 401 || status == 403;
    return fail(denied ? ErrorCode::kDenied : ErrorCode::kUnavailable, reason);
  }

  bool wants_write() const {
    return descriptor >= 0 && (!connected || !greeting.empty() || (ready && sent < queue.size()));
  }
};

ClientChannel::ClientChannel(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ClientChannel::ClientChannel(ClientChannel&&) noexcept = default;
ClientChannel& ClientChannel::operator=(ClientChannel&&) noexcept = default;
ClientChannel::~ClientChannel() = default;

Result<ClientChannel> ClientChannel::connect(const Endpoint& endpoint, std::string_view target,
                                             ClientChannelOptions options) {
  auto impl = std::make_unique<Impl>(endpoint, std::move(options));
  const Result<int> descriptor = start_connecting(endpoint);
  if (!descriptor) return tl::unexpected<Error>(descriptor.error());
  impl->descriptor = *descriptor;
  impl->key = detail::make_websocket_key();
  impl->greeting = detail::request_head(endpoint, "GET", target, impl->options.token) +
                   fmt::format(
                       "Upgrade: websocket\r\nConnection: Upgrade\r\n"
                       "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {}\r\n\r\n",
                       impl->key);
  if (!endpoint.unix_path.empty()) impl->write();  // connected already
  if (impl->descriptor < 0) return fail(ErrorCode::kUnavailable, impl->reason);
  return ClientChannel(std::move(impl));
}

int ClientChannel::fd() const { return impl_->descriptor; }
bool ClientChannel::want_write() const { return impl_->wants_write(); }
bool ClientChannel::is_ready() const { return impl_->descriptor >= 0 && impl_->ready; }
bool ClientChannel::is_open() const { return impl_->descriptor >= 0; }
const std::string& ClientChannel::closed_reason() const { return impl_->reason; }
int ClientChannel::http_status() const { return impl_->status; }
std::size_t ClientChannel::queued_bytes() const { return impl_->queue.size() - impl_->sent; }

std::vector<std::string> ClientChannel::on_readable() {
  impl_->read();
  return std::exchange(impl_->messages, {});
}

void ClientChannel::on_writable() { impl_->on_writable(); }

bool ClientChannel::send(std::string_view message) {
  Impl& self = *impl_;
  if (self.descriptor < 0) return false;
  if (queued_bytes() + message.size() > self.options.channel.queue_bytes_max) {
    self.shut(fmt::format("output queue of more than {} bytes: the server reads too slowly",
                          self.options.channel.queue_bytes_max));
    return false;
  }
  const bool idle = self.sent == self.queue.size();
  detail::append_frame(self.queue, Side::kClient, Opcode::kBinary, message);
  // While the kernel is full, on_writable() carries on: trying at each message would only cost.
  if (idle && self.ready) self.write();
  return self.descriptor >= 0;
}

void ClientChannel::close(std::string_view reason) {
  impl_->say_goodbye(detail::kCloseNormal, reason, fmt::format("closed here: {}", reason));
}

void ClientChannel::keep_alive() {
  Impl& self = *impl_;
  const ChannelOptions& limits = self.options.channel;
  if (self.descriptor < 0) return;
  const Clock::time_point now = Clock::now();
  const Clock::time_point due = self.last_received + chrono_ms(limits.ping_interval);
  if (self.sent < self.queue.size() && now > self.last_progress + chrono_ms(limits.stall_timeout)) {
    return self.shut("the server has stopped reading");
  }
  if (now > due + chrono_ms(limits.pong_timeout) && (self.ping_outstanding || !self.ready)) {
    return self.shut(self.ready ? "the server does not answer pings"
                                : "the server did not answer the handshake");
  }
  if (now > due && self.ready && !self.ping_outstanding) {
    self.ping_outstanding = true;
    detail::append_frame(self.queue, Side::kClient, Opcode::kPing, {});
    self.write();
  }
}

Status ClientChannel::wait_ready(Duration deadline) {
  return impl_->wait(deadline, [](const Impl& self) { return self.ready; });
}

Status ClientChannel::flush(Duration deadline) {
  return impl_->wait(deadline,
                     [](const Impl& self) { return self.ready && self.sent == self.queue.size(); });
}

Duration ReconnectPolicy::delay(unsigned attempt, std::uint64_t random) const {
  std::int64_t wait = std::max<std::int64_t>(first.ms(), 1);
  for (unsigned i = 0; i < attempt && wait < longest.ms(); ++i) wait *= 2;
  wait = std::min(wait, std::max<std::int64_t>(longest.ms(), 1));
  const std::int64_t half = wait / 2;
  return Duration::milliseconds(
      wait - half + static_cast<std::int64_t>(random % static_cast<std::uint64_t>(half + 1)));
}

}  // namespace tutti::wire
