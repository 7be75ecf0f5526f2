// The supervisor's side of its control socket: the connection it was born with, then whichever
// agent connected last.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/process.h"
#include "agent/supervisor_protocol.h"

namespace tutti::agent {

class SupervisorLink {
 public:
  explicit SupervisorLink(Descriptor first) : connection_(std::move(first)) {}
  // Listens on `path`, so that the next agent finds us. A failure costs adoption, not the step.
  Status listen(const std::string& directory);

  int fd() const { return connection_.get(); }
  int listener() const { return listener_.get(); }
  bool is_connected() const { return static_cast<bool>(connection_); }
  bool wants_write() const { return !queue_.empty(); }

  // Takes the newest connection; the old one and what was queued for it are dropped. True if
  // there was one: State is to be sent.
  bool accept();
  // Never blocks. Without a connection messages are dropped: State and StepStatus say it all.
  void send(const from_supervisor::Message& message);
  void on_writable();
  // The messages that have come, each with its payload; malformed and unknown ones are left out.
  std::vector<std::pair<to_supervisor::Message, std::string>> receive();

 private:
  void drop();
  Descriptor connection_;
  Descriptor listener_;
  std::deque<std::string> queue_;
};

// A datagram or seqpacket socket at directory/name, whose path may be longer than the 107 bytes
// that an address can hold.
Result<Descriptor> bind_in_directory(const std::string& directory, const std::string& name,
                                     int type);
Result<Descriptor> connect_in_directory(const std::string& directory, const std::string& name,
                                        int type);

}  // namespace tutti::agent
