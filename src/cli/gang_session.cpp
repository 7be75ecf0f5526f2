#include "cli/gang_session.h"

#include <fmt/format.h>

namespace tutti::cli {

namespace {
constexpr auto kPatience = std::chrono::minutes(10);
constexpr std::uint64_t kAcknowledgeEvery = 256 * 1024;
}  // namespace

Status GangSession::open() {
  auto give_up = Clock::now() + std::chrono::milliseconds(api_.patience.ms());
  while (true) {
    wire::ClientChannelOptions options;
    options.token = api_.token();
    auto channel = wire::ClientChannel::connect(api_.endpoint(), fmt::format("/v1/attach?gang={}", gang_.value()), options);
    if (channel) {
      Status ready = channel->wait_ready(Duration::seconds(10));
      if (ready) {
        channel_ = std::move(*channel);
        attempts_ = 0;
        ++connections_;
        if (role_ == Role::kOwner) (void)send(from_client::Own{});
        for (const auto& [step, have] : have_) send_follow(step);
        return {};
      }
      if (ready.error().code != ErrorCode::kUnavailable) return ready;
      if (Clock::now() >= give_up) return ready;
    } else if (Clock::now() >= give_up) {
      return tl::unexpected<Error>(channel.error());
    }
    timespec pause{0, 50'000'000};
    nanosleep(&pause, nullptr);
  }
}

std::vector<GangSession::Incoming> GangSession::pump() {
  std::vector<Incoming> result;
  auto now = Clock::now();
  if (!channel_ || !channel_->is_open()) {
    if (channel_) {
      last_error_ = channel_->closed_reason();
      channel_.reset();
      for (std::string_view final_word : {kClosedNoSuchJob, kClosedNotYourJob})
        gave_up_ |= last_error_.find(final_word) != std::string::npos;
      if (gave_up_) return result;
      lost_at_ = now;
      attempts_ = 0;
      next_try_ = now;
    }
    if (now < next_try_) return result;
    Duration patience = std::exchange(api_.patience, Duration());
    Status opened = open();
    api_.patience = patience;
    if (!opened) {
      last_error_ = opened.error().message;
      if (now - lost_at_ > kPatience || opened.error().code == ErrorCode::kDenied) gave_up_ = true;
      next_try_ = now + std::chrono::milliseconds(wire::ReconnectPolicy{Duration::milliseconds(50), Duration::seconds(2)}.delay(attempts_++, 7).ms());
      return result;
    }
  }
  if (channel_->want_write()) channel_->on_writable();
  for (std::string& frame : channel_->on_readable()) {
    auto decoded = decode_frame<to_client::Message>(frame);
    if (decoded) result.push_back({std::move(decoded->first), std::string(decoded->second)});
  }
  if (now - pinged_ > std::chrono::seconds(5)) {
    pinged_ = now;
    channel_->keep_alive();
  }
  return result;
}

bool GangSession::send(const from_client::Message& message, std::string_view payload) {
  return channel_ && channel_->is_open() && channel_->send(encode_frame(message, payload));
}

void GangSession::send_follow(StepId step) { (void)send(from_client::Follow{step, have_[step]}); }

void GangSession::follow(StepId step, std::size_t nodes) {
  have_[step].assign(nodes, 0);
  send_follow(step);
}

void GangSession::taken(StepId step, std::uint32_t node, std::uint64_t next) {
  auto& have = have_[step];
  if (node >= have.size()) return;
  have[node] = next;
  auto& told = acknowledged_[{step, node}];
  if (next - told < kAcknowledgeEvery) return;
  told = next;
  (void)send(from_client::Taken{step, node, next});
}

void GangSession::leave(bool keep_running) {
  if (!channel_ || !channel_->is_open()) return;
  (void)send(from_client::Leave{keep_running});
  (void)channel_->flush(Duration::seconds(5));
  channel_->close("done");
}

}  // namespace tutti::cli
