// Host names to addresses: the one place of this library that asks the resolver.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace tutti::wire {

struct Address {
  sockaddr_storage bytes{};
  socklen_t size = 0;
};

// The addresses of the host in the resolver's order, at least one. Errors: kUnavailable. Blocks.
Result<std::vector<Address>> resolve(const std::string& host, std::uint16_t port);

}  // namespace tutti::wire
