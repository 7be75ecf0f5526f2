#include "agent/user_groups.h"

#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>

namespace tutti::agent {
namespace {

const UserGroups::Clock::time_point kNow{std::chrono::hours(1)};

TEST(UserGroups, AreThoseOfTheNameService) {
  const passwd* user = getpwuid(getuid());
  if (user == nullptr) GTEST_SKIP() << "the user who runs this has no name";
  UserGroups groups;
  const auto first = groups.of(user->pw_name, user->pw_gid, kNow);
  EXPECT_NE(std::find(first.begin(), first.end(), user->pw_gid), first.end());
  EXPECT_EQ(groups.of(user->pw_name, user->pw_gid, kNow), first);
  EXPECT_EQ(groups.of(user->pw_name, user->pw_gid, kNow + 2 * UserGroups::kRemembered), first);
}

TEST(UserGroups, WhoIsNotKnownHasTheGroupOfTheOrder) {
  UserGroups groups;
  EXPECT_EQ(groups.of("", 4711, kNow), std::vector<std::uint32_t>{4711});
  EXPECT_EQ(groups.of("no-such-user-anywhere", 4711, kNow), std::vector<std::uint32_t>{4711});
  // The same name with another group is another question.
  EXPECT_EQ(groups.of("no-such-user-anywhere", 12, kNow), std::vector<std::uint32_t>{12});
}

}  // namespace
}  // namespace tutti::agent
