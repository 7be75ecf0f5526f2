#include "base/id_set.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

namespace tutti {
namespace {

std::vector<std::uint32_t> all(const IdSet& set) { return {set.begin(), set.end()}; }

TEST(IdSet, HoldsTheEndsOfWordsAndOfTheRange) {
  IdSet set;
  for (std::uint32_t id : {64u, 63u, 0u, 127u, ~0u, 128u}) EXPECT_TRUE(set.insert(id));
  EXPECT_FALSE(set.insert(63));
  EXPECT_EQ(all(set), (std::vector<std::uint32_t>{0, 63, 64, 127, 128, ~0u}));
  EXPECT_EQ(set.erase(64), 1u);
  EXPECT_EQ(set.erase(64), 0u);
  EXPECT_EQ(set.erase(65), 0u);
  EXPECT_FALSE(set.contains(64));
  EXPECT_TRUE(set.contains(127));
  EXPECT_EQ(set.size(), 5u);
}

TEST(IdSet, EqualsAnOrdinarySetThroughRandomChanges) {
  std::mt19937 random(7);
  IdSet set;
  std::set<std::uint32_t> plain;
  for (int i = 0; i < 20'000; ++i) {
    std::uint32_t id = random() % 700;
    if (random() % 2 == 0)
      EXPECT_EQ(set.insert(id), plain.insert(id).second);
    else
      EXPECT_EQ(set.erase(id), plain.erase(id));
    ASSERT_EQ(set.size(), plain.size());
  }
  EXPECT_EQ(all(set), std::vector<std::uint32_t>(plain.begin(), plain.end()));
  IdSet again;
  for (auto id = plain.rbegin(); id != plain.rend(); ++id) again.insert(*id);
  EXPECT_EQ(again, set);
  for (std::uint32_t id : plain) set.erase(id);
  EXPECT_TRUE(set.empty());
  EXPECT_EQ(set, IdSet());
}

}  // namespace
}  // namespace tutti
