// Server: Tutti's one port. HTTP/1.1 and WebSocket channels over a Unix socket and TCP, all on one
// io thread of its own. It owns sockets, time limits and size limits; what a request means and
// whether its sender may ask is the handler's business.
//
//   Server server(options);
//   server.handle([](Request request, Responder responder) { responder({.body = "{}"}); });
//   server.on_channel("/agent/", [](Request request, Upgrade upgrade) { … });
//   if (auto started = server.start(); !started) …
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "wire/channel.h"
#include "wire/http.h"

namespace tutti::wire {

struct ServerLimits {
  std::size_t header_bytes_max = 64 * 1024;            // more: 431
  std::size_t body_bytes_max = std::size_t{64} << 20;  // more: 413
  std::size_t connections_max = 8192;                  // one more gets 503
  // A kept-alive connection without a request is closed after this.
  Duration idle_timeout = Duration::seconds(75);
  // Time for a whole request from its first byte, and for a client to take a whole answer; each
  // is extended by one second per 64 KiB moved, so a big transfer may take longer, a trickle not.
  Duration request_timeout = Duration::seconds(20);
  Duration write_timeout = Duration::seconds(20);
};

struct ServerOptions {
  std::string unix_path;      // empty: no Unix socket. At most 107 bytes
  unsigned unix_mode = 0600;  // permissions of the socket file: 0666 for all users of the machine
  std::vector<std::string> tcp_addresses;  // "127.0.0.1:8080", "[::1]:0"; port 0: the kernel picks
  std::vector<int> listening_descriptors;  // already listening sockets; the server owns them
  ServerLimits limits;
};

namespace detail {
// What a Responder or an Upgrade speaks to; lives as long as one of them does.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual void respond(Response response) = 0;
  virtual std::shared_ptr<Channel> upgrade(ChannelCallbacks callbacks,
                                           const ChannelOptions& options) = 0;
};
struct ServerCore;
}  // namespace detail

// The right to answer one request, once, from any thread, now or later. Dropped without an answer
// it answers 500. An answer to a client that has gone away is ignored, also after the server's end.
class Responder {
 public:
  explicit Responder(std::shared_ptr<detail::Exchange> exchange) : exchange_(std::move(exchange)) {}
  Responder(Responder&&) noexcept = default;
  Responder& operator=(Responder&&) = delete;
  ~Responder();
  // The second call and later ones do nothing.
  void operator()(Response response);

 private:
  std::shared_ptr<detail::Exchange> exchange_;
};

// The right to accept or refuse one channel, once, from any thread. Dropped: refused with 500.
class Upgrade {
 public:
  explicit Upgrade(std::shared_ptr<detail::Exchange> exchange) : exchange_(std::move(exchange)) {}
  Upgrade(Upgrade&&) noexcept = default;
  Upgrade& operator=(Upgrade&&) = delete;
  ~Upgrade();
  // The channel can be used at once; what is sent follows the handshake. The first callback comes
  // after accept() has returned when it is called on the io thread; on another thread it may come
  // before. Must be called at most once.
  std::shared_ptr<Channel> accept(ChannelCallbacks callbacks, const ChannelOptions& options = {});
  void refuse(Response response);

 private:
  std::shared_ptr<detail::Exchange> exchange_;
};

// Both are called on the io thread and must not block it. A client that hangs up while its request
// is being answered is noticed only when the answer is written.
using Handler = std::function<void(Request, Responder)>;
using ChannelHandler = std::function<void(Request, Upgrade)>;

class Server {
 public:
  explicit Server(ServerOptions options);
  // stop(); must not run on the io thread.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Both before start(). Without a handler every request gets 404. A WebSocket handshake goes to
  // the channel handler with the longest prefix of its path; without one it gets 404.
  void handle(Handler handler);
  void on_channel(std::string path_prefix, ChannelHandler handler);

  // Opens all sockets, then starts the io thread; on an error nothing is left open. A socket file
  // that somebody answers on is kConflict; one that nobody answers on is replaced.
  Status start();
  // Closes everything, calls on_closed of all channels, ends the thread. Idempotent.
  void stop();

  // Where TCP listens, in the order of tcp_addresses then descriptors, with the real ports.
  const std::vector<std::string>& addresses() const;
  // Open connections now, channels included. Any thread.
  std::size_t connection_count() const;
  // CPU time of the io thread so far in microseconds, for measurements; 0 before start().
  std::int64_t io_cpu_us() const;

 private:
  std::shared_ptr<detail::ServerCore> core_;
};

}  // namespace tutti::wire
