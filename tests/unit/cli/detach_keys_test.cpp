#include <gtest/gtest.h>

#include "cli/step_client.h"

namespace tutti::cli {
namespace {

TEST(DetachKeys, DetachWhateverTheReadsAreCutInto) {
  DetachKeys together;
  EXPECT_EQ(together.pass("ab\x02" "dc"), "ab");
  EXPECT_TRUE(together.is_detached());
  DetachKeys apart;
  EXPECT_EQ(apart.pass("\x02"), "");
  EXPECT_FALSE(apart.is_detached());
  EXPECT_EQ(apart.pass("D"), "");
  EXPECT_TRUE(apart.is_detached());
}

TEST(DetachKeys, OtherKeysArriveAsTyped) {
  DetachKeys keys;
  EXPECT_EQ(keys.pass("d\x02" "x"), "d\x02" "x");
  EXPECT_EQ(keys.pass("\x02\x02" "d"), "\x02" "d");
  EXPECT_FALSE(keys.is_detached());
}

}  // namespace
}  // namespace tutti::cli
