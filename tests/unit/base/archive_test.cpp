#include "base/archive.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {
using namespace std::string_view_literals;
enum class Colour { kRed, kBlue };
}  // namespace
template <>
struct EnumNames<Colour> {
  static constexpr std::array kTable{std::pair{Colour::kRed, "red"sv},
                                     std::pair{Colour::kBlue, "blue"sv}};
};
namespace {
struct Wheel {
  static constexpr std::string_view kName = "wheel";
  std::uint32_t spokes = 0;
  friend bool operator==(const Wheel&, const Wheel&) = default;
};
template <class A>
void describe(A& a, Wheel& x) {
  a("spokes", x.spokes);
}
struct Cart {
  static constexpr std::string_view kName = "cart";
  std::string name;
  Colour colour = Colour::kRed;
  std::vector<Wheel> wheels;
  std::optional<std::int32_t> age;
  std::map<std::string, std::string> labels;
  Duration used;
  std::variant<Wheel, std::monostate>* unused = nullptr;
};
template <class A>
void describe(A& a, Cart& x) {
  a("name", x.name);
  a("colour", x.colour);
  a("wheels", x.wheels);
  a("age", x.age);
  a("labels", x.labels);
  a("used_ms", x.used);
}
using Either = std::variant<Wheel, Cart>;

TEST(Archive, RoundTripsAndLeavesDefaultsOut) {
  Cart cart{.name = "a\"\xC3\xA9",
            .colour = Colour::kBlue,
            .wheels = {{4}, {0}},
            .age = -3,
            .labels = {{"k", "v"}},
            .used = Duration::seconds(2)};
  std::string text = to_json(cart);
  EXPECT_EQ(text,
            "{\"name\":\"a\\\"\xC3\xA9\",\"colour\":\"blue\",\"wheels\":[{\"spokes\":4},{}],"
            "\"age\":-3,\"labels\":{\"k\":\"v\"},\"used_ms\":2000}");
  auto back = from_json<Cart>(text);
  ASSERT_TRUE(back);
  EXPECT_EQ(to_json(*back), text);
  EXPECT_EQ(to_json(Cart{}), "{}");
}

TEST(Archive, VariantsCarryTheirType) {
  Either e = Wheel{7};
  EXPECT_EQ(to_json(e), R"({"type":"wheel","spokes":7})");
  auto back = from_json<Either>(std::string_view(R"({"type":"wheel","spokes":7})"));
  ASSERT_TRUE(back);
  EXPECT_EQ(std::get<Wheel>(*back).spokes, 7u);
  EXPECT_FALSE(from_json<Either>(std::string_view(R"({"type":"boat"})")));
}

TEST(Archive, WrongTypesAndRangesAreNamed) {
  for (std::string_view bad :
       {"-1", "1.5", "-0.5", "4294967296", "1e300", "-9223372036854775808"}) {
    auto a = from_json<Wheel>("{\"spokes\":" + std::string(bad) + "}");
    ASSERT_FALSE(a) << bad;
    EXPECT_NE(a.error().message.find("\"spokes\" is out of range"), std::string::npos) << bad;
  }
  auto nested = from_json<Cart>(std::string_view(R"({"wheels":[{"spokes":-1}]})"));
  ASSERT_FALSE(nested);
  EXPECT_NE(nested.error().message.find("spokes"), std::string::npos);
  EXPECT_EQ(from_json<Wheel>(std::string_view(R"({"spokes":4.0})"))->spokes, 4u);
  EXPECT_FALSE(from_json<Wheel>(std::string_view(R"({"spokes":"4"})")));
  EXPECT_FALSE(from_json<Cart>(std::string_view(R"({"age":-1.5})")));
  EXPECT_FALSE(from_json<Cart>(std::string_view(R"({"used_ms":"soon"})")));
  auto b = from_json<Cart>(std::string_view(R"({"colour":"green"})"));
  ASSERT_FALSE(b);
  EXPECT_NE(b.error().message.find("colour"), std::string::npos);
  auto c = from_json<Cart>(std::string_view(R"({"age":99999999999})"));
  ASSERT_FALSE(c);
  EXPECT_NE(c.error().message.find("out of range"), std::string::npos);
  EXPECT_FALSE(from_json<Cart>(std::string_view("{\"name\":")));
  EXPECT_FALSE(JsonDocument::parse(std::string(100, '[')));
}
}  // namespace
}  // namespace tutti

namespace tutti {
namespace {

TEST(JsonWriter, EscapesSeparatesAndReadsBack) {
  JsonWriter out;
  out.begin_object();
  out.key("a\"b");
  out.begin_array();
  out.string(std::string_view("\x01\b\t\n\f\r\"\\/\x7f\xc3\xa9\0", 13));
  out.integer(-9223372036854775807LL - 1);
  out.unsigned_integer(~std::uint64_t{0});
  out.number(0.1);
  out.number(1e300);
  out.boolean(false);
  out.null();
  out.begin_object();
  out.end_object();
  out.raw("[1,2]");
  out.end_array();
  out.key("");
  out.string("");
  out.end_object();
  const std::string text = out.take();
  EXPECT_EQ(text,
            "{\"a\\\"b\":[\"\\u0001\\b\\t\\n\\f\\r\\\"\\\\/\x7f\xc3\xa9\\u0000\","
            "-9223372036854775808,18446744073709551615,0.1,1e300,false,null,{},[1,2]],\"\":\"\"}");
  auto document = JsonDocument::parse_own(text);
  ASSERT_TRUE(document);
  JsonNode list = document->root().find("a\"b");
  ASSERT_EQ(list.size(), 9u);
  EXPECT_EQ(list.at(0).as_string(),
            std::string_view("\x01\b\t\n\f\r\"\\/\x7f\xc3\xa9\0", 13));
  EXPECT_EQ(list.at(4).as_double(), 1e300);
  out.begin_array();
  out.end_array();
  EXPECT_EQ(out.take(), "[]");
}

}  // namespace
}  // namespace tutti
