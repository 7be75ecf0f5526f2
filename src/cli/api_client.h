// The command line's way to the controller: one request, a bounded retry while it is restarting.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/archive.h"
#include "base/error.h"
#include "base/time.h"
#include "model/api.h"
#include "wire/endpoint.h"

namespace tutti::cli {

class ApiClient {
 public:
  // Finds the cluster by TUTTI_STATE or the default directories; TUTTI_URL and TUTTI_TOKEN name one
  // over TCP.
  ApiClient();
  explicit ApiClient(const std::string& state_dir);

  // The body of a 2xx answer. Errors: the controller's own (code, reason, message), or
  // kUnavailable after `patience`.
  Result<std::string> get(std::string_view target) { return ask("GET", target, {}, patience, Repeat::kAlways); }
  Result<std::string> post(std::string_view target, std::string_view body) {
    return ask("POST", target, body, patience, Repeat::kUnlessDone);
  }
  template <class Reply>
  Result<Reply> get_as(std::string_view target) {
    return decode<Reply>(get(target));
  }
  template <class Reply, class Request>
  Result<Reply> post_as(std::string_view target, const Request& request) {
    return decode<Reply>(post(target, to_json(request)));
  }

  // POST /v1/steps with a key: asked again until the controller answers, for `patience`. A request
  // that has a key keeps it.
  Result<StepReply> create_step(StepRequest& request);

  // POST /v1/workloads. Each submission gets a key, so that it may be asked again when the answer
  // was lost.
  Result<SubmitReply> submit(SubmitRequest& request);

  const wire::Endpoint& endpoint() const { return endpoint_; }
  const std::string& token() const { return token_; }
  const std::string& state_dir() const { return state_dir_; }
  Duration patience = Duration::seconds(3);   // how long an absent controller is waited for
  Duration deadline = Duration::seconds(60);  // of one answer

 private:
  // What was asked may have been done although the answer was lost: what may then be asked again?
  enum class Repeat : std::uint8_t { kUnlessDone, kAlways };
  Result<std::string> ask(std::string_view method, std::string_view target, std::string_view body, Duration patience, Repeat repeat);
  template <class Reply>
  static Result<Reply> decode(Result<std::string> text) {
    if (!text) return tl::unexpected<Error>(text.error());
    return from_own_json<Reply>(std::move(*text));
  }
  std::string state_dir_;
  wire::Endpoint endpoint_;
  std::string token_;
  std::optional<Error> misdirected_;  // what is wrong with TUTTI_URL
};

}  // namespace tutti::cli
