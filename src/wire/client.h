// A blocking HTTP/1.1 client for the command line and for tests: plain sockets, no threads, quick
// to start. Asks one thing at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/time.h"
#include "wire/endpoint.h"
#include "wire/http.h"

namespace tutti::wire {

struct HttpReply {
  int status = 0;
  std::string content_type;
  std::string body;
};

struct ClientOptions {
  Duration deadline = Duration::seconds(10);      // for the whole exchange, connecting included
  std::string token;                              // sent as "Authorization: Bearer TOKEN"
  std::string content_type = "application/json";  // of the body, when there is one
  std::size_t body_bytes_max = std::size_t{512} << 20;
};

// A kept-alive connection. Not for use by two threads at a time.
class HttpConnection {
 public:
  explicit HttpConnection(Endpoint endpoint, ClientOptions options = {});
  HttpConnection(HttpConnection&&) noexcept;
  HttpConnection& operator=(HttpConnection&&) noexcept;
  ~HttpConnection();

  // Connects when needed (also when the server has closed the idle connection), asks, and returns
  // the answer whatever its status. Errors: kUnavailable: nobody listens, no answer within the
  // deadline, or cut off (the request may then have been carried out); kDenied: no permission for
  // the socket file; kInvalid: the answer isn't HTTP; kExhausted: the answer is too long.
  Result<HttpReply> request(std::string_view method, std::string_view target,
                            std::string_view body = {});

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// One exchange on a connection of its own.
Result<HttpReply> http_request(const Endpoint& endpoint, std::string_view method,
                               std::string_view target, std::string_view body = {},
                               const ClientOptions& options = {});

}  // namespace tutti::wire
