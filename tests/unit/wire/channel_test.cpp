// Channels end to end: the server's Channel against the hand-written ClientChannel.
#include "tests/unit/wire/support.h"

namespace tutti::wire::test {
namespace {

class ChannelTest : public ServerTest {
 protected:
  ChannelTest() {
    channels_.emplace_back("/echo", [this](Request, Upgrade upgrade) {
      keep(upgrade.accept(
          {.on_message = [](Channel& channel,
                            std::string message) { (void)channel.send(std::move(message)); },
           .on_closed =
               [this](Channel&, const std::string& reason) {
                 const std::lock_guard lock(mutex_);
                 closed_.push_back(reason);
               }},
          options_));
    });
  }

  void keep(std::shared_ptr<Channel> channel) {
    const std::lock_guard lock(mutex_);
    accepted_ = std::move(channel);
  }
  std::shared_ptr<Channel> accepted() {
    const std::lock_guard lock(mutex_);
    return accepted_;
  }
  std::vector<std::string> closed() {
    const std::lock_guard lock(mutex_);
    return closed_;
  }

  ClientChannel connect(const std::string& target = "/echo", ClientChannelOptions options = {}) {
    auto channel = ClientChannel::connect(endpoint(), target, std::move(options));
    EXPECT_TRUE(channel) << channel.error().message;
    const Status ready = channel->wait_ready(Duration::seconds(20));
    EXPECT_TRUE(ready) << (ready ? "" : ready.error().message);
    return std::move(*channel);
  }

  // Polls the client's descriptor until `done`; messages go to `take`.
  static bool pump(ClientChannel& channel, const std::function<bool()>& done,
                   const std::function<void(std::string)>& take, int seconds = 60) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    while (!done()) {
      if (std::chrono::steady_clock::now() > end || !channel.is_open()) return done();
      pollfd ready{channel.fd(), POLLIN, 0};
      if (channel.want_write()) ready.events |= POLLOUT;
      (void)::poll(&ready, 1, 50);
      if ((ready.revents & POLLOUT) != 0) channel.on_writable();
      if ((ready.revents & ~POLLOUT) != 0) {
        for (std::string& message : channel.on_readable()) take(std::move(message));
      }
    }
    return true;
  }

  ChannelOptions options_;
  std::mutex mutex_;
  std::shared_ptr<Channel> accepted_;
  std::vector<std::string> closed_;
};

TEST_F(ChannelTest, ManySmallMessagesInOrderBothWays) {
  start();
  ClientChannel client = connect();
  constexpr int kMessages = 100'000;
  int sent = 0;
  int received = 0;
  bool in_order = true;
  while (received < kMessages && client.is_open()) {
    for (int burst = 0; burst < 1000 && sent < kMessages; ++burst) {
      ASSERT_TRUE(client.send(std::to_string(sent++))) << client.closed_reason();
    }
    const int target = sent == kMessages ? kMessages : received + 1;
    ASSERT_TRUE(pump(
        client, [&] { return received >= target; },
        [&](std::string message) { in_order = in_order && message == std::to_string(received++); }))
        << client.closed_reason();
  }
  EXPECT_TRUE(in_order);
  EXPECT_EQ(received, kMessages);
}

TEST_F(ChannelTest, TenMegabytesInOneMessage) {
  start();
  ClientChannel client = connect();
  std::string message(std::size_t{10} << 20, '\0');
  for (std::size_t i = 0; i < message.size(); ++i) message[i] = static_cast<char>(i * 7);
  ASSERT_TRUE(client.send(message));
  std::string back;
  ASSERT_TRUE(pump(
      client, [&] { return !back.empty(); }, [&](std::string text) { back = std::move(text); }));
  EXPECT_TRUE(back == message);
}

TEST_F(ChannelTest, EitherSideSaysGoodbyeWithItsReason) {
  start();
  {
    ClientChannel client = connect();
    ASSERT_TRUE(client.send("last words"));
    client.close("job done");
    EXPECT_FALSE(client.is_open());
    EXPECT_FALSE(client.send("more"));
    ASSERT_TRUE(eventually([&] { return closed().size() == 1; }));
    EXPECT_EQ(closed()[0], "closed by the peer: job done");
  }
  ClientChannel client = connect();
  ASSERT_TRUE(eventually([&] { return accepted() && accepted()->is_open(); }));
  std::vector<std::string> messages;
  ASSERT_TRUE(accepted()->send("before"));
  accepted()->close("node removed");
  EXPECT_FALSE(accepted()->send("after"));
  ASSERT_TRUE(pump(
      client, [&] { return !client.is_open(); },
      [&](std::string text) { messages.push_back(std::move(text)); }));
  EXPECT_EQ(client.closed_reason(), "closed by the server: node removed");
  EXPECT_EQ(messages, std::vector<std::string>{"before"});
  ASSERT_TRUE(eventually([&] { return closed().size() == 2; }));
  EXPECT_EQ(closed()[1], "closed here: node removed");
  EXPECT_TRUE(eventually([&] { return server_->connection_count() == 0; }));
}

TEST_F(ChannelTest, HandlerMayRefuse) {
  channels_.emplace_back("/echo/secret", [](Request request, Upgrade upgrade) {
    ASSERT_EQ(request.peer.token, "wrong");
    upgrade.refuse({401, "text/plain", "bad token\n", {}});
  });
  channels_.emplace_back("/dropped", [](Request, Upgrade) {});
  start();
  const auto expect_refusal = [&](const char* target, int status, ErrorCode code,
                                  std::string_view text) {
    auto channel = ClientChannel::connect(endpoint(), target, {.token = "wrong", .channel = {}});
    ASSERT_TRUE(channel);
    const Status ready = channel->wait_ready(Duration::seconds(20));
    ASSERT_FALSE(ready);
    EXPECT_EQ(channel->http_status(), status);
    EXPECT_EQ(ready.error().code, code);
    EXPECT_NE(ready.error().message.find(text), std::string::npos) << ready.error().message;
    EXPECT_FALSE(channel->is_open());
  };
  expect_refusal("/echo/secret", 401, ErrorCode::kDenied, "401 Unauthorized: bad token");
  expect_refusal("/dropped", 500, ErrorCode::kUnavailable, "500");
  expect_refusal("/nowhere", 404, ErrorCode::kUnavailable, "404");
}

TEST_F(ChannelTest, AcceptedLaterFromAnotherThread) {
  std::thread later;
  channels_.emplace_back("/later", [&](Request, Upgrade upgrade) {
    later = std::thread([this, upgrade = std::move(upgrade)]() mutable {
      const auto channel = upgrade.accept({});
      EXPECT_TRUE(channel->send("welcome"));
      keep(channel);
    });
  });
  start();
  ClientChannel client = connect("/later");
  std::string first;
  ASSERT_TRUE(pump(
      client, [&] { return !first.empty(); }, [&](std::string text) { first = std::move(text); }));
  EXPECT_EQ(first, "welcome");
  later.join();
}

TEST_F(ChannelTest, PausedReadingHoldsTheSenderBack) {
  std::atomic<int> received{0};
  channels_.emplace_back("/slow", [&](Request, Upgrade upgrade) {
    keep(upgrade.accept({.on_message =
                             [&](Channel& channel, const std::string&) {
                               if (++received == 3) channel.pause_reading();
                             },
                         .on_closed = {}}));
  });
  start();
  ClientChannel client = connect("/slow", {.channel = {.queue_bytes_max = std::size_t{1} << 30}});
  const std::string message(100'000, 'm');
  constexpr int kMessages = 200;
  for (int i = 0; i < kMessages; ++i) ASSERT_TRUE(client.send(message));
  // What fits into the sockets is little; the rest stays with the sender.
  (void)client.flush(Duration::milliseconds(200));
  EXPECT_EQ(received, 3);
  EXPECT_GT(client.queued_bytes(), message.size() * kMessages / 2);
  accepted()->resume_reading();
  ASSERT_TRUE(client.flush(Duration::seconds(60)));
  EXPECT_TRUE(eventually([&] { return received == kMessages; }));
}

TEST_F(ChannelTest, FullQueueClosesAndSaysSo) {
  options_.queue_bytes_max = std::size_t{1} << 20;
  start();
  const ClientChannel client = connect();  // never reads
  ASSERT_TRUE(eventually([&] { return accepted() != nullptr; }));
  const std::string message(100'000, 'm');
  int sent = 0;
  while (sent < 1000 && accepted()->send(message)) ++sent;
  EXPECT_LT(sent, 1000);
  EXPECT_FALSE(accepted()->is_open());
  ASSERT_TRUE(eventually([&] { return closed().size() == 1; }));
  EXPECT_NE(closed()[0].find("output queue of more than 1048576 bytes"), std::string::npos);
}

TEST_F(ChannelTest, SilentPeersAreNoticed) {
  options_.ping_interval = Duration::milliseconds(30);
  options_.pong_timeout = Duration::milliseconds(400);
  start();
  ClientChannel dead = connect();  // its owner never polls it again
  ASSERT_TRUE(eventually([&] { return closed().size() == 1; }));
  EXPECT_EQ(closed()[0], "the peer does not answer pings");
  // One whose owner does poll stays: pongs are answered inside on_readable().
  ClientChannel alive = connect();
  int rounds = 0;  // the time for several pings; the limit of rounds is never met
  ASSERT_FALSE(pump(alive, [&] { return ++rounds > 1'000'000; }, [](const std::string&) {}, 1));
  EXPECT_TRUE(alive.is_open());
}

TEST_F(ChannelTest, ClientNoticesASilentServer) {
  channels_.emplace_back("/mute", [&](Request, Upgrade upgrade) {
    const auto channel = upgrade.accept({});
    channel->pause_reading();
    keep(channel);
  });
  start();
  ClientChannel client =
      connect("/mute", {.channel = {.ping_interval = Duration::milliseconds(20),
                                    .pong_timeout = Duration::milliseconds(20)}});
  EXPECT_TRUE(pump(
      client,
      [&] {
        client.keep_alive();
        return !client.is_open();
      },
      [](const std::string&) {}));
  EXPECT_EQ(client.closed_reason(), "the server does not answer pings");
}

TEST_F(ChannelTest, ServerEndsWhileClientsAreConnected) {
  start();
  std::vector<ClientChannel> clients;
  for (int i = 0; i < 20; ++i) clients.push_back(connect());
  RawSocket half_a_request(endpoint());
  half_a_request.send("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nab");
  ASSERT_TRUE(eventually([&] { return server_->connection_count() == 21; }));
  server_.reset();
  EXPECT_EQ(closed().size(), 20U);
  for (ClientChannel& client : clients) {
    EXPECT_TRUE(pump(client, [&] { return !client.is_open(); }, [](const std::string&) {}));
    EXPECT_EQ(client.closed_reason(), "closed by the server: the server stops");
  }
  EXPECT_FALSE(accepted()->send("nobody there"));
}

TEST_F(ChannelTest, TooLongMessagesCloseWithTheCode) {
  options_.message_bytes_max = 1000;
  start();
  ClientChannel client = connect();
  ASSERT_TRUE(client.send(std::string(1000, 'a')));
  ASSERT_TRUE(client.send(std::string(1001, 'b')));
  int received = 0;
  ASSERT_TRUE(
      pump(client, [&] { return !client.is_open(); }, [&](const std::string&) { ++received; }));
  EXPECT_EQ(received, 1);
  EXPECT_EQ(client.closed_reason(), "closed by the server: message of more than 1000 bytes");
}

TEST(ReconnectPolicyTest, DoublesUpToTheLongestWithJitterInTheUpperHalf) {
  const ReconnectPolicy policy{Duration::milliseconds(100), Duration::seconds(1)};
  EXPECT_EQ(policy.delay(0, 0).ms(), 50);
  EXPECT_EQ(policy.delay(0, 50).ms(), 100);
  EXPECT_EQ(policy.delay(2, 0).ms(), 200);
  EXPECT_EQ(policy.delay(4, 0).ms(), 500);
  EXPECT_EQ(policy.delay(4'000'000'000U, 500).ms(), 1000);
}

}  // namespace
}  // namespace tutti::wire::test
