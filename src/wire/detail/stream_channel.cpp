#include "wire/detail/stream_channel.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <exception>

namespace tutti::wire::detail {
namespace {

constexpr std::chrono::seconds kGoodbyeTime{2};
constexpr std::size_t kKeptCapacity = std::size_t{1} << 20;

void clear_keeping_some(std::string& buffer) {
  buffer.clear();
  if (buffer.capacity() > kKeptCapacity) buffer.shrink_to_fit();
}

}  // namespace

StreamChannel::StreamChannel(std::shared_ptr<ServerCore> core, std::uint64_t id,
                             ChannelCallbacks callbacks, const ChannelOptions& options)
    : core_(std::move(core)),
      id_(id),
      options_(options),
      callbacks_(std::move(callbacks)),
      reader_(Side::kServer, options.message_bytes_max) {}

// Runs `step` on the io thread, later, also when called there: nothing happens under the caller.
bool StreamChannel::post(void (StreamChannel::*step)()) {
  return core_->loop.post([self = shared_from_this(), step] { (*self.*step)(); });
}

void StreamChannel::start(std::unique_ptr<Watch> watch, std::string greeting,
                          const std::string& leftover) {
  watch_ = std::move(watch);
  const int on = 1;
  (void)::setsockopt(watch_->descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (mode_ == Mode::kClosed) {  // its queue overflowed before the handshake was out
    watch_->close();
    core_->remove(id_);
    return;
  }
  if (mode_ == Mode::kStarting) mode_ = Mode::kOpen;
  last_received_ = last_progress_ = Clock::now();
  {
    const std::lock_guard lock(mutex_);
    writing_ = std::move(greeting);
    in_flight_ = writing_.size();
  }
  write();
  if (mode_ == Mode::kClosed) return;
  if (!leftover.empty()) receive(leftover);
  arm_read();
}

void StreamChannel::abandon() {
  const std::lock_guard lock(mutex_);
  accepting_ = false;
  mode_ = Mode::kClosed;
  callbacks_ = {};
}

bool StreamChannel::send(std::string message) {
  bool wake = false;
  bool overflow = false;
  {
    const std::lock_guard lock(mutex_);
    if (!accepting_) return false;
    if (pending_.size() + in_flight_ + message.size() > options_.queue_bytes_max) {
      accepting_ = false;
      overflow = true;
      close_reason_ = fmt::format("output queue of more than {} bytes: the peer reads too slowly",
                                  options_.queue_bytes_max);
    } else {
      append_frame(pending_, Side::kServer, Opcode::kBinary, message);
      wake = !std::exchange(flush_posted_, true);
    }
  }
  if (overflow) {
    (void)core_->loop.post([self = shared_from_this()] {
      self->overflowed_ = true;
      self->finish(self->close_reason_);
    });
    return false;
  }
  return !wake || post(&StreamChannel::flush);
}

void StreamChannel::close(std::string reason) {
  {
    const std::lock_guard lock(mutex_);
    if (!accepting_) return;
    accepting_ = false;
    close_reason_ = std::move(reason);
  }
  (void)post(&StreamChannel::begin_close);
}

bool StreamChannel::is_open() const {
  const std::lock_guard lock(mutex_);
  return accepting_;
}

std::size_t StreamChannel::queued_bytes() const {
  const std::lock_guard lock(mutex_);
  return pending_.size() + in_flight_;
}

void StreamChannel::pause_reading() { paused_ = true; }

void StreamChannel::resume_reading() {
  if (!paused_.exchange(false)) return;
  (void)core_->loop.post([self = shared_from_this()] {
    if (self->mode_ == Mode::kClosed || !self->watch_) return;
    self->last_received_ = Clock::now();  // silence while nobody listened doesn't count
    self->deliver();
    self->arm_read();
  });
}

void StreamChannel::arm_read() {
  if (read_armed_ || paused_ || mode_ == Mode::kClosed || !watch_) return;
  read_armed_ = true;
  watch_->when_readable([self = shared_from_this()] { self->on_readable(); });
}

void StreamChannel::on_readable() {
  read_armed_ = false;
  if (paused_ || mode_ == Mode::kClosed) return;
  std::vector<char>& buffer = core_->read_buffer;
  const ssize_t n = ::recv(watch_->descriptor(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return arm_read();
  if (n <= 0) {
    return finish(mode_ == Mode::kClosing ? final_reason_ : "connection lost");
  }
  last_received_ = Clock::now();
  ping_outstanding_ = false;
  receive({buffer.data(), static_cast<std::size_t>(n)});
  arm_read();
}

void StreamChannel::receive(std::string_view bytes) {
  events_.clear();
  const bool intact = reader_.feed(bytes, events_);
  for (FrameEvent& event : events_) {
    if (event.kind == FrameEvent::Kind::kPing) {
      send_control(Opcode::kPong, event.payload);
    } else if (event.kind == FrameEvent::Kind::kClose && mode_ == Mode::kClosing) {
      return finish(final_reason_);
    } else if (event.kind != FrameEvent::Kind::kPong && mode_ == Mode::kOpen) {
      inbox_.push_back(std::move(event));
    }
  }
  deliver();
  if (!intact && mode_ == Mode::kOpen) {
    start_closing(reader_.error_code(), reader_.error(), "protocol error: " + reader_.error());
  }
}

void StreamChannel::deliver() {
  if (delivering_) return;
  delivering_ = true;
  while (!paused_ && mode_ == Mode::kOpen && !inbox_.empty()) {
    FrameEvent event = std::move(inbox_.front());
    inbox_.pop_front();
    if (event.kind == FrameEvent::Kind::kClose) {
      finish_when_written_ = true;
      start_closing(
          event.code == 1005 ? kCloseNormal : event.code, event.payload,
          event.payload.empty() ? "closed by the peer" : "closed by the peer: " + event.payload);
      break;
    }
    if (!is_open()) continue;  // close() was called: nothing is delivered any more
    try {
      if (callbacks_.on_message) callbacks_.on_message(*this, std::move(event.payload));
    } catch (const std::exception& problem) {
      start_closing(1011, "internal error", fmt::format("a message failed: {}", problem.what()));
    }
  }
  delivering_ = false;
}

void StreamChannel::send_control(Opcode opcode, std::string_view payload) {
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    if (!accepting_) return;
    // A peer that pings and never reads must not fill the memory.
    if (pending_.size() + in_flight_ > options_.queue_bytes_max) return;
    append_frame(pending_, Side::kServer, opcode, payload);
    wake = !std::exchange(flush_posted_, true);
  }
  if (wake) (void)post(&StreamChannel::flush);
}

void StreamChannel::flush() {
  {
    const std::lock_guard lock(mutex_);
    flush_posted_ = false;
  }
  if (!write_armed_ && watch_) write();
}

// Moves what was queued meanwhile to writing_. False if there is nothing.
bool StreamChannel::take_pending() {
  clear_keeping_some(writing_);
  written_ = 0;
  const std::lock_guard lock(mutex_);
  writing_.swap(pending_);
  in_flight_ = writing_.size();
  return !writing_.empty();
}

void StreamChannel::write() {
  if (mode_ == Mode::kClosed) return;
  while (true) {
    if (written_ == writing_.size()) {
      if (!take_pending()) break;
      last_progress_ = Clock::now();
    }
    const ssize_t n = ::send(watch_->descriptor(), writing_.data() + written_,
                             writing_.size() - written_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      write_armed_ = true;
      return watch_->when_writable([self = shared_from_this()] {
        self->write_armed_ = false;
        self->write();
      });
    }
    if (n < 0) return finish(mode_ == Mode::kClosing ? final_reason_ : "connection lost");
    last_progress_ = Clock::now();
    written_ += static_cast<std::size_t>(n);
    const std::lock_guard lock(mutex_);
    in_flight_ = writing_.size() - written_;
  }
  if (finish_when_written_) finish(final_reason_);
}

void StreamChannel::begin_close() {
  std::string reason;
  {
    const std::lock_guard lock(mutex_);
    reason = close_reason_;
  }
  if (mode_ == Mode::kStarting || mode_ == Mode::kOpen) {
    start_closing(kCloseNormal, reason, "closed here: " + reason);
  }
}

// Sends the close frame behind what is queued and waits a moment for the other side's.
void StreamChannel::start_closing(std::uint16_t code, const std::string& told, std::string reason) {
  mode_ = Mode::kClosing;
  final_reason_ = std::move(reason);
  close_deadline_ = Clock::now() + kGoodbyeTime;
  inbox_.clear();
  {
    const std::lock_guard lock(mutex_);
    accepting_ = false;
    append_close(pending_, Side::kServer, code, told);
  }
  paused_ = false;
  if (!watch_) return;
  if (!write_armed_) write();
  arm_read();
}

void StreamChannel::finish(const std::string& reason) {
  if (mode_ == Mode::kClosed) return;
  const auto self = shared_from_this();
  mode_ = Mode::kClosed;
  {
    const std::lock_guard lock(mutex_);
    accepting_ = false;
    std::string().swap(pending_);
    in_flight_ = 0;
  }
  std::string().swap(writing_);
  written_ = 0;
  inbox_.clear();
  if (watch_) {
    watch_->close();
    core_->remove(id_);
  }
  // The callbacks may own what owns this channel: let go of them when they have run.
  const ChannelCallbacks callbacks = std::exchange(callbacks_, {});
  try {
    if (callbacks.on_closed) callbacks.on_closed(*this, overflowed_ ? close_reason_ : reason);
  } catch (const std::exception&) {
    // The channel is gone already; there is nobody left to tell.
  }
}

void StreamChannel::sweep(Clock::time_point now) {
  if (mode_ == Mode::kClosing && now > close_deadline_) return finish(final_reason_);
  if (written_ < writing_.size() && now > last_progress_ + chrono_ms(options_.stall_timeout)) {
    return finish("the peer has stopped reading");
  }
  if (mode_ != Mode::kOpen || paused_) return;
  const Clock::time_point due = last_received_ + chrono_ms(options_.ping_interval);
  if (now > due + chrono_ms(options_.pong_timeout) && ping_outstanding_) {
    return finish("the peer does not answer pings");
  }
  if (now > due && !ping_outstanding_) {
    ping_outstanding_ = true;
    send_control(Opcode::kPing, {});
  }
}

void StreamChannel::shut_down(const std::string& reason) {
  if (mode_ == Mode::kOpen) start_closing(1001, reason, reason);
  finish(reason);
}

}  // namespace tutti::wire::detail
