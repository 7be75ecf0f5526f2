// Listening sockets: opened, named and cleaned up with plain POSIX calls.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/error.h"
#include "wire/http.h"

namespace tutti::wire::detail {

// One listening, non-blocking descriptor. Owns it; a Unix socket's file goes with it, unless
// another process has put its own in place meanwhile.
class Listener {
 public:
  Listener() = default;
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&&) = delete;
  ~Listener();

  // Replaces a socket file that nobody answers on; one that somebody answers on is kConflict,
  // any other kind of file is left alone (kConflict). The file never has wider permissions than
  // `mode`, not for a moment.
  static Result<Listener> at_path(const std::string& path, unsigned mode);
  // "127.0.0.1:80", "[::1]:0". An IPv6 address serves IPv6 only.
  static Result<Listener> at_address(const std::string& address);
  static Result<Listener> adopt(int descriptor);

  int descriptor() const { return descriptor_; }
  // The caller closes the descriptor from here on; the file is still ours to remove.
  int release() { return std::exchange(descriptor_, -1); }
  Transport transport() const { return transport_; }
  // The bound address as text; the path of a Unix socket.
  const std::string& address() const { return address_; }

 private:
  int descriptor_ = -1;
  Transport transport_ = Transport::kTcp;
  std::string address_;
  std::string file_;  // to be removed at the end; empty if none
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

// Who is at the other end of an accepted socket.
Peer describe_peer(int descriptor, Transport transport);

}  // namespace tutti::wire::detail
