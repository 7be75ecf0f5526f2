#include "base/log.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/text.h"

namespace tutti {
namespace {
namespace fs = std::filesystem;

class LogTest : public testing::Test {
 protected:
  LogTest() {
    std::string pattern = testing::TempDir() + "tutti-log-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~LogTest() override { fs::remove_all(folder_); }

  LogOptions options() {
    LogOptions options;
    options.clock = [this] { return now_; };
    return options;
  }
  static std::string read(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }

  fs::path folder_;
  Instant now_ = Instant::from_ms(1796068842123);
};

TEST_F(LogTest, WritesOneQuotedLinePerEvent) {
  Log log = Log::to_file(folder_ / "a" / "log.txt", options()).value();
  log.info("job_started", {{"job", 31u},
                           {"nodes", "node[01-02]"},
                           {"script", "a b.sh"},
                           {"empty", ""},
                           {"ok", true},
                           {"share", 0.5}});
  log.debug("not_shown");
  log.error("bad \"name\"", {{"text", std::string("x\ny\\z=\x01")}});
  log.warning("failed", {{"error", Error{ErrorCode::kInvalid, {}, "no", {}}}});
  EXPECT_EQ(read(folder_ / "a" / "log.txt"),
            "2026-11-30T20:00:42.123Z info job_started job=31 nodes=node[01-02] script=\"a b.sh\" "
            "empty=\"\" ok=true share=0.5\n"
            "2026-11-30T20:00:42.123Z error \"bad \\\"name\\\"\" text=\"x\\ny\\\\z=\\x01\"\n"
            "2026-11-30T20:00:42.123Z warning failed error=no\n");
  EXPECT_EQ(log.lost(), 0u);
}

TEST_F(LogTest, RotatesAndStaysBounded) {
  LogOptions small = options();
  small.max_bytes = 1000;
  small.files = 3;
  Log log = Log::to_file(folder_ / "log.txt", small).value();
  for (int i = 0; i < 500; ++i) log.info("event", {{"number", i}});
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    ++files;
    EXPECT_LE(entry.file_size(), 1000u) << entry.path();
  }
  EXPECT_EQ(files, 3u);
  EXPECT_NE(read(folder_ / "log.txt").find("number=499\n"), std::string::npos);
  EXPECT_TRUE(fs::exists(folder_ / "log.2.txt"));
}

TEST_F(LogTest, AFullDiskLosesLinesAndNothingElse) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  fs::create_symlink("/dev/full", folder_ / "log.txt");
  Log log = Log::to_file(folder_ / "log.txt", options()).value();
  log.info("one");
  log.info("two");
  EXPECT_EQ(log.lost(), 2u);
  fs::remove(folder_ / "log.txt");
  log.info("three");  // within a second of the failure: not tried
  EXPECT_EQ(log.lost(), 3u);
  now_ = now_ + Duration::seconds(1);
  log.info("four");
  EXPECT_EQ(log.lost(), 3u);
  EXPECT_EQ(read(folder_ / "log.txt"),
            "2026-11-30T20:00:43.123Z warning log_lines_lost count=3\n"
            "2026-11-30T20:00:43.123Z info four\n");
}

TEST_F(LogTest, AFolderThatGoesAwayWhileRotatingIsSurvived) {
  LogOptions small = options();
  small.max_bytes = 100;
  Log log = Log::to_file(folder_ / "sub" / "log.txt", small).value();
  fs::remove_all(folder_ / "sub");
  std::ofstream(folder_ / "sub") << "a file where the folder was";
  for (int i = 0; i < 20; ++i) log.info("event", {{"number", i}});
  EXPECT_GT(log.lost(), 0u);
  fs::remove(folder_ / "sub");
  now_ = now_ + Duration::seconds(2);
  std::uint64_t lost = log.lost();
  log.info("back");
  EXPECT_EQ(log.lost(), lost);
  EXPECT_NE(read(folder_ / "sub" / "log.txt").find("back"), std::string::npos);
}

TEST_F(LogTest, OpeningWhatCannotBeOpenedIsAnError) {
  auto log = Log::to_file("/dev/null/log.txt", options());
  ASSERT_FALSE(log);
  EXPECT_NE(log.error().message.find("/dev/null/log.txt"), std::string::npos);
}

TEST_F(LogTest, ThreadsDoNotMixTheirLines) {
  std::vector<std::string> lines;
  Log log = Log::to_sink(
      [&](std::string_view line) {
        lines.emplace_back(line);
        return true;
      },
      options());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 250; ++i) log.info("event", {{"thread", t}});
    });
  }
  for (auto& thread : threads) thread.join();
  ASSERT_EQ(lines.size(), 1000u);
  for (const std::string& line : lines)
    EXPECT_TRUE(line.starts_with("2026-11-30T20:00:42.123Z info event thread=")) << line;
}

TEST(LogSinks, ASinkThatThrowsIsALostLine) {
  Log log = Log::to_sink([](std::string_view) -> bool { throw std::runtime_error("x"); });
  log.error("event");
  EXPECT_EQ(log.lost(), 1u);
  Log::discard().error("event");
  EXPECT_EQ(parse_log_level("Warning").value(), LogLevel::kWarning);
  EXPECT_FALSE(parse_log_level("loud"));
}
}  // namespace
}  // namespace tutti
