// HTTP over the server with its own client: what a request and an answer look like at both ends.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/stat.h>

#include <stdexcept>

#include "tests/unit/wire/support.h"

namespace tutti::wire::test {
namespace {

std::string pattern(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>((i * 31) ^ (i >> 8));
  return text;
}

int listening_socket(std::string& address) {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof v4;
  EXPECT_EQ(::bind(descriptor, reinterpret_cast<const sockaddr*>(&v4), size), 0);
  EXPECT_EQ(::listen(descriptor, 16), 0);
  EXPECT_EQ(::getsockname(descriptor, reinterpret_cast<sockaddr*>(&v4), &size), 0);
  address = fmt::format("127.0.0.1:{}", ntohs(v4.sin_port));
  return descriptor;
}

class HttpTest : public ServerTest {};

TEST_F(HttpTest, HandlerSeesTheWholeRequest) {
  Request seen;
  handler_ = [&](Request request, Responder responder) {
    seen = request;
    responder({201, "application/json", R"({"id":7})", {{"Location", "/jobs/7\r\nEvil: 1"}}});
  };
  start();
  const auto reply = http_request(endpoint(), "POST", "/jobs/a%20b?user=ann%26bob&flag&x=1+2", "{}",
                                  {.token = "secret"});
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->status, 201);
  EXPECT_EQ(reply->content_type, "application/json");
  EXPECT_EQ(reply->body, R"({"id":7})");
  EXPECT_EQ(seen.method, "POST");
  EXPECT_EQ(seen.path, "/jobs/a b");
  EXPECT_EQ(seen.query_value("user"), "ann&bob");
  EXPECT_EQ(seen.query_value("x"), "1 2");
  EXPECT_EQ(seen.query_value("none", "default"), "default");
  EXPECT_TRUE(seen.query.contains("flag"));
  EXPECT_EQ(seen.body, "{}");
  EXPECT_EQ(seen.header("CONTENT-type"), "application/json");
  EXPECT_EQ(seen.peer.token, "secret");
}

TEST_F(HttpTest, KernelNamesThePeerOfAUnixSocket) {
  Peer peer;
  handler_ = [&](Request request, Responder responder) {
    peer = request.peer;
    responder({});
  };
  start();
  ASSERT_TRUE(http_request(endpoint(), "GET", "/"));
  EXPECT_EQ(peer.transport, Transport::kUnix);
  EXPECT_EQ(peer.uid, ::geteuid());
  EXPECT_EQ(peer.gid, ::getegid());
  EXPECT_EQ(peer.pid, ::getpid());
  EXPECT_EQ(peer.token, "");
}

TEST_F(HttpTest, TcpPeersHaveAnAddressAndNoUid) {
  Peer peer;
  handler_ = [&](Request request, Responder responder) {
    peer = request.peer;
    responder({});
  };
  start({.tcp_addresses = {"127.0.0.1:0", "[::1]:0"}});
  ASSERT_EQ(server_->addresses().size(), 2U);
  for (const std::string& address : server_->addresses()) {
    EXPECT_FALSE(address.ends_with(":0"));
    const auto reply = http_request(Endpoint::parse(address).value(), "GET", "/");
    ASSERT_TRUE(reply) << reply.error().message;
    EXPECT_EQ(peer.transport, Transport::kTcp);
    EXPECT_EQ(peer.uid, static_cast<uid_t>(-1));
  }
  EXPECT_TRUE(peer.remote_address.starts_with("[::1]:")) << peer.remote_address;
}

TEST_F(HttpTest, SocketFileHasItsModeAndGoesAway) {
  start({.unix_mode = 0640});
  struct stat info{};
  ASSERT_EQ(::stat((folder_ / "socket").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0640U);
  server_.reset();
  EXPECT_NE(::stat((folder_ / "socket").c_str(), &info), 0);
}

TEST_F(HttpTest, StaleSocketIsReplacedAndALiveOneIsNot) {
  const std::string path = folder_ / "socket";
  start();
  Server second({.unix_path = path});
  const Status refused = second.start();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  EXPECT_TRUE(http_request(endpoint(), "GET", "/"));
  server_.reset();

  ::close(bound_unix_socket(path));  // as a killed server leaves it behind
  start();
  EXPECT_TRUE(http_request(endpoint(), "GET", "/"));
  server_.reset();

  ASSERT_TRUE(std::filesystem::create_directory(path));
  Server third({.unix_path = path});
  const Status not_a_socket = third.start();
  ASSERT_FALSE(not_a_socket);
  EXPECT_EQ(not_a_socket.error().code, ErrorCode::kConflict);
}

TEST_F(HttpTest, NobodyThereIsUnavailableWithAClearText) {
  const auto missing = http_request(endpoint(), "GET", "/");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(missing.error().message.find("nothing listens at unix:"), std::string::npos);
  Endpoint refused;
  {
    start({.tcp_addresses = {"127.0.0.1:0"}});
    refused = Endpoint::parse(server_->addresses()[0]).value();
    server_.reset();
  }
  const auto nobody = http_request(refused, "GET", "/");
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(nobody.error().message.find("connection refused"), std::string::npos);
}

TEST_F(HttpTest, LargeBodiesBothWays) {
  start({.tcp_addresses = {"127.0.0.1:0"}});
  const std::string body = pattern(std::size_t{4} << 20);
  for (const Endpoint& to : {endpoint(), Endpoint::parse(server_->addresses()[0]).value()}) {
    HttpConnection connection(to);
    const auto echo = connection.request("POST", "/echo", body);
    ASSERT_TRUE(echo) << echo.error().message;
    EXPECT_TRUE(echo->body == body);
    const auto large = connection.request("GET", "/size?bytes=20971520");
    ASSERT_TRUE(large) << large.error().message;
    EXPECT_EQ(large->body.size(), 20971520U);
  }
}

TEST_F(HttpTest, ManyClientsKeepTheirConnections) {
  start();
  constexpr int kClients = 16;
  constexpr int kRequests = 200;
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int client = 0; client < kClients; ++client) {
    threads.emplace_back([&, client] {
      HttpConnection connection(endpoint());
      for (int i = 0; i < kRequests; ++i) {
        const std::string body = fmt::format("{} {}", client, i);
        const auto reply = connection.request("POST", "/", body);
        if (reply && reply->status == 200 && reply->body == body) ++good;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, kClients * kRequests);
  EXPECT_TRUE(eventually([&] { return server_->connection_count() == 0; }));
}

TEST_F(HttpTest, AnswersFromOtherThreadsAndDroppedOnes) {
  std::vector<std::thread> threads;
  handler_ = [&](Request request, Responder responder) {
    if (request.path == "/drop") return;
    if (request.path == "/throw") throw std::runtime_error("a handler's defect");
    threads.emplace_back(
        [responder = std::move(responder), body = std::move(request.body)]() mutable {
          responder({200, "text/plain", body, {}});
          responder({500, "text/plain", "ignored", {}});
        });
  };
  start();
  HttpConnection connection(endpoint());
  for (int i = 0; i < 20; ++i) {
    const auto reply = connection.request("POST", "/", std::to_string(i));
    ASSERT_TRUE(reply) << reply.error().message;
    EXPECT_EQ(reply->body, std::to_string(i));
  }
  EXPECT_EQ(connection.request("GET", "/drop").value().status, 500);
  EXPECT_EQ(connection.request("GET", "/throw").value().status, 500);
  for (std::thread& thread : threads) thread.join();
}

TEST_F(HttpTest, ResponderMayOutliveClientAndServer) {
  std::mutex mutex;
  std::vector<Responder> kept;
  handler_ = [&](Request, Responder responder) {
    const std::lock_guard lock(mutex);
    kept.push_back(std::move(responder));
  };
  start();
  const auto count = [&] {
    const std::lock_guard lock(mutex);
    return kept.size();
  };
  const auto late =
      http_request(endpoint(), "GET", "/", {}, {.deadline = Duration::milliseconds(50)});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().reason, "deadline");
  RawSocket waiting(endpoint());
  waiting.send("GET / HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(eventually([&] { return count() == 2; }));
  server_.reset();
  kept[0]({200, "text/plain", "too late", {}});
  kept.clear();
  EXPECT_EQ(waiting.read_to_end(), "");
}

TEST_F(HttpTest, PipelinedRequestsAreAnsweredInOrder) {
  start();
  RawSocket socket(endpoint());
  std::string all;
  for (int i = 0; i < 50; ++i) {
    const std::string body = fmt::format("<{}>", i);
    all += fmt::format("POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n{}", body.size(), body);
  }
  socket.send(all);
  const std::string answers =
      socket.read([](const std::string& text) { return text.ends_with("<49>"); });
  std::size_t at = 0;
  for (int i = 0; i < 50; ++i) {
    at = answers.find(fmt::format("\r\n\r\n<{}>", i), at);
    ASSERT_NE(at, std::string::npos) << i;
  }
}

TEST_F(HttpTest, ChunkedBodiesHeadAndContinue) {
  start();
  RawSocket socket(endpoint());
  socket.send(
      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n");
  socket.send("0\r\n\r\n");
  const auto body_is = [](std::string_view wanted) {
    return [wanted](const std::string& text) { return text.ends_with(wanted); };
  };
  EXPECT_TRUE(socket.read(body_is("\r\n\r\nabc0123456789")).starts_with("HTTP/1.1 200 OK\r\n"));
  socket.send("POST / HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(socket.read(body_is("\r\n\r\n")), "HTTP/1.1 100 Continue\r\n\r\n");
  socket.send("ok");
  EXPECT_TRUE(socket.read(body_is("\r\n\r\nok")).starts_with("HTTP/1.1 200"));
  const auto head = http_request(endpoint(), "HEAD", "/size?bytes=5");
  ASSERT_TRUE(head) << head.error().message;
  EXPECT_EQ(head->body, "");
}

TEST_F(HttpTest, ConnectionCloseAndHttp10EndTheConnection) {
  start();
  for (const char* request :
       {"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", "GET / HTTP/1.0\r\n\r\n"}) {
    RawSocket socket(endpoint());
    socket.send(request);
    const std::string answer = socket.read_to_end();
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
    EXPECT_TRUE(socket.ended());
  }
}

TEST_F(HttpTest, ListeningDescriptorsAreTakenOver) {
  std::string address;
  const int descriptor = listening_socket(address);
  start({.listening_descriptors = {descriptor}});
  ASSERT_EQ(server_->addresses(), std::vector<std::string>{address});
  EXPECT_TRUE(http_request(Endpoint::parse(address).value(), "GET", "/"));
}

}  // namespace
}  // namespace tutti::wire::test
