#include "cli/api_client.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <random>
#include <thread>

#include "cli/state_dir.h"
#include "wire/client.h"

namespace tutti::cli {

ApiClient::ApiClient() : ApiClient(client_state_dir()) {
  if (const char* url = std::getenv("TUTTI_URL"); url && *url) {
    auto endpoint = wire::Endpoint::parse(url);
    if (endpoint) {
      endpoint_ = *endpoint;
    } else {
      misdirected_ = Error{ErrorCode::kInvalid, "", "TUTTI_URL: " + endpoint.error().message, {}};
    }
    if (const char* token = std::getenv("TUTTI_TOKEN")) token_ = token;
  }
}

ApiClient::ApiClient(const std::string& state_dir)
    : state_dir_(state_dir), endpoint_(wire::Endpoint::at_path(state_dir + "/api.sock")) {}

Result<std::string> ApiClient::ask(std::string_view method, std::string_view target,
                                   std::string_view body, Duration patience, Repeat repeat) {
  if (misdirected_) return tl::unexpected<Error>(*misdirected_);
  using Clock = std::chrono::steady_clock;
  auto give_up = Clock::now() + std::chrono::milliseconds(patience.ms());
  wire::ClientOptions options;
  options.deadline = deadline;
  options.token = token_;
  auto wait = std::chrono::milliseconds(20);
  while (true) {
    auto reply = wire::http_request(endpoint_, method, target, body, options);
    if (reply && reply->status / 100 == 2) return std::move(reply->body);
    bool try_again = !reply && reply.error().code == ErrorCode::kUnavailable &&
                     (repeat == Repeat::kAlways || reply.error().reason != "answer_lost");
    if (!try_again || Clock::now() >= give_up) {
      if (!reply) return tl::unexpected<Error>(reply.error());
      auto error = from_json<ApiError>(std::string_view(reply->body));
      if (!error) return fail(ErrorCode::kInternal, "the controller answered with status " + std::to_string(reply->status));
      return fail(error->code, error->message, error->reason);
    }
    std::this_thread::sleep_for(wait);
    wait = std::min(wait * 2, std::chrono::milliseconds(250));
  }
}

namespace {
std::string new_key() {
  std::random_device random;
  return fmt::format("{:016x}", (std::uint64_t{random()} << 32 | random()) | 1);
}
}  // namespace

Result<StepReply> ApiClient::create_step(StepRequest& request) {
  if (request.key.empty()) request.key = new_key();
  return decode<StepReply>(ask("POST", "/v1/steps", to_json(request), patience, Repeat::kAlways));
}

Result<SubmitReply> ApiClient::submit(SubmitRequest& request) {
  for (Submission& submission : request.submissions) submission.key = new_key();
  return decode<SubmitReply>(
      ask("POST", "/v1/workloads", to_json(request), patience, Repeat::kAlways));
}

}  // namespace tutti::cli
