// The tables of MIG profiles against what NVIDIA's user guide says of each GPU.
#include "scheduler/mig.h"

#include <gtest/gtest.h>

#include <vector>

namespace tutti::scheduler {
namespace {

// Instances of one profile that lie on an empty device together, placed greedily.
int instances(std::string_view type, std::uint64_t memory_mib, std::string_view name) {
  auto profile = mig_profile(type, memory_mib, name);
  if (!profile) return 0;
  std::uint32_t used = 0;
  int count = 0;
  for (std::uint16_t start : profile->starts) {
    if ((profile->mask_at(start) & used) != 0) continue;
    used |= profile->mask_at(start);
    ++count;
  }
  return count;
}

TEST(Mig, AsManyInstancesAsTheGuideSays) {
  for (auto [name, count] : {std::pair("1g.10gb", 7), std::pair("1g.20gb", 4),
                             std::pair("2g.20gb", 3), std::pair("3g.40gb", 2),
                             std::pair("4g.40gb", 1), std::pair("7g.80gb", 1),
                             std::pair("1g.10gb+me", 1)}) {
    EXPECT_EQ(instances("h100", 81559, name), count) << name;
    EXPECT_EQ(instances("NVIDIA A100-SXM4-80GB", 81920, name), count) << name;
  }
  EXPECT_EQ(instances("a100", 40960, "1g.5gb"), 7);
  EXPECT_EQ(instances("a100", 40960, "1g.10gb"), 4);  // two slices there
  EXPECT_EQ(instances("a100", 40960, "3g.40gb"), 0);
  EXPECT_EQ(instances("h200", 143771, "1g.18gb"), 7);
  EXPECT_EQ(instances("h200", 143771, "3g.71gb"), 2);
  EXPECT_EQ(instances("h200", 143771, "7g.141gb"), 1);
  EXPECT_EQ(instances("a30", 24576, "1g.6gb"), 4);
  EXPECT_EQ(instances("gh200", 97871, "7g.96gb"), 1);
  EXPECT_EQ(instances("l40s", 46068, "1g.10gb"), 0);
}

TEST(Mig, InstancesBeginWhereTheDriverLetsThem) {
  auto three = mig_profile("h100", 81559, "3g.40gb");
  auto four = mig_profile("h100", 81559, "4g.40gb");
  ASSERT_TRUE(three && four);
  EXPECT_EQ(std::vector(three->starts.begin(), three->starts.end()),
            (std::vector<std::uint16_t>{0, 4}));
  EXPECT_EQ(std::vector(four->starts.begin(), four->starts.end()),
            (std::vector<std::uint16_t>{0}));
  EXPECT_EQ(three->mask_at(4) & four->mask_at(0), 0U);
  EXPECT_NE(three->mask_at(0) & four->mask_at(0), 0U);
}

}  // namespace
}  // namespace tutti::scheduler
