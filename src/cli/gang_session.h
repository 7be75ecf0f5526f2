// GangSession: a client's channel to the controller about one gang (model/attach_protocol.h), with
// reconnection: a controller that restarts is dialled again and told what is already here.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/api_client.h"
#include "model/attach_protocol.h"
#include "wire/client_channel.h"

namespace tutti::cli {

class GangSession {
 public:
  // kOwner: the allocation was submitted by this client and lives for it.
  enum class Role : std::uint8_t { kVisitor, kOwner };
  GangSession(ApiClient& api, GangId gang, Role role) : api_(api), gang_(gang), role_(role) {}

  // Dials; errors: what the controller said, or kUnavailable after the client's patience.
  Status open();
  // For poll(); -1 while there is no connection (then call pump() every 100 ms).
  int fd() const { return channel_ ? channel_->fd() : -1; }
  bool want_write() const { return channel_ && channel_->want_write(); }
  std::size_t queued_bytes() const { return channel_ ? channel_->queued_bytes() : 0; }
  // Reads, writes, pings and reconnects as needed; returns what has come, in order.
  using Incoming = std::pair<to_client::Message, std::string>;
  std::vector<Incoming> pump();
  // False while disconnected: the message is dropped.
  bool send(const from_client::Message& message, std::string_view payload = {});
  // Follows the step, now and after each reconnection. `nodes` = how many the step has.
  void follow(StepId step, std::size_t nodes);
  void forget(StepId step) { have_.erase(step); }
  // Notes that output up to `next` of that node has been written out.
  void taken(StepId step, std::uint32_t node, std::uint64_t next);
  // Ends the conversation; keep_running leaves the work alone.
  void leave(bool keep_running);
  // How often the connection was made: what was sent over an earlier one may be lost.
  unsigned connections() const { return connections_; }
  bool gave_up() const { return gave_up_; }
  const std::string& last_error() const { return last_error_; }

 private:
  using Clock = std::chrono::steady_clock;
  void send_follow(StepId step);
  ApiClient& api_;
  GangId gang_;
  Role role_;
  std::optional<wire::ClientChannel> channel_;
  std::map<StepId, std::vector<std::uint64_t>> have_;
  std::map<std::pair<StepId, std::uint32_t>, std::uint64_t> acknowledged_;
  Clock::time_point next_try_{}, lost_at_{}, pinged_{};
  unsigned attempts_ = 0, connections_ = 0;
  bool gave_up_ = false;
  std::string last_error_;
};

}  // namespace tutti::cli
