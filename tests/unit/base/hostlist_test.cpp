#include "base/hostlist.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace tutti {
namespace {
using Names = std::vector<std::string>;

TEST(Hostlist, ExpandsAsScontrolShowHostnames) {
  EXPECT_EQ(expand_hostlist("node[01-03,07],gpu[1-2]x[08-10],n5").value(),
            (Names{"node01", "node02", "node03", "node07", "gpu1x08", "gpu1x09", "gpu1x10",
                   "gpu2x08", "gpu2x09", "gpu2x10", "n5"}));
  EXPECT_EQ(expand_hostlist("a[9-11], b ,,c").value(), (Names{"a9", "a10", "a11", "b", "c"}));
  EXPECT_EQ(expand_hostlist("a[1]-ib,a[1]-ib").value(), (Names{"a1-ib", "a1-ib"}));
  EXPECT_TRUE(expand_hostlist("").value().empty());
}

TEST(Hostlist, RefusesWhatIsNoList) {
  struct Case {
    std::string_view text, says;
  };
  for (auto [text, says] :
       {Case{"a[1-2", "without its ]"}, Case{"a]", "unopened ]"},
        Case{"a[[1]]", "expected a number"}, Case{"a[]", "expected a number"},
        Case{"a[3-1]", "backwards"}, Case{"a[1-x]", "expected a number"}, Case{"a b", "blank"},
        Case{"a(b", "parenthesis"}, Case{"a[1-100001]", "more than 100000"},
        Case{"a[0-999]b[0-999]", "more than 100000"},
        Case{"a[0-999999999999999999]", "more than 100000"},
        Case{"a[1-99999],b[1-2]", "more than 100000"}, Case{"a[-1]", "expected a number"}}) {
    auto names = expand_hostlist(text);
    ASSERT_FALSE(names) << text;
    EXPECT_NE(names.error().message.find(says), std::string::npos) << names.error().message;
  }
  EXPECT_FALSE(expand_hostlist(std::string(256, 'a')));
  EXPECT_TRUE(expand_hostlist("a[1-100000]"));
}

TEST(Hostlist, FoldsAsScontrolShowHostlist) {
  EXPECT_EQ(fold_hostlist({"node01", "node02", "node03", "node07", "gpu1", "gpu10"}),
            "node[01-03,07],gpu[1,10]");
  EXPECT_EQ(fold_hostlist({"node03", "node01", "node02"}), "node[03,01-02]");
  EXPECT_EQ(fold_hostlist({"node03", "node01", "node02"}, FoldOrder::kSorted), "node[01-03]");
  EXPECT_EQ(fold_hostlist({"n9", "n10", "n11"}), "n[9-11]");
  EXPECT_EQ(fold_hostlist({"n09", "n10", "n99", "n100"}), "n[09-10,99-100]");
  EXPECT_EQ(fold_hostlist({"n1", "n01"}), "n1,n01");
  EXPECT_EQ(fold_hostlist({"login", "login", "a1"}), "login,login,a1");
  EXPECT_EQ(fold_hostlist({"gpu1x08", "gpu1x09", "gpu2x08"}), "gpu1x[08-09],gpu2x08");
  EXPECT_EQ(fold_hostlist({}), "");
}

TEST(Hostlist, FoldAndExpandAreInverse) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    Names names;
    for (std::size_t i = 0, n = random() % 40; i < n; ++i) {
      std::string name(1, static_cast<char>('a' + random() % 2));
      if (random() % 4 == 0) name += std::to_string(random() % 3) + "x";
      std::string digits = std::to_string(random() % (random() % 2 ? 12 : 1005));
      std::size_t padding = random() % 3 == 0 ? random() % 3 : 0;
      names.push_back(name + std::string(padding, '0') + (random() % 9 ? digits : ""));
    }
    std::string folded = fold_hostlist(names);
    EXPECT_EQ(expand_hostlist(folded).value(), names) << folded;
    std::string sorted_text = fold_hostlist(names, FoldOrder::kSorted);
    Names sorted = expand_hostlist(sorted_text).value();
    EXPECT_TRUE(std::is_permutation(sorted.begin(), sorted.end(), names.begin(), names.end()));
    EXPECT_EQ(fold_hostlist(sorted), sorted_text);
  }
}

TEST(Hostlist, TenThousandNamesMakeOneRange) {
  Names names = expand_hostlist("node[00001-10000]").value();
  ASSERT_EQ(names.size(), 10'000u);
  std::reverse(names.begin(), names.end());
  EXPECT_EQ(fold_hostlist(names, FoldOrder::kSorted), "node[00001-10000]");
}

TEST(Hostlist, CountsFoldAndExpand) {
  EXPECT_EQ(fold_counts({2, 2, 2, 1}), "2(x3),1");
  EXPECT_EQ(fold_counts({}), "");
  EXPECT_EQ(expand_counts("2(x3),1").value(), (std::vector<std::uint32_t>{2, 2, 2, 1}));
  for (std::string_view bad : {"2(x0)", "2(3)", "(x3)", "x", "2(x3", "2(x100001)", "-1"})
    EXPECT_FALSE(expand_counts(bad)) << bad;
}
}  // namespace
}  // namespace tutti
