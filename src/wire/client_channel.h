// ClientChannel: the client's end of a channel (see channel.h) for a program with its own poll()
// loop. No threads, no callbacks, nothing blocks except wait_ready().
//
//   poll fd() for POLLIN, and for POLLOUT while want_write(); then on_readable() / on_writable().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "wire/channel.h"
#include "wire/endpoint.h"

namespace tutti::wire {

struct ClientChannelOptions {
  std::string token;       // sent as "Authorization: Bearer TOKEN"
  ChannelOptions channel;  // limits of this side
};

class ClientChannel {
 public:
  // Starts to connect and to ask for the channel at `target` ("/agent/v1?node=n1"). An error if
  // nobody listens; a refusal by the handler shows later, as closed_reason().
  static Result<ClientChannel> connect(const Endpoint& endpoint, std::string_view target,
                                       ClientChannelOptions options = {});
  ClientChannel(ClientChannel&&) noexcept;
  ClientChannel& operator=(ClientChannel&&) noexcept;
  ~ClientChannel();

  // The descriptor to poll; the same for the channel's life, -1 once it is closed.
  int fd() const;
  bool want_write() const;
  // Reads what is there (at most about 1 MiB a call) and returns the whole messages, in order.
  // May return messages and leave the channel closed: look at is_open() after them. Once closed it
  // returns what send() or on_writable() found on the way to noticing that.
  std::vector<std::string> on_readable();
  void on_writable();
  // Queues a message and writes what the kernel takes at once. False if closed, or if the queue
  // bound is exceeded, which closes. Before is_ready() messages wait.
  [[nodiscard]] bool send(std::string_view message);

  // The server has accepted the channel.
  bool is_ready() const;
  bool is_open() const;
  // Why it is closed; empty while it is open. http_status(): of a refused handshake, else 0.
  const std::string& closed_reason() const;
  int http_status() const;
  std::size_t queued_bytes() const;

  // Says goodbye after what is queued (best effort, does not wait) and closes.
  void close(std::string_view reason);
  // To be called at least every few seconds: pings a silent server, closes when it stays silent.
  void keep_alive();
  // Blocks until the server has accepted; an error says why it has not. Reads no message.
  Status wait_ready(Duration deadline);
  // Blocks until what is queued has left or the channel is closed. Reads no message.
  Status flush(Duration deadline);

 private:
  struct Impl;
  explicit ClientChannel(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// How long to wait before the next try to connect. Values only: the caller's loop does the waiting.
struct ReconnectPolicy {
  Duration first = Duration::milliseconds(100);
  Duration longest = Duration::seconds(15);

  // `attempt` counts failures since the last success from 0; doubles each time up to `longest`.
  // `random` spreads the clients of a restarted server over the upper half of the wait.
  Duration delay(unsigned attempt, std::uint64_t random) const;
};

}  // namespace tutti::wire
