#include "wire/server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "base/check.h"
#include "wire/detail/connection.h"
#include "wire/detail/server_core.h"

namespace tutti::wire {
namespace detail {
namespace {

constexpr int kAcceptsPerTurn = 64;

void refuse_connection(int descriptor) {
  static constexpr std::string_view kAnswer =
      "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: 21\r\n"
      "Connection: close\r\n\r\ntoo many connections\n";
  (void)::send(descriptor, kAnswer.data(), kAnswer.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  ::close(descriptor);
}

void open_connection(const std::shared_ptr<ServerCore>& core, int descriptor, Transport transport) {
  if (core->sessions.size() >= core->options.limits.connections_max) {
    return refuse_connection(descriptor);
  }
  if (transport == Transport::kTcp) {
    const int on = 1;
    (void)::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  Peer peer = describe_peer(descriptor, transport);
  auto watch = std::make_unique<Watch>(core->loop, descriptor);
  if (watch->descriptor() < 0) return;
  const std::uint64_t id = ++core->last_session_id;
  auto connection = std::make_shared<Connection>(core, id, std::move(watch), std::move(peer));
  core->sessions.emplace(id, connection);
  ++core->session_count;
  connection->start();
}

void accept_some(const std::shared_ptr<ServerCore>& core, std::size_t index);

void arm_accept(const std::shared_ptr<ServerCore>& core, std::size_t index) {
  core->acceptors[index]->when_readable([core, index] { accept_some(core, index); });
}

void accept_some(const std::shared_ptr<ServerCore>& core, std::size_t index) {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    const int descriptor = ::accept4(core->acceptors[index]->descriptor(), nullptr, nullptr,
                                     SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor >= 0) {
      open_connection(core, descriptor, core->listeners[index].transport());
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      core->exhausted_acceptors.push_back(index);  // the next sweep tries again
      return;
    } else if (errno == EAGAIN) {
      break;
    }
  }
  arm_accept(core, index);
}

void sweep(const std::shared_ptr<ServerCore>& core) {
  const Clock::time_point now = Clock::now();
  // By id, not by iterator: a session's end may end others.
  std::uint64_t last = 0;
  for (auto next = core->sessions.upper_bound(last); next != core->sessions.end();
       next = core->sessions.upper_bound(last)) {
    last = next->first;
    const std::shared_ptr<Session> session = next->second;
    session->sweep(now);
  }
  for (const std::size_t index : std::exchange(core->exhausted_acceptors, {})) {
    arm_accept(core, index);
  }
}

void shut_down(const std::shared_ptr<ServerCore>& core) {
  for (const auto& acceptor : core->acceptors) acceptor->close();
  while (!core->sessions.empty()) {
    const auto first = core->sessions.begin();
    const std::uint64_t id = first->first;
    const std::shared_ptr<Session> session = first->second;
    session->shut_down("the server stops");
    core->remove(id);
  }
  core->loop.finish();
}

// Often enough for the shortest time limit to be kept to within a quarter.
Duration sweep_interval(const ServerLimits& limits) {
  const Duration shortest =
      std::min({limits.idle_timeout, limits.request_timeout, limits.write_timeout});
  return Duration::milliseconds(std::clamp<std::int64_t>(shortest.ms() / 4, 10, 250));
}

}  // namespace
}  // namespace detail

Responder::~Responder() {
  if (exchange_) (*this)({500, "text/plain", "the request was dropped without an answer\n", {}});
}

void Responder::operator()(Response response) {
  if (const auto exchange = std::exchange(exchange_, nullptr))
    exchange->respond(std::move(response));
}

Upgrade::~Upgrade() {
  if (exchange_) refuse({500, "text/plain", "the channel was dropped without an answer\n", {}});
}

std::shared_ptr<Channel> Upgrade::accept(ChannelCallbacks callbacks,
                                         const ChannelOptions& options) {
  const auto exchange = std::exchange(exchange_, nullptr);
  TUTTI_CHECK(exchange != nullptr);
  return exchange->upgrade(std::move(callbacks), options);
}

void Upgrade::refuse(Response response) {
  if (const auto exchange = std::exchange(exchange_, nullptr))
    exchange->respond(std::move(response));
}

Server::Server(ServerOptions options) : core_(std::make_shared<detail::ServerCore>()) {
  core_->options = std::move(options);
}

Server::~Server() { stop(); }

void Server::handle(Handler handler) {
  TUTTI_CHECK(!core_->started);
  core_->handler = std::move(handler);
}

void Server::on_channel(std::string path_prefix, ChannelHandler handler) {
  TUTTI_CHECK(!core_->started);
  core_->channel_handlers.emplace_back(std::move(path_prefix), std::move(handler));
}

Status Server::start() {
  TUTTI_CHECK(!core_->started);
  detail::ServerCore& core = *core_;
  std::vector<detail::Listener> listeners;
  std::vector<std::string> addresses;
  Status status;
  const auto add = [&](Result<detail::Listener> listener) {
    if (!status) return;
    if (!listener) {
      status = tl::unexpected<Error>(listener.error());
      return;
    }
    if (listener->transport() == Transport::kTcp) addresses.push_back(listener->address());
    listeners.push_back(std::move(*listener));
  };
  // Descriptors first: they are ours, so they must be closed whatever else fails.
  std::vector<Result<detail::Listener>> adopted;
  for (const int descriptor : std::exchange(core.options.listening_descriptors, {})) {
    adopted.push_back(detail::Listener::adopt(descriptor));
  }
  if (!core.options.unix_path.empty()) {
    add(detail::Listener::at_path(core.options.unix_path, core.options.unix_mode));
  }
  for (const std::string& address : core.options.tcp_addresses) {
    if (status) add(detail::Listener::at_address(address));
  }
  for (auto& listener : adopted) add(std::move(listener));
  if (!status) return status;
  if (listeners.empty()) return invalid("the server has no address to listen on");
  core.listeners = std::move(listeners);
  core.addresses = std::move(addresses);
  for (detail::Listener& listener : core.listeners) {
    core.acceptors.push_back(std::make_unique<detail::Watch>(core.loop, listener.release()));
    detail::arm_accept(core_, core.acceptors.size() - 1);
  }
  const auto interval = detail::sweep_interval(core.options.limits);
  core.loop.every(interval, [core = core_.get()] { detail::sweep(core->shared_from_this()); });
  core.started = true;
  core.thread = std::thread([core = core_] {
    (void)pthread_setname_np(pthread_self(), "tutti-wire");
    core->loop.run();
  });
  return {};
}

void Server::stop() {
  if (!core_->started || !core_->thread.joinable()) return;
  TUTTI_CHECK(!core_->loop.is_loop_thread());
  (void)core_->loop.post([core = core_] { detail::shut_down(core); });
  core_->thread.join();
  // Handlers may own what owns this server; acceptors and files go now, not with the last
  // Responder.
  core_->handler = nullptr;
  core_->channel_handlers.clear();
  core_->acceptors.clear();
  core_->listeners.clear();
}

const std::vector<std::string>& Server::addresses() const { return core_->addresses; }
std::size_t Server::connection_count() const { return core_->session_count; }

std::int64_t Server::io_cpu_us() const {
  clockid_t clock = 0;
  timespec time{};
  if (!core_->thread.joinable() ||
      pthread_getcpuclockid(core_->thread.native_handle(), &clock) != 0 ||
      clock_gettime(clock, &time) != 0) {
    return 0;
  }
  return std::int64_t{time.tv_sec} * 1'000'000 + time.tv_nsec / 1000;
}

}  // namespace tutti::wire
