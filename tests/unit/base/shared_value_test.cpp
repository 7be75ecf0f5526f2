#include "base/shared_value.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/archive.h"

namespace tutti {
namespace {

using Words = SharedValue<std::vector<std::string>>;

struct Part {
  int weight = 3;
  std::string note;
  friend bool operator==(const Part&, const Part&) = default;
};
template <class A>
void describe(A& a, Part& x) {
  a("weight", x.weight);
  a("note", x.note);
}
struct Whole {
  Words words;
  SharedValue<Part> part;
};
template <class A>
void describe(A& a, Whole& x) {
  a("words", x.words);
  a("part", x.part);
}

TEST(SharedValue, EditingOneOwnerLeavesTheOthersAlone) {
  Words one{"a", "b"};
  Words two = one;
  two.edit().push_back("c");
  EXPECT_EQ(one.get(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(two.get(), (std::vector<std::string>{"a", "b", "c"}));
  Words fresh;
  fresh.edit().push_back("x");
  EXPECT_TRUE(Words().empty());
}

TEST(SharedValue, UnifiesOnlyWhatIsEqual) {
  Words one{"a"}, same{"a"}, other{"b"};
  EXPECT_NE(&one.get(), &same.get());
  EXPECT_TRUE(same.unify(one));
  EXPECT_EQ(&one.get(), &same.get());
  EXPECT_FALSE(other.unify(one));
  EXPECT_EQ(other.front(), "b");
  same.edit()[0] = "z";
  EXPECT_EQ(one.front(), "a");
}

TEST(SharedValue, IsArchivedAsItsValueAndLeftOutWhileDefault) {
  EXPECT_EQ(to_json(Whole{}), "{}");
  Whole whole;
  whole.words = {"a"};
  whole.part.edit().weight = 0;
  const std::string text = to_json(whole);
  EXPECT_EQ(text, R"({"words":["a"],"part":{"weight":0}})");
  auto back = from_json<Whole>(std::string_view(text));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->words, whole.words);
  EXPECT_EQ(back->part, whole.part);
}

}  // namespace
}  // namespace tutti
