// Connection: the HTTP life of one accepted socket. One request at a time: the next one is parsed
// when the answer has left, so a client that pipelines gets its answers in order and one that does
// not read them is not read from.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "wire/detail/http_parser.h"
#include "wire/detail/server_core.h"

namespace tutti::wire::detail {

class Connection final : public Session,
                         public Exchange,
                         public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<ServerCore> core, std::uint64_t id, std::unique_ptr<Watch> watch,
             Peer peer);
  void start();

  void sweep(Clock::time_point now) override;
  void shut_down(const std::string& reason) override;
  void respond(Response response) override;  // any thread
  std::shared_ptr<Channel> upgrade(ChannelCallbacks callbacks,
                                   const ChannelOptions& options) override;  // any thread

 private:
  // kDraining: the last answer has left; what the client still sends is read and thrown away for
  // a moment, because closing on unread bytes would take the answer away from it.
  enum class Mode : std::uint8_t { kReading, kAnswering, kWriting, kDraining, kClosed };

  void arm_read();
  void on_readable();
  void process();
  void dispatch();
  void dispatch_upgrade(Request request);
  void refuse(int status, std::string message);
  void answer(Response response);
  void write();
  void written();
  void start_channel(const std::shared_ptr<class StreamChannel>& channel);
  void close();

  std::shared_ptr<ServerCore> core_;
  std::uint64_t id_;
  std::unique_ptr<Watch> watch_;
  Peer peer_;
  RequestParser parser_;
  Mode mode_ = Mode::kReading;
  bool processing_ = false;  // process() is on the stack
  bool read_armed_ = false;
  bool continued_ = false;  // "100 Continue" was sent for this request
  bool keep_alive_ = true;
  bool head_request_ = false;
  std::string input_;
  std::size_t input_offset_ = 0;
  std::string websocket_key_;
  std::string output_head_;
  std::variant<std::string, std::shared_ptr<const std::string>> output_body_;
  std::size_t output_sent_ = 0;
  // Start of what the present mode waits for, and the bytes moved since: the base of time limits.
  Clock::time_point since_;
  std::size_t moved_ = 0;
};

}  // namespace tutti::wire::detail
