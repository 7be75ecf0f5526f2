#include <gtest/gtest.h>

#include <random>

#include "base/dependency_text.h"
#include "base/node_constraint.h"

namespace tutti {
namespace {
TEST(NodeConstraint, ReadsAndWrites) {
  struct Case {
    std::string_view text, canonical;
  };
  for (auto [text, canonical] :
       {Case{"a", "a"}, Case{"a&b", "a&b"}, Case{"a | b", "a|b"}, Case{"a|b&c", "a|b&c"},
        Case{"a|(b&c)", "a|(b&c)"}, Case{"(a|b)&c", "a|b&c"},
        Case{"[rack1|rack2]", "[rack1|rack2]"}, Case{"a*4", "a*4"},
        Case{"[(a&b)*2&c*1]", "(a&b)*2&c*1"}, Case{"((a))", "a"}, Case{"a&(b&c)", "a&b&c"},
        Case{"[a]", "a"}, Case{"[a|b]*4&x", "[a|b]*4&x"}, Case{"a&[b|c]", "a&[b|c]"},
        Case{"gpu:h100_80-x.y", "gpu:h100_80-x.y"}}) {
    auto constraint = parse_node_constraint(text);
    ASSERT_TRUE(constraint) << text << ": " << constraint.error().message;
    EXPECT_EQ(to_string(*constraint), canonical) << text;
    EXPECT_EQ(parse_node_constraint(canonical).value(), *constraint) << text;
  }
  EXPECT_EQ(parse_node_constraint("[a|b]")->kind, NodeConstraint::Kind::kSame);
  EXPECT_EQ(parse_node_constraint("a|b&c")->kind, NodeConstraint::Kind::kAll);
  EXPECT_EQ(parse_node_constraint("a*4")->node_count, 4u);
}

TEST(NodeConstraint, RefusalsNameThePlace) {
  struct Case {
    std::string_view text, says;
  };
  for (auto [text, says] :
       {Case{"", "expected a feature at character 1"},
        Case{"a&", "expected a feature at character 3"},
        Case{"a,b", "expected & or | at character 2"}, Case{"(a", "expected )"},
        Case{"[a)", "expected ]"}, Case{"a*0", "number of nodes"}, Case{"a*", "number of nodes"},
        Case{"(a*2)*3", "second *"}, Case{"a b", "expected & or |"}, Case{"a)", "expected & or |"},
        Case{"((((((((((((((((((((a", "nested too deeply"}}) {
    auto constraint = parse_node_constraint(text);
    ASSERT_FALSE(constraint) << text;
    EXPECT_NE(constraint.error().message.find(says), std::string::npos)
        << constraint.error().message;
  }
}

// A random tree as text with all parentheses, and what it is worth when only some features hold.
std::pair<std::string, bool> random_tree(std::mt19937& random, unsigned features, int depth) {
  if (depth == 0 || random() % 3 == 0) {
    unsigned f = random() % 4;
    return {std::string(1, static_cast<char>('a' + f)), (features >> f & 1) != 0};
  }
  auto [left, l] = random_tree(random, features, depth - 1);
  auto [right, r] = random_tree(random, features, depth - 1);
  if (random() % 2) return {fmt::format("({}&{})", left, right), l && r};
  return {fmt::format("({}|{})", left, right), l || r};
}

TEST(NodeConstraint, MeansTheSameAfterPrinting) {
  for (unsigned seed = 1; seed <= 500; ++seed) {
    std::mt19937 random(seed);
    unsigned features = random() % 16;
    auto [text, worth] = random_tree(random, features, 4);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + text);
    auto has = [&](std::string_view f) { return (features >> (f[0] - 'a') & 1) != 0; };
    auto constraint = parse_node_constraint(text);
    ASSERT_TRUE(constraint);
    EXPECT_EQ(node_may_serve(*constraint, has), worth);
    EXPECT_EQ(parse_node_constraint(to_string(*constraint)).value(), *constraint);
  }
}

TEST(NodeConstraint, ACountedTermIsForSomeNodesOnly) {
  auto constraint = parse_node_constraint("x&a*2&b*1").value();
  auto serves = [&](std::string_view features) {
    return node_may_serve(
        constraint, [&](std::string_view f) { return features.find(f) != std::string_view::npos; });
  };
  EXPECT_TRUE(serves("xa"));
  EXPECT_TRUE(serves("xb"));
  EXPECT_FALSE(serves("x"));
  EXPECT_FALSE(serves("ab"));
}

TEST(DependencyText, ReadsAndWrites) {
  struct Case {
    std::string_view text, canonical;
  };
  for (auto [text, canonical] :
       {Case{"afterok:12:13_4,afterany:5", "afterok:12:13_4,afterany:5"},
        Case{"AfterOK:12", "afterok:12"}, Case{"singleton", "singleton"},
        Case{"after:5+10", "after:5+10"}, Case{"after:5+10:6", "after:5+10:6"},
        Case{"afterany:5?singleton", "afterany:5?singleton"}, Case{"12", "afterany:12"},
        Case{"12:13", "afterany:12:13"}, Case{"aftercorr:7", "aftercorr:7"},
        Case{"afternotok:7_0, singleton", "afternotok:7_0,singleton"},
        Case{"afterok:19_*", "afterok:19"}}) {
    auto list = parse_dependencies(text);
    ASSERT_TRUE(list) << text << ": " << list.error().message;
    EXPECT_EQ(to_string(*list), canonical) << text;
    EXPECT_EQ(parse_dependencies(canonical).value(), *list) << text;
  }
  EXPECT_TRUE(parse_dependencies("1?2")->any);
}

TEST(DependencyText, RefusalsSayWhatWasExpected) {
  struct Case {
    std::string_view text, says;
  };
  for (auto [text, says] :
       {Case{"bogus:1", "expected after, afterany"}, Case{"afterk:1", "did you mean after"},
        Case{"expand:1", "not supported"}, Case{"afterburstbuffer:1", "not supported"},
        Case{"afterok", "expected :JOBID"}, Case{"afterok:", "expected a job id"},
        Case{"afterok:0", "expected a job id"}, Case{"afterok:x", "expected a job id"},
        Case{"afterok:1+5", "after alone"}, Case{"after:1+", "after alone"},
        Case{"afterok:1_x", "task index"}, Case{"singleton:1", "no job id"},
        Case{"afterok:1,afterok:2?afterok:3", "not both"}, Case{"", "expected after"},
        Case{"afterok:1,", "expected after"}}) {
    auto list = parse_dependencies(text);
    ASSERT_FALSE(list) << text;
    EXPECT_NE(list.error().message.find(says), std::string::npos) << list.error().message;
    EXPECT_EQ(list.error().reason, "invalid_dependency");
  }
}
}  // namespace
}  // namespace tutti
