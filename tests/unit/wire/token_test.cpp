#include "wire/token.h"

#include <sys/stat.h>

#include <fstream>

#include "tests/unit/wire/support.h"

namespace tutti::wire {
namespace {

TEST(TokenTest, ComparesAndNeverMatchesNothing) {
  EXPECT_TRUE(equal_constant_time("secret", "secret"));
  EXPECT_FALSE(equal_constant_time("secret", "secreT"));
  EXPECT_FALSE(equal_constant_time("secret", "secrets"));
  EXPECT_FALSE(equal_constant_time("", ""));
}

TEST(TokenTest, TokensAreLongAndDiffer) {
  const std::string token = make_token();
  EXPECT_EQ(token.size(), 64U);
  EXPECT_EQ(token.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(token, make_token());
}

TEST(TokenTest, KeyFilesArePrivateAndReplacedWhole) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "key";
  EXPECT_EQ(read_key_file(path).error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(write_key_file(path, "first"));
  ASSERT_TRUE(write_key_file(path, "second"));
  struct stat info{};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0600U);
  EXPECT_EQ(read_key_file(path).value(), "second");

  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  const auto open_to_others = read_key_file(path);
  ASSERT_FALSE(open_to_others);
  EXPECT_EQ(open_to_others.error().code, ErrorCode::kDenied);
  EXPECT_NE(open_to_others.error().message.find("0640"), std::string::npos);

  ASSERT_TRUE(write_key_file(path, ""));
  EXPECT_EQ(read_key_file(path).error().code, ErrorCode::kInvalid);
  ASSERT_TRUE(write_key_file(path, std::string(4097, 'k')));
  EXPECT_EQ(read_key_file(path).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(read_key_file(folder / ".").error().code, ErrorCode::kInvalid);
  EXPECT_FALSE(write_key_file(folder / "missing/key", "k"));
}

TEST(EndpointTest, ParsesAndPrints) {
  for (const char* text :
       {"unix:/run/tutti.sock", "127.0.0.1:80", "[::1]:8080", "head.example:1"}) {
    const auto endpoint = Endpoint::parse(text);
    ASSERT_TRUE(endpoint) << text;
    EXPECT_EQ(to_string(*endpoint), text);
  }
  EXPECT_EQ(to_string(Endpoint::parse("/run/x").value()), "unix:/run/x");
  EXPECT_EQ(to_string(Endpoint::parse("http://[::1]:9/").value()), "[::1]:9");
  for (const char* text : {"", "host", "host:", ":80", "host:99999", "::1:80", "host:8x"}) {
    EXPECT_FALSE(Endpoint::parse(text)) << text;
  }
}

}  // namespace
}  // namespace tutti::wire
