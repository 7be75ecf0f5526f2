// What the wire tests share: a server in a folder of its own, raw sockets, waiting with a deadline.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "wire/client.h"
#include "wire/client_channel.h"
#include "wire/endpoint.h"
#include "wire/server.h"

namespace tutti::wire::test {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tutti-wire-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// A bound Unix socket, not yet listening.
inline int bound_unix_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM, 0);
  EXPECT_EQ(::bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return descriptor;
}

// Polls until `condition` holds; false after `seconds`.
inline bool eventually(const std::function<bool()>& condition, int seconds = 20) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

// A plain connection for bytes that no honest client sends.
class RawSocket {
 public:
  explicit RawSocket(const Endpoint& endpoint) {
    const auto connected = connect_within(endpoint, Duration::seconds(10));
    EXPECT_TRUE(connected) << (connected ? "" : connected.error().message);
    descriptor_ = connected.value_or(-1);
  }
  ~RawSocket() { ::close(descriptor_); }
  RawSocket(const RawSocket&) = delete;
  RawSocket& operator=(const RawSocket&) = delete;
  int descriptor() const { return descriptor_; }

  // Sends everything, or as much as the server takes before it closes.
  void send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n < 0 && errno == EAGAIN) {
        pollfd ready{descriptor_, POLLOUT, 0};
        if (::poll(&ready, 1, 10'000) <= 0) return;
        continue;
      }
      if (n <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  // Reads until `enough(text)`, the end of the stream or the deadline.
  std::string read(const std::function<bool(const std::string&)>& enough, int seconds = 20) const {
    std::string text;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    while (!enough(text) && std::chrono::steady_clock::now() < end) {
      pollfd ready{descriptor_, POLLIN, 0};
      if (::poll(&ready, 1, 50) <= 0) continue;
      char buffer[65536];
      const ssize_t n = ::recv(descriptor_, buffer, sizeof buffer, MSG_DONTWAIT);
      if (n == 0 || (n < 0 && errno != EAGAIN)) {
        ended_ = true;
        break;
      }
      if (n > 0) text.append(buffer, static_cast<std::size_t>(n));
    }
    return text;
  }
  std::string read_to_end(int seconds = 20) const {
    return read([](const std::string&) { return false; }, seconds);
  }
  bool ended() const { return ended_; }

 private:
  int descriptor_ = -1;
  mutable bool ended_ = false;
};

// A server on a Unix socket that echoes POST bodies and answers GET /size?bytes=N with N bytes.
class ServerTest : public ::testing::Test {
 protected:
  // Before the members of derived classes go, which the callbacks of connections still open use.
  void TearDown() override { server_.reset(); }

  Endpoint endpoint() const { return Endpoint::at_path(folder_ / "socket"); }

  Server& start(ServerOptions options = {}) {
    if (options.unix_path.empty()) options.unix_path = folder_ / "socket";
    server_ = std::make_unique<Server>(std::move(options));
    server_->handle([this](Request request, Responder responder) {
      if (handler_) return handler_(std::move(request), std::move(responder));
      if (request.path == "/size") {
        const std::size_t size = std::stoul(request.query_value("bytes", "0"));
        return responder(
            {200, "application/octet-stream", std::make_shared<const std::string>(size, 'x'), {}});
      }
      responder({200, "text/plain", std::move(request.body), {}});
    });
    for (auto& [prefix, handler] : channels_) server_->on_channel(prefix, handler);
    const Status started = server_->start();
    EXPECT_TRUE(started) << (started ? "" : started.error().message);
    return *server_;
  }

  TemporaryFolder folder_;
  Handler handler_;  // set before start(): replaces the default one
  std::vector<std::pair<std::string, ChannelHandler>> channels_;
  std::unique_ptr<Server> server_;
};

}  // namespace tutti::wire::test
