// Channel: the server's end of a long-lived, message-oriented stream in both directions (binary
// messages in WebSocket frames). Agents, watches and logs use it. Messages arrive whole and in
// order, or the channel is closed; nothing is resent after a reconnect, that is the callers' part.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/time.h"

namespace tutti::wire {

struct ChannelOptions {
  // Bytes accepted by send() and not yet taken by the kernel; one more message closes the channel.
  std::size_t queue_bytes_max = std::size_t{64} << 20;
  // A longer message from the peer closes the channel (WebSocket code 1009).
  std::size_t message_bytes_max = std::size_t{64} << 20;
  // Silence for this long sends a ping; as long as `pong_timeout` more without a byte closes.
  Duration ping_interval = Duration::seconds(20);
  Duration pong_timeout = Duration::seconds(20);
  // Output that waits for this long while the peer takes nothing closes.
  Duration stall_timeout = Duration::seconds(60);
};

class Channel {
 public:
  virtual ~Channel() = default;

  // Queues one message; it leaves at once, together with what else is queued. Any thread. False if
  // the channel is closed, or was closed by this very call because its queue is full.
  [[nodiscard]] virtual bool send(std::string message) = 0;
  // Says goodbye after what is queued: the peer sees `reason` (cut to 123 bytes). Any thread;
  // send() is false from here on, no message is delivered any more. A second call does nothing.
  virtual void close(std::string reason) = 0;
  virtual bool is_open() const = 0;

  // Back-pressure: while paused no message is delivered and the peer's socket fills up. Any thread;
  // takes effect at once on the io thread, else with the next turn of the loop. A paused channel
  // isn't closed for silence.
  virtual void pause_reading() = 0;
  virtual void resume_reading() = 0;

  // Bytes accepted by send() that the kernel has not taken.
  virtual std::size_t queued_bytes() const = 0;
};

// Called on the server's io thread, so they must not block. Each channel that accept() returned
// gets on_closed exactly once, as its last call, also when the server stops (not if it had
// stopped before accept()). `reason` is text for people: who closed and why.
struct ChannelCallbacks {
  std::function<void(Channel&, std::string message)> on_message;
  std::function<void(Channel&, const std::string& reason)> on_closed;
};

}  // namespace tutti::wire
