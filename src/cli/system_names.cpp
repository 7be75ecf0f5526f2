#include "cli/system_names.h"

#include <grp.h>
#include <netdb.h>
#include <pwd.h>
#include <sys/socket.h>

namespace tutti::cli {

std::optional<std::string> user_name(std::uint32_t uid) {
  const passwd* user = getpwuid(uid);
  return user ? std::optional<std::string>(user->pw_name) : std::nullopt;
}

bool user_exists(const std::string& name) { return getpwnam(name.c_str()) != nullptr; }

std::optional<std::string> group_name(std::uint32_t gid) {
  const group* entry = getgrgid(gid);
  return entry ? std::optional<std::string>(entry->gr_name) : std::nullopt;
}

std::optional<std::string> home_directory(std::uint32_t uid) {
  const passwd* user = getpwuid(uid);
  return user ? std::optional<std::string>(user->pw_dir) : std::nullopt;
}

std::string numeric_address(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return host;
  char text[NI_MAXHOST] = {};
  int failed = getnameinfo(found->ai_addr, found->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  freeaddrinfo(found);
  return failed ? host : text;
}

}  // namespace tutti::cli
