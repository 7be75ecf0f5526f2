// Our frames against an independent implementation, Beast's, at both ends: a mistake that our
// server and our client share would not show between them.
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket/stream.hpp>

#include "tests/unit/wire/support.h"

namespace tutti::wire::test {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using Local = asio::local::stream_protocol;
using Stream = beast::websocket::stream<Local::socket>;

constexpr std::size_t kSizes[] = {0, 1, 125, 126, 65535, 65536, 1'000'000};

std::string text_of(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 13 + 5);
  return text;
}

class InteropTest : public ServerTest {};

TEST_F(InteropTest, BeastClientOnOurServer) {
  std::string reason;
  std::atomic<bool> closed{false};
  channels_.emplace_back("/echo", [&](Request, Upgrade upgrade) {
    (void)upgrade.accept(
        {.on_message = [](Channel& channel, std::string m) { (void)channel.send(std::move(m)); },
         .on_closed =
             [&](Channel&, const std::string& why) {
               reason = why;
               closed = true;
             }});
  });
  start();
  asio::io_context context;
  Stream stream(context);
  stream.next_layer().connect(Local::endpoint(folder_ / "socket"));
  stream.handshake("localhost", "/echo");
  stream.binary(true);
  stream.auto_fragment(true);
  stream.write_buffer_bytes(4096);
  stream.read_message_max(10'000'000);
  bool pong = false;
  stream.control_callback([&](beast::websocket::frame_type type, beast::string_view) {
    pong = pong || type == beast::websocket::frame_type::pong;
  });
  for (const std::size_t size : kSizes) {
    const std::string text = text_of(size);
    stream.ping("are you there");
    stream.write(asio::buffer(text));
    beast::flat_buffer back;
    stream.read(back);
    EXPECT_TRUE(stream.got_binary());
    EXPECT_TRUE(beast::buffers_to_string(back.data()) == text) << size;
  }
  EXPECT_TRUE(pong);
  stream.close({beast::websocket::close_code::normal, "enough"});
  EXPECT_TRUE(eventually([&] { return closed.load(); }));
  EXPECT_EQ(reason, "closed by the peer: enough");
}

TEST_F(InteropTest, OurClientOnABeastServer) {
  const std::string path = folder_ / "beast";
  asio::io_context context;
  Local::acceptor acceptor(context, Local::endpoint(path));
  std::thread server([&] {
    Stream stream(context);
    acceptor.accept(stream.next_layer());
    stream.accept();
    stream.auto_fragment(true);
    stream.write_buffer_bytes(1000);
    stream.binary(true);
    for (std::size_t i = 0; i < std::size(kSizes); ++i) {
      beast::flat_buffer message;
      stream.read(message);
      stream.ping("still there?");
      stream.write(message.data());
    }
    beast::error_code error;
    stream.close({beast::websocket::close_code::going_away, "shift ends"}, error);
    EXPECT_FALSE(error) << error.message();
  });
  auto client = ClientChannel::connect(Endpoint::at_path(path), "/any");
  ASSERT_TRUE(client) << client.error().message;
  ASSERT_TRUE(client->wait_ready(Duration::seconds(20)));
  for (const std::size_t size : kSizes) {
    const std::string text = text_of(size);
    ASSERT_TRUE(client->send(text));
    std::vector<std::string> back;
    ASSERT_TRUE(eventually([&] {
      client->on_writable();
      for (std::string& message : client->on_readable()) back.push_back(std::move(message));
      return !back.empty();
    })) << size;
    EXPECT_TRUE(back == std::vector<std::string>{text}) << size;
  }
  EXPECT_TRUE(eventually([&] {
    (void)client->on_readable();
    return !client->is_open();
  }));
  EXPECT_EQ(client->closed_reason(), "closed by the server: shift ends");
  server.join();
}

}  // namespace
}  // namespace tutti::wire::test
