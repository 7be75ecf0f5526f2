#include "base/text.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

namespace tutti {
namespace {
using Pieces = std::vector<std::string_view>;

TEST(Text, SplitsAndJoins) {
  EXPECT_EQ(split("a,,b", ','), (Pieces{"a", "", "b"}));
  EXPECT_EQ(split("a,,b,", ',', EmptyPieces::kDrop), (Pieces{"a", "b"}));
  EXPECT_EQ(split("", ','), (Pieces{""}));
  EXPECT_TRUE(split("", ',', EmptyPieces::kDrop).empty());
  EXPECT_EQ(split_outside_brackets("a[1,2],b(3,(4,5)),c", ','),
            (Pieces{"a[1,2]", "b(3,(4,5))", "c"}));
  EXPECT_EQ(split_outside_brackets("a],b[c,d", ','), (Pieces{"a]", "b[c,d"}));
  EXPECT_EQ(split_once("k=v=w", '=')->second, "v=w");
  EXPECT_FALSE(split_once("k", '='));
  EXPECT_EQ(join(Pieces{"a", "", "b"}, ", "), "a, , b");
  EXPECT_EQ(join(std::vector<std::string>{}, ","), "");
  EXPECT_EQ(trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(trim("  "), "");
}

TEST(Text, IgnoresCaseOnlyWhereSaid) {
  EXPECT_TRUE(equals_ci("SigTerm", "SIGTERM"));
  EXPECT_FALSE(equals_ci("TERM", "TERMS"));
  EXPECT_TRUE(starts_with_ci("SIGusr1", "sig"));
  EXPECT_FALSE(starts_with_ci("SI", "sig"));
  EXPECT_EQ(upper("a-Z\xC3\xA9"), "A-Z\xC3\xA9");
}

TEST(Text, IntegersAreWholeAndInRange) {
  EXPECT_EQ(parse_integer<int>("-12"), -12);
  EXPECT_EQ(parse_integer<std::uint8_t>("255"), 255);
  for (std::string_view bad : {"", "256", "-1", "1 ", " 1", "+1", "1x", "0x1", "1.0"})
    EXPECT_FALSE(parse_integer<std::uint8_t>(bad)) << bad;
}

TEST(Text, EditDistanceIsAMetric) {
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  const unsigned seed = 7;
  std::mt19937 random(seed);
  auto word = [&] {
    std::string w(random() % 8, 'a');
    for (char& c : w) c = static_cast<char>('a' + random() % 3);
    return w;
  };
  for (int i = 0; i < 500; ++i) {
    std::string a = word(), b = word(), c = word();
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + a + " " + b + " " + c);
    EXPECT_EQ(edit_distance(a, b), edit_distance(b, a));
    EXPECT_EQ(edit_distance(a, b) == 0, a == b);
    EXPECT_LE(edit_distance(a, c), edit_distance(a, b) + edit_distance(b, c));
  }
}

TEST(Text, ClosestMatchNeedsToBeClose) {
  constexpr std::array<std::string_view, 4> kWords{"partition", "nodes", "ntasks", "n"};
  EXPECT_EQ(closest_match("partiton", kWords), "partition");
  EXPECT_EQ(closest_match("NODE", kWords), "nodes");
  EXPECT_FALSE(closest_match("banana", kWords));
  EXPECT_FALSE(closest_match("x", kWords));
  EXPECT_FALSE(closest_match(std::string(1000, 'n'), kWords));
}

TEST(Text, QuoteIsPrintable) {
  EXPECT_EQ(quote("a\nb"), "\"a\\x0ab\"");
  EXPECT_EQ(quote(std::string(100, 'x')), fmt::format("\"{}...\"", std::string(60, 'x')));
  EXPECT_EQ(quote(std::string(59, 'x') + "\xC3\xA9"),
            fmt::format("\"{}...\"", std::string(59, 'x')));
}
}  // namespace
}  // namespace tutti
