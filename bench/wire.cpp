// What the wire costs: small requests over the Unix socket, kept alive and one at a time, and
// channel messages. io_us is CPU time of the server's io thread per item, the measure that counts:
// clients share the machine's cores with the server here.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "wire/client.h"
#include "wire/client_channel.h"
#include "wire/server.h"

namespace {

using namespace tutti;
using namespace tutti::wire;

const std::string kBody(220, 'j');

class Echo {
 public:
  Echo() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tutti-wire-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    server_ = std::make_unique<Server>(ServerOptions{.unix_path = path()});
    server_->handle([](Request request, Responder responder) {
      responder({200, "application/json", std::move(request.body), {}});
    });
    server_->on_channel("/", [](Request, Upgrade upgrade) {
      (void)upgrade.accept(
          {[](Channel& channel, std::string message) { (void)channel.send(std::move(message)); },
           {}});
    });
    if (const Status started = server_->start(); !started) {
      fmt::print(stderr, "{}\n", started.error().message);
      std::exit(1);
    }
  }
  ~Echo() {
    server_.reset();
    std::filesystem::remove_all(folder_);
  }
  std::string path() const { return folder_ + "/socket"; }
  std::int64_t cpu_us() const { return server_->io_cpu_us(); }

 private:
  std::string folder_;
  std::unique_ptr<Server> server_;
};

Echo& echo() {
  static Echo instance;
  return instance;
}

// Adds the server's share to a run; thread 0 measures for all.
class IoTime {
 public:
  explicit IoTime(benchmark::State& state) : state_(state), start_(echo().cpu_us()) {}
  void finish(double items_per_thread) {
    state_.SetItemsProcessed(static_cast<std::int64_t>(items_per_thread));
    if (state_.thread_index() != 0) return;
    state_.counters["io_us"] =
        static_cast<double>(echo().cpu_us() - start_) / (items_per_thread * state_.threads());
  }

 private:
  benchmark::State& state_;
  std::int64_t start_;
};

void post_kept_alive(benchmark::State& state) {
  HttpConnection connection(Endpoint::at_path(echo().path()));
  IoTime time(state);
  for (auto _ : state) {
    const auto reply = connection.request("POST", "/v1/jobs", kBody);
    if (!reply || reply->body.size() != kBody.size()) state.SkipWithError("no answer");
  }
  time.finish(static_cast<double>(state.iterations()));
}
BENCHMARK(post_kept_alive)->Threads(1)->Threads(8)->UseRealTime();

// What a command does: connect, ask once, hang up.
void post_once(benchmark::State& state) {
  const Endpoint endpoint = Endpoint::at_path(echo().path());
  IoTime time(state);
  for (auto _ : state) {
    if (!http_request(endpoint, "POST", "/v1/jobs", kBody)) state.SkipWithError("no answer");
  }
  time.finish(static_cast<double>(state.iterations()));
}
BENCHMARK(post_once)->Threads(1)->Threads(8)->UseRealTime();

// Sends `batch` messages, then waits for all of them to come back: 1 is the round trip.
void channel_echo(benchmark::State& state) {
  auto channel = ClientChannel::connect(Endpoint::at_path(echo().path()), "/echo");
  if (!channel || !channel->wait_ready(Duration::seconds(10))) {
    state.SkipWithError("no channel");
    return;
  }
  const auto batch = static_cast<std::size_t>(state.range(0));
  IoTime time(state);
  for (auto _ : state) {
    for (std::size_t i = 0; i < batch; ++i) (void)channel->send(kBody);
    std::size_t back = 0;
    while (back < batch && channel->is_open()) {
      pollfd ready{channel->fd(), POLLIN, 0};
      if (channel->want_write()) ready.events |= POLLOUT;
      (void)::poll(&ready, 1, 1000);
      if ((ready.revents & POLLOUT) != 0) channel->on_writable();
      back += channel->on_readable().size();
    }
    if (back != batch) state.SkipWithError("messages lost");
  }
  time.finish(static_cast<double>(state.iterations()) * static_cast<double>(batch));
}
BENCHMARK(channel_echo)->Arg(1)->Arg(100)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
