#include "wire/resolve.h"

#include <netdb.h>

#include <cstring>

namespace tutti::wire {

Result<std::vector<Address>> resolve(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (code != 0) {
    return fail(ErrorCode::kUnavailable,
                fmt::format("cannot resolve host '{}': {}", host, ::gai_strerror(code)));
  }
  std::vector<Address> addresses;
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    if (entry->ai_addrlen > sizeof(sockaddr_storage)) continue;
    Address& address = addresses.emplace_back();
    std::memcpy(&address.bytes, entry->ai_addr, entry->ai_addrlen);
    address.size = entry->ai_addrlen;
  }
  ::freeaddrinfo(found);
  if (addresses.empty()) return fail(ErrorCode::kUnavailable, "host without addresses: " + host);
  return addresses;
}

}  // namespace tutti::wire
