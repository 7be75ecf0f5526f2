#include "agent/user_groups.h"

#include <grp.h>

#include <algorithm>

namespace tutti::agent {

std::vector<std::uint32_t> UserGroups::of(const std::string& user, std::uint32_t gid, Clock::time_point now) {
  if (user.empty()) return {gid};
  std::erase_if(known_, [&](const auto& entry) { return entry.second.until <= now; });
  if (auto found = known_.find({user, gid}); found != known_.end()) return found->second.groups;
  std::vector<gid_t> groups(64);
  int count = static_cast<int>(groups.size());
  while (::getgrouplist(user.c_str(), gid, groups.data(), &count) < 0) {
    // It says how many there are; one more look if they have become more since.
    groups.resize(std::max(static_cast<std::size_t>(count), groups.size() * 2));
    count = static_cast<int>(groups.size());
    if (groups.size() > 65536) return {gid};  // the kernel takes no more
  }
  groups.resize(static_cast<std::size_t>(count));
  std::vector<std::uint32_t> result(groups.begin(), groups.end());
  known_[{user, gid}] = {result, now + kRemembered};
  return result;
}

}  // namespace tutti::agent
