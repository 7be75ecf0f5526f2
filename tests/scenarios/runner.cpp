// Runs every scenario beside this file. `scenario_test --rewrite` puts what came out below the
// line "----" of each file; the difference is then reviewed like code.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/scenarios/scenario.h"

namespace tutti::scenarios {
namespace {

bool g_rewrite = false;

std::vector<std::filesystem::path> scenario_files() {
  std::vector<std::filesystem::path> out;
  std::filesystem::path folder = std::filesystem::path(TUTTI_SOURCE_DIR) / "tests/scenarios";
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".txt") out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

class ScenarioTest : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(ScenarioTest, GivesTheExpectedLog) {
  auto scenario = parse_scenario(read_file(GetParam()));
  ASSERT_TRUE(scenario) << GetParam() << ": " << scenario.error().message;
  std::string log = play(*scenario);
  EXPECT_EQ(play(*scenario), log) << "a second run differs";
  if (g_rewrite) {
    std::ofstream(GetParam()) << scenario->input << "\n----\n" << log;
    return;
  }
  EXPECT_EQ(log, scenario->expected) << GetParam();
}

INSTANTIATE_TEST_SUITE_P(Files, ScenarioTest, testing::ValuesIn(scenario_files()),
                         [](const auto& info) {
                           std::string name = info.param.stem().string();
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace tutti::scenarios

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i)
    if (std::strcmp(argv[i], "--rewrite") == 0) tutti::scenarios::g_rewrite = true;
  return RUN_ALL_TESTS();
}
