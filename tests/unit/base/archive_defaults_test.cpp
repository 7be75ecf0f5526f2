// A record's own defaults decide what is left out, so a zero survives where the default is not zero.
#include <gtest/gtest.h>

#include "base/archive.h"

namespace tutti {
namespace {
struct Limits {
  std::uint32_t umask = 0022;
  std::uint32_t tasks = 1;
  bool requeue = true;
  std::string kind = "gpu";
};
void describe(auto& a, Limits& x) {
  a("umask", x.umask);
  a("tasks", x.tasks);
  a("requeue", x.requeue);
  a("kind", x.kind);
}
TEST(ArchiveDefaults, ZeroSurvivesANonZeroDefault) {
  EXPECT_EQ(to_json(Limits{}), "{}");
  Limits changed{.umask = 0, .tasks = 0, .requeue = false, .kind = ""};
  std::string text = to_json(changed);
  EXPECT_EQ(text, R"({"umask":0,"tasks":0,"requeue":false,"kind":""})");
  auto back = from_json<Limits>(std::string_view(text));
  ASSERT_TRUE(back);
  EXPECT_EQ(to_json(*back), text);
}
}  // namespace
}  // namespace tutti
