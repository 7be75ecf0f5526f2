// The groups of the users whose jobs run here, asked of the name service by the agent and remembered
// for a short while: a supervisor that asked itself would load the name service for each step.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tutti::agent {

class UserGroups {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kRemembered{30};

  // All groups of the user, `gid` among them; `gid` alone if the name is not known here.
  std::vector<std::uint32_t> of(const std::string& user, std::uint32_t gid, Clock::time_point now);

 private:
  struct Known {
    std::vector<std::uint32_t> groups;
    Clock::time_point until;
  };
  std::map<std::pair<std::string, std::uint32_t>, Known> known_;
};

}  // namespace tutti::agent
