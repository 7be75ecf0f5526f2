#include "frontend/slurm/sbatch_script.h"

#include <gtest/gtest.h>

namespace tutti::slurm {
namespace {

TEST(ScriptReader, StopsReadingOnceTheScriptIsTooLarge) {
  std::size_t given = 0;
  ScriptReader reader(
      [&](std::span<char> into) -> Result<std::size_t> {
        std::ranges::fill(into, 'x');
        given += into.size();
        return into.size();
      },
      "big.sh");
  auto text = reader.read();
  ASSERT_FALSE(text.has_value());
  EXPECT_EQ(text.error().text,
            "sbatch: error: big.sh is larger than a batch script may be (4 MiB)\n");
  EXPECT_LE(given, kMaxScriptBytes + 1);
}

TEST(ScriptReader, TakesAScriptOfExactlyTheLimit) {
  std::size_t left = kMaxScriptBytes;
  ScriptReader reader(
      [&](std::span<char> into) -> Result<std::size_t> {
        std::size_t n = std::min(into.size(), left);
        std::fill_n(into.begin(), n, 'x');
        left -= n;
        return n;
      },
      "big.sh");
  auto text = reader.read();
  ASSERT_TRUE(text.has_value());
  EXPECT_EQ(text->size(), kMaxScriptBytes);
}

TEST(CheckScript, RefusesBinaryGarbage) {
  using namespace std::string_view_literals;
  auto checked = check_script("#!/bin/bash\n\0\x7f"sv);
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().text,
            "sbatch: error: The Slurm controller does not allow scripts that\n"
            "sbatch: error: contain a NULL character '\\0'.\n");
  EXPECT_FALSE(check_script("\x7f\x45LF\x01\x02"sv).has_value());
}

TEST(ScriptDirectives, EndAtTheFirstCommandAndKnowTheirPlaces) {
  auto directives = script_directives(
      "#!/bin/bash\n"
      "#SBATCH --comment='a b' -J\t\"x y\"  # said\n"
      "   # a remark\n"
      "#SBATCH\n"
      "  #SBATCH --not=one\n"
      "#SBATCH \t-n 2\n"
      "hostname\n"
      "#SBATCH -N 9\n",
      "job.sh");
  ASSERT_TRUE(directives.has_value());
  ASSERT_EQ(directives->list.size(), 2U);
  EXPECT_EQ(directives->list[0].words, (std::vector<std::string>{"--comment=a b", "-J", "x y"}));
  EXPECT_EQ(directives->list[0].span.line, 2U);
  EXPECT_EQ(directives->list[0].span.column, 9U);
  EXPECT_EQ(directives->list[1].words, (std::vector<std::string>{"-n", "2"}));
  EXPECT_EQ(directives->list[1].span.line, 6U);
  EXPECT_EQ(directives->list[1].span.column, 10U);
}

}  // namespace
}  // namespace tutti::slurm
