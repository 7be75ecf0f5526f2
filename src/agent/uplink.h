// Uplink: the agent's end of its channel to the controller, as a port: src/cli adapts it to a
// WebSocket channel, tests play the controller with it. Frames are those of model/agent_protocol.h,
// delivered whole and in order while one connection lasts; what was under way when it broke is lost
// and the agent says everything that matters again in its next Hello.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::agent {

class Uplink {
 public:
  virtual ~Uplink() = default;

  // Starts to connect; a failure shows as !is_open(). The agent calls it with a growing delay.
  virtual void dial() = 0;
  // A connection exists or is being made.
  virtual bool is_open() const = 0;
  // The controller has accepted: frames can be sent.
  virtual bool is_ready() const = 0;

  // To be polled for reading, and for writing while wants_write(). -1 = nothing to poll.
  virtual int fd() const = 0;
  virtual bool wants_write() const = 0;
  // Called when fd() is readable; the frames that have come. May leave the uplink closed.
  virtual std::vector<std::string> on_readable() = 0;
  virtual void on_writable() = 0;
  // Called about once a second while open.
  virtual void keep_alive() = 0;

  // Never blocks; frames sent while !is_ready() are dropped.
  virtual void send(std::string_view frame) = 0;
  // Accepted by send() and not yet taken by the kernel; the agent sends no output above a bound.
  virtual std::size_t queued_bytes() const = 0;
};

}  // namespace tutti::agent
