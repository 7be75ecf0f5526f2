// Frames as bytes: the rules of RFC 6455, and pieces of any size giving the same messages.
#include "wire/detail/frame.h"

#include <gtest/gtest.h>

#include <random>

#include "wire/http.h"

namespace tutti::wire::detail {
namespace {

using Kind = FrameEvent::Kind;

// Feeds `bytes` in pieces of `piece` bytes; returns what came out.
std::vector<FrameEvent> read_in_pieces(FrameReader& reader, std::string_view bytes,
                                       std::size_t piece) {
  std::vector<FrameEvent> events;
  while (!bytes.empty()) {
    if (!reader.feed(bytes.substr(0, piece), events)) break;
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  return events;
}

TEST(FrameTest, BytesOfTheExamplesInTheStandard) {
  std::string out;
  append_frame(out, Side::kServer, Opcode::kText, "Hello");
  EXPECT_EQ(out, "\x81\x05Hello");
  out.clear();
  append_frame(out, Side::kServer, Opcode::kBinary, std::string(256, 'a'));
  EXPECT_EQ(out.substr(0, 4), std::string("\x82\x7E\x01\x00", 4));
  out.clear();
  append_frame(out, Side::kServer, Opcode::kBinary, std::string(65536, 'a'));
  EXPECT_EQ(out.substr(0, 10), std::string("\x82\x7F\0\0\0\0\0\x01\0\0", 10));
  FrameReader reader(Side::kServer, 100);
  const auto events = read_in_pieces(reader, "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", 100);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].payload, "Hello");
  EXPECT_EQ(websocket_accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
  EXPECT_EQ(make_websocket_key().size(), 24U);
  EXPECT_NE(make_websocket_key(), make_websocket_key());
}

TEST(FrameTest, AnySizeInAnyPieces) {
  std::mt19937 random(7);
  for (const Side side : {Side::kClient, Side::kServer}) {
    std::string bytes;
    std::vector<std::string> sent;
    for (const std::size_t size : {0, 1, 3, 4, 7, 8, 9, 125, 126, 127, 65535, 65536, 70001}) {
      std::string payload(size, '\0');
      for (char& c : payload) c = static_cast<char>(random());
      append_frame(bytes, side, Opcode::kBinary, payload);
      append_frame(bytes, side, Opcode::kPing, "between");
      sent.push_back(std::move(payload));
    }
    for (const std::size_t piece :
         {std::size_t{1}, std::size_t{3}, std::size_t{13}, std::size_t{1000}, bytes.size()}) {
      FrameReader reader(side == Side::kClient ? Side::kServer : Side::kClient, 100'000);
      std::size_t next = 0;
      std::size_t pings = 0;
      for (const FrameEvent& event : read_in_pieces(reader, bytes, piece)) {
        if (event.kind == Kind::kPing) ++pings;
        if (event.kind == Kind::kMessage) {
          EXPECT_TRUE(event.payload == sent.at(next++));
        }
      }
      EXPECT_EQ(next, sent.size()) << reader.error();
      EXPECT_EQ(pings, sent.size());
    }
  }
}

TEST(FrameTest, FragmentsMakeOneMessageAndControlFramesMayComeBetween) {
  FrameReader reader(Side::kClient, 10);
  const auto events = read_in_pieces(reader,
                                     std::string("\x02\x02"
                                                 "ab"
                                                 "\x89\x01"
                                                 "p"
                                                 "\x00\x00"
                                                 "\x80\x01"
                                                 "c",
                                                 12),
                                     1);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].kind, Kind::kPing);
  EXPECT_EQ(events[1].payload, "abc");
}

TEST(FrameTest, BreachesOfTheProtocol) {
  const struct {
    std::string bytes;
    std::uint16_t code;
    std::string_view text;
  } cases[] = {
      {{"\xC2\x00", 2}, 1002, "reserved bits"},
      {{"\x83\x00", 2}, 1002, "unknown frame type"},
      {{"\x82\x80\0\0\0\0", 6}, 1002, "masked frame from a server"},
      {{"\x80\x00", 2}, 1002, "continuation without"},
      {{"\x02\x00\x82\x00", 4}, 1002, "inside another"},
      {{"\x09\x00", 2}, 1002, "control"},
      {{"\x89\x7E\x00\x7E", 4}, 1002, "control"},
      {{"\x82\x7E\x00\x05", 4}, 1002, "shortest"},
      {{"\x82\x7F\0\0\0\0\0\0\x10\0", 10}, 1002, "shortest"},
      {{"\x82\x7F\xFF\0\0\0\0\0\0\0", 10}, 1002, "shortest"},
      {{"\x82\x7F\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 10}, 1009, "more than 10 bytes"},
      {{"\x02\x06"
        "abcdef"
        "\x80\x05",
        10},
       1009,
       "more than 10 bytes"},
  };
  for (const auto& [bytes, code, text] : cases) {
    FrameReader reader(Side::kClient, 10);
    std::vector<FrameEvent> events;
    EXPECT_FALSE(reader.feed(bytes, events)) << text;
    EXPECT_EQ(reader.error_code(), code);
    EXPECT_NE(reader.error().find(text), std::string::npos) << reader.error();
    EXPECT_FALSE(reader.feed("\x82\x00", events)) << "fed after an error";
  }
  FrameReader server(Side::kServer, 10);
  std::vector<FrameEvent> events;
  EXPECT_FALSE(server.feed(std::string_view("\x82\x01"), events));
  EXPECT_EQ(server.error(), "unmasked frame from a client");
}

TEST(FrameTest, CloseCarriesCodeAndReasonAndEndsTheStream) {
  std::string bytes;
  append_close(bytes, Side::kServer, 1001, "going away");
  append_frame(bytes, Side::kServer, Opcode::kBinary, "never seen");
  FrameReader reader(Side::kClient, 100);
  std::vector<FrameEvent> events;
  EXPECT_TRUE(reader.feed(bytes, events));
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].code, 1001);
  EXPECT_EQ(events[0].payload, "going away");

  bytes.clear();
  std::string reason(122, 'a');
  reason += "\xC3\xA9 and more";
  append_close(bytes, Side::kServer, 1000, reason);
  EXPECT_EQ(bytes.size(), 2U + 2U + 122U) << "cut between characters, not inside one";
}

TEST(UrlTest, DecodesAndEncodes) {
  std::string out;
  EXPECT_TRUE(decode_url("a%2Fb+c", UrlPart::kPath, out));
  EXPECT_EQ(out, "a/b+c");
  EXPECT_TRUE(decode_url("a%2fb+c", UrlPart::kQuery, out));
  EXPECT_EQ(out, "a/b c");
  for (const char* bad : {"%", "%2", "%g1", "a%00"}) {
    EXPECT_FALSE(decode_url(bad, UrlPart::kPath, out)) << bad;
  }
  EXPECT_EQ(encode_url("a b/\xC3\xA9~"), "a%20b%2F%C3%A9~");
}

}  // namespace
}  // namespace tutti::wire::detail
