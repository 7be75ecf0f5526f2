#include "base/text_table.h"

#include <gtest/gtest.h>

#include <random>

#include "base/text.h"

namespace tutti {
namespace {
TEST(TextTable, AlignsAndLeavesNoBlanksAtTheEnd) {
  TextTable table({{"JOB", Align::kRight}, {"NAME"}, {"STATE"}});
  table.add_row({"7", "train", "running"});
  table.add_row({"1234", "\u8bad\u7ec3\u00e9", "wait"});
  table.add_row({"8"});
  EXPECT_EQ(table.render(),
            " JOB  NAME   STATE\n"
            "   7  train  running\n"
            "1234  \u8bad\u7ec3\u00e9  wait\n"
            "   8\n");
}

TEST(TextTable, ShrinksTheWidestColumnThatMay) {
  TextTable table({{"ID"}, {"COMMAND", Align::kLeft, Shrink::kAllowed}, {"REASON"}});
  table.add_row({"1", "python train.py --config large", "waiting for 4 GPUs"});
  EXPECT_EQ(table.render(40),
            "ID  COMMAND           REASON\n"
            "1   python train.py\u2026  waiting for 4 GPUs\n");
  // Too narrow for what may not shrink: whole cells rather than lost ones.
  EXPECT_NE(table.render(10).find("waiting for 4 GPUs"), std::string::npos);
  EXPECT_NE(table.render(0).find("--config large"), std::string::npos);
}

TEST(TextTable, KeepsWithinTheWidthWhateverTheCells) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    TextTable table(
        {{"A", Align::kLeft, Shrink::kAllowed}, {"B", Align::kRight, Shrink::kAllowed}});
    for (int row = 0; row < 3; ++row) {
      std::string a, b;
      for (unsigned i = 0, n = random() % 80; i < n; ++i) a += static_cast<char>(random());
      for (unsigned i = 0, n = random() % 40; i < n; ++i) b += random() % 2 ? "\u8bad" : "e\u0301";
      table.add_row({a, b});
    }
    std::string text = table.render(40);
    for (std::string_view line : split(text, '\n')) {
      EXPECT_LE(display_width(line), 40u);
      EXPECT_EQ(printable(line), line);
    }
    EXPECT_EQ(split(text, '\n').size(), 5u);
  }
}

TEST(TextTable, WidthsOfCharacters) {
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("e\u0301"), 1u);
  EXPECT_EQ(display_width("\u8bad\U0001F680"), 4u);
  EXPECT_EQ(display_width("\xFF\xC3"), 2u);
  EXPECT_EQ(cut_to_width("\u8bad\u7ec3", 3), "\u8bad\u2026");
  EXPECT_EQ(cut_to_width("\u8bad\u7ec3", 2), "\u2026");
  EXPECT_EQ(cut_to_width("abc", 3), "abc");
  EXPECT_EQ(printable("\x1b[31mred\n\xC2\x9B"), "?[31mred??");
}
}  // namespace
}  // namespace tutti
