// Endpoint: where a server can be reached; and connecting to it with plain POSIX calls.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/time.h"

namespace tutti::wire {

struct Endpoint {
  std::string unix_path;  // set: a Unix socket; else host and port
  std::string host;       // without brackets
  std::uint16_t port = 0;

  static Endpoint at_path(std::string path) { return {std::move(path), {}, 0}; }
  // "/path", "unix:/path", "host:port", "[::1]:port", each of the last two also after "http://".
  static Result<Endpoint> parse(std::string_view text);
};

// "unix:/path", "host:port", "[::1]:port".
std::string to_string(const Endpoint& endpoint);

// Starts to connect; the result is a non-blocking close-on-exec descriptor of the caller. For TCP
// the connection may be in progress: it is there (or has failed) when the descriptor is writable.
// A Unix socket whose queue is full, a missing one and a refusal are kUnavailable. Does not block,
// except to resolve a host name.
Result<int> start_connecting(const Endpoint& endpoint);
// Connects within `deadline`, retrying while the server's queue is full.
Result<int> connect_within(const Endpoint& endpoint, Duration deadline);

}  // namespace tutti::wire
