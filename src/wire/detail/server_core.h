// What the sessions of one Server share. Only the io thread touches it, except where said.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "wire/detail/listener.h"
#include "wire/detail/loop.h"
#include "wire/server.h"

namespace tutti::wire::detail {

using Clock = std::chrono::steady_clock;
inline std::chrono::milliseconds chrono_ms(Duration d) { return std::chrono::milliseconds(d.ms()); }

// One accepted socket in one of its lives: an HTTP connection or a channel.
class Session {
 public:
  virtual ~Session() = default;
  // Called a few times a second: the place where time limits are enforced.
  virtual void sweep(Clock::time_point now) = 0;
  // Closes at once; the session must take itself out of ServerCore::sessions.
  virtual void shut_down(const std::string& reason) = 0;
};

struct ServerCore : std::enable_shared_from_this<ServerCore> {
  ServerOptions options;
  Handler handler;
  std::vector<std::pair<std::string, ChannelHandler>> channel_handlers;
  std::vector<std::string> addresses;
  std::vector<Listener> listeners;

  Loop loop;
  std::vector<std::unique_ptr<Watch>> acceptors;  // one for each of `listeners`
  std::vector<std::size_t> exhausted_acceptors;   // waiting for free descriptors or memory
  std::map<std::uint64_t, std::shared_ptr<Session>> sessions;
  std::uint64_t last_session_id = 0;
  std::atomic<std::size_t> session_count{0};  // any thread
  std::vector<char> read_buffer = std::vector<char>(std::size_t{256} * 1024);
  std::thread thread;
  bool started = false;  // the owner's thread only

  void remove(std::uint64_t id) { session_count -= sessions.erase(id); }
};

}  // namespace tutti::wire::detail
