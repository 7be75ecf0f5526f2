#include "wire/detail/connection.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <exception>

#include "wire/detail/frame.h"
#include "wire/detail/stream_channel.h"

namespace tutti::wire::detail {
namespace {

constexpr std::size_t kBytesPerExtraSecond = 64 * 1024;
constexpr std::chrono::seconds kDrainTime{2};

std::string_view body_view(
    const std::variant<std::string, std::shared_ptr<const std::string>>& body) {
  if (const auto* text = std::get_if<std::string>(&body)) return *text;
  const auto& shared = std::get<std::shared_ptr<const std::string>>(body);
  return shared ? std::string_view(*shared) : std::string_view();
}

void append_header(std::string& out, std::string_view name, std::string_view value) {
  const std::size_t start = out.size();
  out.append(name).append(": ").append(value);
  // A value taken from a user must not be able to begin another header line.
  std::replace_if(
      out.begin() + static_cast<std::ptrdiff_t>(start), out.end(),
      [](char c) { return c == '\r' || c == '\n' || c == '\0'; }, ' ');
  out.append("\r\n");
}

bool past(Clock::time_point now, Clock::time_point since, Duration limit, std::size_t moved) {
  return now > since + chrono_ms(limit) + std::chrono::seconds(moved / kBytesPerExtraSecond);
}

std::string handshake(const std::string& key) {
  return "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
         "Sec-WebSocket-Accept: " +
         websocket_accept(key) + "\r\n\r\n";
}

}  // namespace

Connection::Connection(std::shared_ptr<ServerCore> core, std::uint64_t id,
                       std::unique_ptr<Watch> watch, Peer peer)
    : core_(std::move(core)),
      id_(id),
      watch_(std::move(watch)),
      peer_(std::move(peer)),
      parser_(core_->options.limits.header_bytes_max, core_->options.limits.body_bytes_max),
      since_(Clock::now()) {}

void Connection::start() { arm_read(); }

void Connection::arm_read() {
  if (read_armed_ || !watch_) return;
  read_armed_ = true;
  watch_->when_readable([self = shared_from_this()] { self->on_readable(); });
}

void Connection::on_readable() {
  read_armed_ = false;
  if (mode_ != Mode::kReading && mode_ != Mode::kDraining) return;
  std::vector<char>& buffer = core_->read_buffer;
  const ssize_t n = ::recv(watch_->descriptor(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return arm_read();
  if (n <= 0) return close();
  if (mode_ == Mode::kDraining) return arm_read();
  if (!parser_.begun()) {
    since_ = Clock::now();
    moved_ = 0;
  }
  moved_ += static_cast<std::size_t>(n);
  input_.append(buffer.data(), static_cast<std::size_t>(n));
  process();
}

// Parses and hands out requests until there is none, or until one waits for its answer.
void Connection::process() {
  if (processing_) return;
  processing_ = true;
  while (mode_ == Mode::kReading && input_offset_ < input_.size()) {
    const RequestParser::Step step = parser_.feed(std::string_view(input_).substr(input_offset_));
    input_offset_ += step.consumed;
    if (step.error_status != 0) {
      refuse(step.error_status, step.error);
    } else if (step.done) {
      dispatch();
    } else {
      if (!continued_ && parser_.wants_continue()) {
        continued_ = true;
        static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
        // Nothing else is queued here, so these bytes fit; a client that can't get them sends
        // its body after a moment anyway.
        (void)::send(watch_->descriptor(), kContinue.data(), kContinue.size(),
                     MSG_DONTWAIT | MSG_NOSIGNAL);
      }
      if (step.consumed == 0) break;
    }
  }
  processing_ = false;
  input_.erase(0, input_offset_);
  input_offset_ = 0;
  if (input_.empty() && input_.capacity() > core_->read_buffer.size()) input_.shrink_to_fit();
  if (mode_ == Mode::kReading) arm_read();
}

void Connection::dispatch() {
  Request request;
  request.peer = peer_;
  const bool valid = parser_.take(request);
  const bool wants_channel = parser_.is_upgrade();
  keep_alive_ = parser_.keep_alive();
  head_request_ = request.method == "HEAD";
  continued_ = false;
  parser_.reset();
  mode_ = Mode::kAnswering;
  if (!valid) return answer({400, "text/plain", "malformed request target\n", {}});
  try {
    if (wants_channel) {
      dispatch_upgrade(std::move(request));
    } else if (core_->handler) {
      core_->handler(std::move(request), Responder(shared_from_this()));
    } else {
      answer({404, "text/plain", "nothing is served here\n", {}});
    }
  } catch (const std::exception&) {
    // Unwinding destroyed the Responder, which has answered 500.
  }
}

void Connection::dispatch_upgrade(Request request) {
  const ChannelHandler* handler = nullptr;
  std::size_t longest = 0;
  for (const auto& [prefix, candidate] : core_->channel_handlers) {
    if (request.path.starts_with(prefix) && prefix.size() >= longest) {
      longest = prefix.size();
      handler = &candidate;
    }
  }
  websocket_key_ = request.header("Sec-WebSocket-Key");
  if (handler == nullptr) return answer({404, "text/plain", "no channel is served here\n", {}});
  if (request.header("Sec-WebSocket-Version") != "13") {
    return answer(
        {426, "text/plain", "expected WebSocket version 13\n", {{"Sec-WebSocket-Version", "13"}}});
  }
  if (request.method != "GET" || websocket_key_.size() != 24) {
    return answer({400, "text/plain", "malformed WebSocket handshake\n", {}});
  }
  (*handler)(std::move(request), Upgrade(shared_from_this()));
}

// The request can't be understood, so neither can what follows it: answers and closes.
void Connection::refuse(int status, std::string message) {
  mode_ = Mode::kAnswering;
  keep_alive_ = false;
  head_request_ = false;
  answer({status, "text/plain", std::move(message) + "\n", {}});
}

void Connection::respond(Response response) {
  if (core_->loop.is_loop_thread()) return answer(std::move(response));
  (void)core_->loop.post([self = shared_from_this(), response = std::move(response)]() mutable {
    self->answer(std::move(response));
  });
}

void Connection::answer(Response response) {
  if (mode_ != Mode::kAnswering) return;  // closed meanwhile
  const bool has_body = response.status != 204 && response.status != 304;
  output_body_ = std::move(response.body);
  const std::string_view body = body_view(output_body_);
  output_head_ = fmt::format("HTTP/1.1 {} {}\r\n", response.status, status_text(response.status));
  if (has_body) {
    append_header(output_head_, "Content-Type", response.content_type);
    fmt::format_to(std::back_inserter(output_head_), "Content-Length: {}\r\n", body.size());
  }
  for (const auto& [name, value] : response.headers) append_header(output_head_, name, value);
  if (!keep_alive_) output_head_ += "Connection: close\r\n";
  output_head_ += "\r\n";
  if (!has_body || head_request_) {
    output_body_ = std::string();
  } else if (body.size() <= 16 * 1024) {
    output_head_ += body;  // one buffer is cheaper than two for the usual small answer
    output_body_ = std::string();
  }
  output_sent_ = 0;
  mode_ = Mode::kWriting;
  since_ = Clock::now();
  moved_ = 0;
  write();
}

void Connection::write() {
  if (mode_ != Mode::kWriting) return;
  while (true) {
    const std::string_view head = output_head_;
    const std::string_view body = body_view(output_body_);
    const std::size_t total = head.size() + body.size();
    if (output_sent_ == total) return written();
    std::array<iovec, 2> parts{};
    msghdr message{};
    message.msg_iov = parts.data();
    const auto add = [&](std::string_view text) {
      if (text.empty()) return;
      parts[message.msg_iovlen++] = {const_cast<char*>(text.data()), text.size()};
    };
    add(head.substr(std::min(output_sent_, head.size())));
    add(body.substr(output_sent_ > head.size() ? output_sent_ - head.size() : 0));
    const ssize_t n = ::sendmsg(watch_->descriptor(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      return watch_->when_writable([self = shared_from_this()] { self->write(); });
    }
    if (n < 0) return close();
    output_sent_ += static_cast<std::size_t>(n);
    moved_ += static_cast<std::size_t>(n);
  }
}

void Connection::written() {
  output_head_.clear();
  output_body_ = std::string();
  since_ = Clock::now();
  moved_ = 0;
  if (keep_alive_) {
    mode_ = Mode::kReading;
    return process();
  }
  mode_ = Mode::kDraining;
  input_.clear();
  input_offset_ = 0;
  (void)::shutdown(watch_->descriptor(), SHUT_WR);
  arm_read();
}

std::shared_ptr<Channel> Connection::upgrade(ChannelCallbacks callbacks,
                                             const ChannelOptions& options) {
  auto channel = std::make_shared<StreamChannel>(core_, id_, std::move(callbacks), options);
  // Always posted: accept() returns the channel before its first callback.
  if (!core_->loop.post([self = shared_from_this(), channel] { self->start_channel(channel); })) {
    channel->abandon();
  }
  return channel;
}

void Connection::start_channel(const std::shared_ptr<StreamChannel>& channel) {
  if (mode_ != Mode::kAnswering) {
    return channel->shut_down("the client went away before the channel was open");
  }
  mode_ = Mode::kClosed;
  core_->sessions[id_] = channel;  // `this` lives on in the caller's closure
  channel->start(std::move(watch_), handshake(websocket_key_), input_.substr(input_offset_));
  input_.clear();
  input_offset_ = 0;
}

void Connection::sweep(Clock::time_point now) {
  const ServerLimits& limits = core_->options.limits;
  switch (mode_) {
    case Mode::kReading:
      if (!parser_.begun()) {
        if (past(now, since_, limits.idle_timeout, 0)) close();
      } else if (past(now, since_, limits.request_timeout, moved_)) {
        refuse(408, "the request took too long to arrive");
      }
      return;
    case Mode::kWriting:
      if (past(now, since_, limits.write_timeout, moved_)) close();
      return;
    case Mode::kDraining:
      if (now > since_ + kDrainTime) close();
      return;
    case Mode::kAnswering:  // the handler's time
    case Mode::kClosed:
      return;
  }
}

void Connection::shut_down(const std::string& /*reason*/) { close(); }

void Connection::close() {
  if (mode_ == Mode::kClosed) return;
  mode_ = Mode::kClosed;
  watch_->close();
  core_->remove(id_);  // the callers on the stack hold a reference
}

}  // namespace tutti::wire::detail
