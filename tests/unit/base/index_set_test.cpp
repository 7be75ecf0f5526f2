#include "base/index_set.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <set>

namespace tutti {
namespace {
constexpr std::uint32_t kMax = 1'000'000;

TEST(IndexSet, BehavesAsASetAndStaysCanonical) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    IndexSet set;
    std::set<std::uint32_t> model;
    for (int step = 0; step < 300; ++step) {
      std::uint32_t first = random() % 60, last = first + random() % (random() % 2 ? 1 : 12);
      bool insert = random() % 2;
      insert ? set.insert(first, last) : set.erase(first, last);
      for (std::uint32_t i = first; i <= last; ++i) {
        if (insert)
          model.insert(i);
        else
          model.erase(i);
      }
      ASSERT_EQ(set.count(), model.size());
      for (std::uint32_t i = 0; i < 75; ++i) {
        ASSERT_EQ(set.contains(i), model.count(i) == 1) << i;
        auto next = model.lower_bound(i);
        ASSERT_EQ(set.next(i).value_or(999), next == model.end() ? 999 : *next);
      }
      ASSERT_EQ(set.first().value_or(999), model.empty() ? 999 : *model.begin());
      ASSERT_EQ(set.last().value_or(999), model.empty() ? 999 : *model.rbegin());
      for (std::size_t i = 1; i < set.ranges().size(); ++i)
        ASSERT_GT(set.ranges()[i].first, set.ranges()[i - 1].last + 1);
      if (!set.empty()) {
        ASSERT_EQ(parse_index_set(set.to_string(), kMax).value(), set);
      }
    }
  }
}

TEST(IndexSet, WorksAtTheEndsOfTheNumbers) {
  constexpr auto kLast = std::numeric_limits<std::uint32_t>::max();
  IndexSet set = IndexSet::of(0, kLast);
  EXPECT_EQ(set.count(), std::uint64_t{1} << 32);
  set.erase(0);
  set.erase(kLast);
  EXPECT_EQ(set, IndexSet::of(1, kLast - 1));
  set.insert(kLast);
  set.insert(0);
  EXPECT_EQ(set.ranges().size(), 1u);
}

TEST(ArraySpec, ReadsAndFoldsAsSlurm) {
  struct Case {
    std::string_view text, folded;
    std::uint64_t count;
    std::uint32_t limit;
  };
  for (auto [text, folded, count, limit] :
       {Case{"0-99%4", "0-99", 100, 4}, Case{"1,3,5-9:2%1", "1,3,5,7,9", 5, 1},
        Case{"7", "7", 1, 0}, Case{"5,3,4,3", "3-5", 3, 0}, Case{"0-20:4", "0-20:4", 6, 0},
        Case{"0-20:7", "0-14:7", 3, 0}, Case{"1-2", "1-2", 2, 0}, Case{"0-5:100", "0", 1, 0},
        Case{"0-1000000", "0-1000000", 1'000'001, 0}, Case{"2-7%2", "2-7", 6, 2}}) {
    auto spec = parse_array_spec(text, kMax);
    ASSERT_TRUE(spec) << text << ": " << spec.error().message;
    EXPECT_EQ(spec->indexes.to_string(), folded);
    EXPECT_EQ(spec->indexes.count(), count) << text;
    EXPECT_EQ(spec->max_at_once, limit) << text;
  }
  EXPECT_EQ(parse_array_spec("0-1000000", kMax)->indexes.ranges().size(), 1u);
}

TEST(ArraySpec, RefusalsSayWhy) {
  struct Case {
    std::string_view text, says;
  };
  for (auto [text, says] :
       {Case{"5-1", "backwards"}, Case{"1-x", "expected N"}, Case{"", "expected N"},
        Case{"1,,2", "expected N"}, Case{"1-5:0", "step"}, Case{"1:2", "expected N"},
        Case{"0-1000001", "greatest allowed, 1000000"}, Case{"1%x", "after %"},
        Case{"-1", "expected N"}, Case{"1-2-3", "expected N"}, Case{"1%", "after %"},
        Case{"99999999999999999999", "expected N"}}) {
    auto spec = parse_array_spec(text, kMax);
    ASSERT_FALSE(spec) << text;
    EXPECT_NE(spec.error().message.find(says), std::string::npos) << spec.error().message;
    EXPECT_EQ(spec.error().reason, "invalid_array");
  }
}
}  // namespace
}  // namespace tutti
