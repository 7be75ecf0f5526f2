#include "wire/client.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>

#include "wire/detail/plain_http.h"

namespace tutti::wire {
namespace {

using Clock = std::chrono::steady_clock;

bool contains_token(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    std::string_view item = list.substr(0, end);
    while (!item.empty() && item.front() == ' ') item.remove_prefix(1);
    while (!item.empty() && item.back() == ' ') item.remove_suffix(1);
    if (equal_ignoring_case(item, word)) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

}  // namespace

struct HttpConnection::Impl {
  Endpoint endpoint;
  ClientOptions options;
  int descriptor = -1;
  std::string input;  // received, not yet consumed
  Clock::time_point end;

  ~Impl() { disconnect(); }

  void disconnect() {
    if (descriptor >= 0) ::close(descriptor);
    descriptor = -1;
    input.clear();
  }

  Duration left() const {
    return Duration::milliseconds(std::max<std::int64_t>(
        0, std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count()));
  }

  tl::unexpected<Error> cut_off() const {
    return fail(ErrorCode::kUnavailable,
                to_string(endpoint) + " closed the connection before it answered", "answer_lost");
  }

  Status wait_for(short events) const {
    while (true) {
      pollfd ready{descriptor, events, 0};
      const int count =
          ::poll(&ready, 1, static_cast<int>(std::min<std::int64_t>(left().ms(), 3600'000)));
      if (count > 0) return {};
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return fail_errno(errno, "cannot wait for " + to_string(endpoint));
      if (Clock::now() < end) continue;
      return fail(
          ErrorCode::kUnavailable,
          fmt::format("no answer from {} within {} ms", to_string(endpoint), options.deadline.ms()),
          "deadline");
    }
  }

  // A server may have closed the idle connection: then the request must go out on a new one.
  Status connect_if_needed() {
    if (descriptor >= 0) {
      char probe = 0;
      const ssize_t n = ::recv(descriptor, &probe, 1, MSG_PEEK | MSG_DONTWAIT);
      if (n < 0 && errno == EAGAIN && input.empty()) return {};
      disconnect();
    }
    Result<int> connected = connect_within(endpoint, left());
    if (!connected) return tl::unexpected<Error>(connected.error());
    descriptor = *connected;
    return {};
  }

  Status send_all(std::string_view head, std::string_view body) const {
    while (!head.empty() || !body.empty()) {
      std::array<iovec, 2> parts{iovec{const_cast<char*>(head.data()), head.size()},
                                 iovec{const_cast<char*>(body.data()), body.size()}};
      msghdr message{};
      message.msg_iov = parts.data();
      message.msg_iovlen = body.empty() ? 1 : 2;
      const ssize_t n = ::sendmsg(descriptor, &message, MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) {
        if (Status ready = wait_for(POLLOUT); !ready) return ready;
        continue;
      }
      // The server may have refused early and closed: its answer is still there to be read.
      if (n < 0 && (errno == EPIPE || errno == ECONNRESET)) return {};
      if (n < 0) return fail_errno(errno, "cannot send to " + to_string(endpoint));
      const std::size_t of_head = std::min(static_cast<std::size_t>(n), head.size());
      head.remove_prefix(of_head);
      body.remove_prefix(static_cast<std::size_t>(n) - of_head);
    }
    return {};
  }

  static constexpr std::size_t kFirst = 2048, kChunk = std::size_t{64} * 1024;

  // Receives more into `input`; false at the end of the stream.
  Result<bool> receive() {
    // Most answers are short, and memory that is touched for the first time is what a short command
    // pays for.
    while (true) {
      const std::size_t size = input.size();
      const std::size_t chunk = size < kFirst ? kFirst : kChunk;
      input.resize(size + chunk);
      const ssize_t n = ::recv(descriptor, input.data() + size, chunk, 0);
      const int error = errno;
      input.resize(size + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
      if (n > 0) return true;
      if (n == 0 || error == ECONNRESET) return false;
      if (error == EINTR) continue;
      if (error != EAGAIN) return fail_errno(error, "cannot receive from " + to_string(endpoint));
      if (Status ready = wait_for(POLLIN); !ready) return tl::unexpected<Error>(ready.error());
    }
  }

  // Receives until `input` holds `mark` at or after `from`; the position after it.
  Result<std::size_t> receive_until(std::string_view mark, std::size_t limit) {
    std::size_t from = 0;
    while (true) {
      const std::size_t found = input.find(mark, from);
      if (found != std::string::npos) return found + mark.size();
      if (input.size() > limit)
        return invalid("the answer of " + to_string(endpoint) + " isn't HTTP");
      from = input.size() < mark.size() ? 0 : input.size() - mark.size() + 1;
      const Result<bool> more = receive();
      if (!more) return tl::unexpected<Error>(more.error());
      if (!*more) return cut_off();
    }
  }

  // Moves exactly `size` bytes from the stream to `out`.
  Status take(std::size_t size, std::string& out) {
    if (size > options.body_bytes_max - std::min(out.size(), options.body_bytes_max)) {
      return fail(ErrorCode::kExhausted, fmt::format("the answer of {} is longer than {} bytes",
                                                     to_string(endpoint), options.body_bytes_max));
    }
    while (input.size() < size) {
      const Result<bool> more = receive();
      if (!more) return tl::unexpected<Error>(more.error());
      if (!*more) return cut_off();
    }
    if (input.size() == size && out.empty()) {
      out.swap(input);
      return {};
    }
    out.append(input, 0, size);
    input.erase(0, size);
    return {};
  }

  Status take_chunks(std::string& out) {
    while (true) {
      const Result<std::size_t> line = receive_until("\r\n", 4096);
      if (!line) return tl::unexpected<Error>(line.error());
      std::size_t size = 0;
      const auto [stop, error] = std::from_chars(input.data(), input.data() + *line, size, 16);
      if (error != std::errc() || (*stop != '\r' && *stop != ';')) {
        return invalid("malformed chunk in the answer of " + to_string(endpoint));
      }
      input.erase(0, *line);
      if (size == 0) break;
      if (Status taken = take(size, out); !taken) return taken;
      std::string line_end;
      if (Status taken = take(2, line_end); !taken) return taken;
      if (line_end != "\r\n")
        return invalid("malformed chunk in the answer of " + to_string(endpoint));
    }
    while (true) {  // trailers, up to the empty line
      const Result<std::size_t> line = receive_until("\r\n", detail::kReplyHeadBytesMax);
      if (!line) return tl::unexpected<Error>(line.error());
      input.erase(0, *line);
      if (*line == 2) return {};
    }
  }

  Status take_to_end(std::string& out) {
    while (true) {
      const Result<bool> more = receive();
      if (!more) return tl::unexpected<Error>(more.error());
      if (!*more || input.size() > options.body_bytes_max) return take(input.size(), out);
    }
  }

  Result<HttpReply> read_reply(std::string_view method) {
    detail::ReplyHead head;
    do {  // an interim answer (1xx) is followed by the real one
      const Result<std::size_t> end_of_head = receive_until("\r\n\r\n", detail::kReplyHeadBytesMax);
      if (!end_of_head) return tl::unexpected<Error>(end_of_head.error());
      Result<detail::ReplyHead> parsed =
          detail::parse_reply_head(std::string_view(input).substr(0, *end_of_head));
      if (!parsed) return tl::unexpected<Error>(parsed.error());
      head = std::move(*parsed);
      input.erase(0, *end_of_head);
    } while (head.status < 200);
    HttpReply reply{head.status, std::string(head.header("Content-Type")), {}};
    bool keep = !contains_token(head.header("Connection"), "close");
    Status body;
    if (method != "HEAD" && head.status != 204 && head.status != 304) {
      const std::string_view length = head.header("Content-Length");
      if (contains_token(head.header("Transfer-Encoding"), "chunked")) {
        body = take_chunks(reply.body);
      } else if (!length.empty()) {
        std::size_t size = 0;
        const char* const stop = length.data() + length.size();
        const auto [at, error] = std::from_chars(length.data(), stop, size);
        if (error != std::errc() || at != stop) {
          return invalid("malformed Content-Length from " + to_string(endpoint));
        }
        // A long answer comes into one piece of memory.
        if (size > kFirst && size <= options.body_bytes_max) input.reserve(size + kChunk);
        body = take(size, reply.body);
      } else {
        keep = false;
        body = take_to_end(reply.body);
      }
    }
    if (!body) return tl::unexpected<Error>(body.error());
    if (!keep) disconnect();
    return reply;
  }
};

HttpConnection::HttpConnection(Endpoint endpoint, ClientOptions options)
    : impl_(std::make_unique<Impl>()) {
  impl_->endpoint = std::move(endpoint);
  impl_->options = std::move(options);
}
HttpConnection::HttpConnection(HttpConnection&&) noexcept = default;
HttpConnection& HttpConnection::operator=(HttpConnection&&) noexcept = default;
HttpConnection::~HttpConnection() = default;

Result<HttpReply> HttpConnection::request(std::string_view method, std::string_view target,
                                          std::string_view body) {
  Impl& self = *impl_;
  const Duration deadline = std::min(self.options.deadline, Duration::minutes(60 * 24 * 365));
  self.end = Clock::now() + std::chrono::milliseconds(deadline.ms());
  if (Status connected = self.connect_if_needed(); !connected) {
    return tl::unexpected<Error>(connected.error());
  }
  std::string head = detail::request_head(self.endpoint, method, target, self.options.token);
  if (!body.empty() || method == "POST" || method == "PUT" || method == "PATCH") {
    head += fmt::format("Content-Type: {}\r\nContent-Length: {}\r\n", self.options.content_type,
                        body.size());
  }
  head += "\r\n";
  Result<HttpReply> reply;
  if (Status sent = self.send_all(head, body); sent) {
    reply = self.read_reply(method);
  } else {
    reply = tl::unexpected<Error>(sent.error());
  }
  // What is left of a broken exchange must not be taken for the answer to the next request.
  if (!reply) self.disconnect();
  return reply;
}

Result<HttpReply> http_request(const Endpoint& endpoint, std::string_view method,
                               std::string_view target, std::string_view body,
                               const ClientOptions& options) {
  return HttpConnection(endpoint, options).request(method, target, body);
}

}  // namespace tutti::wire
