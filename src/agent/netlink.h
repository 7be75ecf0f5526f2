// The few network operations that virtual nodes need, spoken to the kernel directly (rtnetlink(7)):
// starting `ip` for each would cost more than the operations.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "agent/process.h"
#include "base/error.h"

namespace tutti::agent {

using MacAddress = std::array<std::uint8_t, 6>;

// One end becomes a port of the bridge, the other lands in another network namespace.
struct VethSpec {
  std::string port;  // name beside the bridge
  std::string bridge;
  std::string inside;  // name over there
  MacAddress inside_mac{};
  int inside_namespace = -1;  // descriptor of the network namespace
};

// A connection to the network namespace in which the caller was at open(); it stays with that one
// when the caller moves on. Names are at most 15 bytes. Errors carry the kernel's errno.
class Netlink {
 public:
  static Result<Netlink> open();
  Status set_up(const std::string& link);
  // A bridge with a fixed hardware address: one that followed its ports would leave stale
  // neighbour entries in the nodes each time a node comes or goes. Comes up at once.
  Status add_bridge(const std::string& name, const MacAddress& mac);
  Status add_veth(const VethSpec& spec);
  // Not there is not an error.
  Status remove_link(const std::string& link);
  // address: "10.77.0.1" or "fd54::1". IPv6 skips duplicate detection, so it can be used at once.
  Status add_address(const std::string& link, const std::string& address, int prefix_bits);

 private:
  explicit Netlink(Descriptor socket) : socket_(std::move(socket)) {}
  Result<int> index_of(const std::string& link);
  // Sends a message and waits for the kernel's answer; the index in it if it is a link.
  Result<int> request(std::span<char> message, const std::string& what);

  Descriptor socket_;
  std::uint32_t sequence_ = 0;
};

}  // namespace tutti::agent
