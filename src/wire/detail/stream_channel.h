// StreamChannel: the server's Channel, the second life of an accepted socket. Senders append whole
// frames to one buffer under a mutex; the io thread swaps it out and writes it, so messages sent
// close together share one system call.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "wire/detail/frame.h"
#include "wire/detail/server_core.h"

namespace tutti::wire::detail {

class StreamChannel final : public Channel,
                            public Session,
                            public std::enable_shared_from_this<StreamChannel> {
 public:
  StreamChannel(std::shared_ptr<ServerCore> core, std::uint64_t id, ChannelCallbacks callbacks,
                const ChannelOptions& options);
  // Io thread: takes the socket over, sends `greeting` before any frame, reads `leftover` first.
  void start(std::unique_ptr<Watch> watch, std::string greeting, const std::string& leftover);
  // The server had stopped before: closed, without a callback.
  void abandon();

  bool send(std::string message) override;
  void close(std::string reason) override;
  bool is_open() const override;
  void pause_reading() override;
  void resume_reading() override;
  std::size_t queued_bytes() const override;

  void sweep(Clock::time_point now) override;
  void shut_down(const std::string& reason) override;

 private:
  enum class Mode : std::uint8_t { kStarting, kOpen, kClosing, kClosed };

  bool post(void (StreamChannel::*step)());
  void arm_read();
  void on_readable();
  void receive(std::string_view bytes);
  void deliver();
  void flush();
  void write();
  bool take_pending();
  void send_control(Opcode opcode, std::string_view payload);
  void begin_close();
  void start_closing(std::uint16_t code, const std::string& told, std::string reason);
  void finish(const std::string& reason);

  std::shared_ptr<ServerCore> core_;
  const std::uint64_t id_;
  const ChannelOptions options_;

  mutable std::mutex mutex_;   // guards the next five
  std::string pending_;        // frames not yet taken by the io thread
  std::size_t in_flight_ = 0;  // bytes taken by the io thread, not yet by the kernel
  bool accepting_ = true;      // send() is possible
  bool flush_posted_ = false;
  std::string close_reason_;  // given to close(), or why the queue overflowed

  std::atomic<bool> paused_{false};

  // Io thread only.
  ChannelCallbacks callbacks_;
  std::unique_ptr<Watch> watch_;
  FrameReader reader_;
  Mode mode_ = Mode::kStarting;
  bool read_armed_ = false;
  bool write_armed_ = false;
  bool delivering_ = false;
  bool finish_when_written_ = false;
  bool overflowed_ = false;
  std::vector<FrameEvent> events_;
  std::deque<FrameEvent> inbox_;  // messages and the close frame, not yet delivered
  std::string writing_;
  std::size_t written_ = 0;
  std::string final_reason_;
  bool ping_outstanding_ = false;
  Clock::time_point last_received_;
  Clock::time_point last_progress_;
  Clock::time_point close_deadline_;
};

}  // namespace tutti::wire::detail
