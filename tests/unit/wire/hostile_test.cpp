// Clients that mean harm or are broken: malformed bytes, trickles, silence, never reading. Others
// must be served meanwhile and nothing may crash or pile up.
#include <random>

#include "tests/unit/wire/support.h"

namespace tutti::wire::test {
namespace {

class HostileTest : public ServerTest {
 protected:
  void expect_still_serving() {
    const auto reply = http_request(endpoint(), "POST", "/", "alive");
    ASSERT_TRUE(reply) << reply.error().message;
    EXPECT_EQ(reply->body, "alive");
  }
  // Sends `bytes` and reads until the server closes.
  std::string answer_to(std::string_view bytes) {
    const RawSocket socket(endpoint());
    socket.send(bytes);
    std::string answer = socket.read_to_end();
    EXPECT_TRUE(socket.ended()) << "the server keeps the connection";
    return answer;
  }
};

TEST_F(HostileTest, MalformedRequestsGetTheirStatus) {
  ServerOptions options;
  options.limits.body_bytes_max = 1000;
  start(options);
  const struct {
    std::string request;
    std::string_view status;
  } cases[] = {
      {"nonsense\r\n\r\n", "400"},
      {"GET / HTTP/3.7\r\n\r\n", "400"},
      {"GET /%zz HTTP/1.1\r\nConnection: close\r\n\r\n", "400"},
      {"GET /a%00b HTTP/1.1\r\nConnection: close\r\n\r\n", "400"},
      {"GET jobs HTTP/1.1\r\nConnection: close\r\n\r\n", "400"},
      {"GET /?a=%G0 HTTP/1.1\r\nConnection: close\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\nbad header\r\n\r\n", "400"},
      {"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "400"},
      {"POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", "400"},
      {"POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       "400"},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "400"},
      {"POST / HTTP/1.1\r\nContent-Length: 1001\r\n\r\n", "413"},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n" + std::string(1001, 'a'),
       "413"},
      {"GET / HTTP/1.1\r\nX: " + std::string(70'000, 'h') + "\r\n\r\n", "431"},
      {"GET /" + std::string(70'000, 'p') + " HTTP/1.1\r\n\r\n", "431"},
      {"GET / HTTP/1.1\r\nUpgrade: websocket\r\nConnection: close, Upgrade\r\n\r\n", "404"},
  };
  for (const auto& [request, status] : cases) {
    EXPECT_EQ(answer_to(request).substr(0, 12), fmt::format("HTTP/1.1 {}", status))
        << request.substr(0, 60);
  }
  expect_still_serving();
}

TEST_F(HostileTest, HandshakesAreChecked) {
  channels_.emplace_back("/c", [](Request, Upgrade upgrade) { (void)upgrade.accept({}); });
  start();
  const std::string upgrade = "Upgrade: websocket\r\nConnection: Upgrade, close\r\n";
  const std::string key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
  EXPECT_TRUE(answer_to("GET /c HTTP/1.1\r\n" + upgrade + key + "Sec-WebSocket-Version: 8\r\n\r\n")
                  .starts_with("HTTP/1.1 426"));
  EXPECT_TRUE(answer_to("GET /c HTTP/1.1\r\n" + upgrade + "Sec-WebSocket-Version: 13\r\n\r\n")
                  .starts_with("HTTP/1.1 400"));
  EXPECT_TRUE(
      answer_to("POST /c HTTP/1.1\r\n" + upgrade + key + "Sec-WebSocket-Version: 13\r\n\r\n")
          .starts_with("HTTP/1.1 400"));
  // The example of RFC 6455, section 1.3; then a frame without a mask, which ends the channel.
  const std::string accepted = answer_to("GET /c HTTP/1.1\r\n" + upgrade + key +
                                         "Sec-WebSocket-Version: 13\r\n\r\n\x82\x01x");
  EXPECT_TRUE(accepted.starts_with("HTTP/1.1 101 "));
  EXPECT_NE(accepted.find("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"),
            std::string::npos);
  EXPECT_NE(accepted.find("unmasked frame from a client"), std::string::npos);
}

// Random bytes, and valid conversations with random damage, cut at random places.
TEST_F(HostileTest, RandomBytesNeverCrashTheServer) {
  channels_.emplace_back("/c", [](Request, Upgrade upgrade) {
    (void)upgrade.accept(
        {.on_message = [](Channel& channel, std::string m) { (void)channel.send(std::move(m)); },
         .on_closed = {}});
  });
  start();
  const std::string valid[] = {
      "POST /a?b=c%20d HTTP/1.1\r\nContent-Length: 5\r\nAuthorization: Bearer t\r\n\r\nhello",
      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nExpect: "
      "100-continue\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
      "GET /c HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: "
      "13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
      "\x82\x85\x01\x02\x03\x04iggmm\x89\x80zzzz\x02\x81qqqqa\x80\x81wwwwb\x88\x82zzzz\x79\x92"};
  for (std::uint32_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937 random(seed);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
    std::string bytes;
    if (seed % 4 == 0) {
      bytes.resize(below(3000));
      for (char& c : bytes) c = static_cast<char>(random());
    } else {
      for (std::size_t i = below(4); i < 4; ++i) bytes += valid[seed % 3];
      for (std::size_t i = below(6); i > 0; --i) {
        bytes[below(bytes.size())] = static_cast<char>(random());
      }
      if (random() % 3 == 0) bytes.resize(below(bytes.size()) + 1);
    }
    const RawSocket socket(endpoint());
    const std::size_t cut = below(bytes.size() + 1);
    socket.send(std::string_view(bytes).substr(0, cut));
    socket.send(std::string_view(bytes).substr(cut));
    if (random() % 2 == 0) ::shutdown(socket.descriptor(), SHUT_WR);
    if (seed % 40 == 0) expect_still_serving();
  }
  expect_still_serving();
  EXPECT_TRUE(eventually([&] { return server_->connection_count() == 0; }));
}

TEST_F(HostileTest, StalledAndTricklingClientsAreCutOffWhileOthersAreServed) {
  ServerOptions options;
  options.limits.request_timeout = Duration::milliseconds(300);
  options.limits.idle_timeout = Duration::milliseconds(300);
  start(options);
  const RawSocket silent(endpoint());
  const RawSocket half_head(endpoint());
  half_head.send("GET / HTTP/1.1\r\nHos");
  const RawSocket half_body(endpoint());
  half_body.send("POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\nabc");
  const RawSocket trickle(endpoint());
  std::atomic<bool> over{false};
  std::thread trickling([&] {
    trickle.send("POST / HTTP/1.1\r\nContent-Length: 100000\r\n\r\n");
    while (!over) {
      trickle.send("x");
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  std::thread asking([&] {
    HttpConnection connection(endpoint());
    while (!over) {
      const auto reply = connection.request("POST", "/", "ping");
      EXPECT_TRUE(reply && reply->body == "ping") << (reply ? "" : reply.error().message);
    }
  });
  EXPECT_EQ(silent.read_to_end(), "");
  EXPECT_TRUE(silent.ended());
  for (const RawSocket* socket : {&half_head, &half_body, &trickle}) {
    EXPECT_TRUE(socket->read_to_end().starts_with("HTTP/1.1 408"));
    EXPECT_TRUE(socket->ended());
  }
  over = true;
  trickling.join();
  asking.join();
}

TEST_F(HostileTest, WhoDoesNotReadItsAnswerIsCutOff) {
  ServerOptions options;
  options.limits.write_timeout = Duration::milliseconds(200);
  start(options);
  const RawSocket deaf(endpoint());
  deaf.send("GET /size?bytes=50000000 HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(eventually([&] { return server_->connection_count() == 1; }));
  expect_still_serving();
  EXPECT_TRUE(eventually([&] { return server_->connection_count() == 0; }));
}

TEST_F(HostileTest, ChannelPeerThatStopsReadingIsCutOff) {
  std::mutex mutex;
  std::string closed;
  channels_.emplace_back("/c", [&](Request, Upgrade upgrade) {
    const auto channel = upgrade.accept({.on_message = {},
                                         .on_closed =
                                             [&](Channel&, const std::string& reason) {
                                               const std::lock_guard lock(mutex);
                                               closed = reason;
                                             }},
                                        {.stall_timeout = Duration::milliseconds(100)});
    EXPECT_TRUE(channel->send(std::string(10'000'000, 'x')));
  });
  start();
  auto client = ClientChannel::connect(endpoint(), "/c");
  ASSERT_TRUE(client && client->wait_ready(Duration::seconds(20)));
  EXPECT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return closed == "the peer has stopped reading";
  }));
}

TEST_F(HostileTest, OneConnectionTooManyIsToldSo) {
  ServerOptions options;
  options.limits.connections_max = 3;
  start(options);
  std::vector<std::unique_ptr<RawSocket>> held;
  for (int i = 0; i < 3; ++i) held.push_back(std::make_unique<RawSocket>(endpoint()));
  ASSERT_TRUE(eventually([&] { return server_->connection_count() == 3; }));
  const auto refused = http_request(endpoint(), "GET", "/");
  ASSERT_TRUE(refused) << refused.error().message;
  EXPECT_EQ(refused->status, 503);
  EXPECT_EQ(refused->body, "too many connections\n");
  held.clear();
  ASSERT_TRUE(eventually([&] { return server_->connection_count() == 0; }));
  expect_still_serving();
}

// Answers that a broken or hostile server gives must not fool or hang the client either.
TEST_F(HostileTest, ClientSurvivesBrokenAnswers) {
  const std::string answers[] = {
      "SSH-2.0-OpenSSH_9.2\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
      "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 5x\r\n\r\nabcde",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nabc",
      "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
      "HTTP/1.1 2\r\n\r\n",
      "",
  };
  for (const std::string& answer : answers) {
    SCOPED_TRACE(answer);
    const std::string path = folder_ / "fake";
    const int listener = bound_unix_socket(path);
    ASSERT_EQ(::listen(listener, 1), 0);
    std::thread fake([&] {
      const int accepted = ::accept(listener, nullptr, nullptr);
      char request[4096];
      (void)::recv(accepted, request, sizeof request, 0);
      (void)::send(accepted, answer.data(), answer.size(), MSG_NOSIGNAL);
      ::close(accepted);
    });
    const auto reply = http_request(Endpoint::at_path(path), "GET", "/");
    EXPECT_FALSE(reply);
    if (!reply) {
      EXPECT_FALSE(reply.error().message.empty());
    }
    fake.join();
    ::close(listener);
    ::unlink(path.c_str());
  }
}

}  // namespace
}  // namespace tutti::wire::test
