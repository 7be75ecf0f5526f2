// Names that the operating system's name service knows: users, groups, hosts. One place, because the
// small client program (src/client) answers these questions without the name service.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tutti::cli {

// Login name of a user; nothing if nobody has this uid. Cost: may read files or ask a daemon.
std::optional<std::string> user_name(std::uint32_t uid);
bool user_exists(const std::string& name);
std::optional<std::string> group_name(std::uint32_t gid);
std::optional<std::string> home_directory(std::uint32_t uid);
// The numeric address of a host; its name if it has none.
std::string numeric_address(const std::string& host);

}  // namespace tutti::cli
