// RequestParser: bytes in, requests out. The only file that sees Beast is http_parser.cpp.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "wire/http.h"

namespace tutti::wire::detail {

class RequestParser {
 public:
  RequestParser(std::size_t header_bytes_max, std::size_t body_bytes_max);
  ~RequestParser();

  struct Step {
    std::size_t consumed = 0;
    bool done = false;     // a whole request is there: take it, then feed the rest
    int error_status = 0;  // not 0: answer this status and close
    std::string error;
  };
  // `bytes` begins with whatever an earlier step did not consume.
  Step feed(std::string_view bytes);

  // Something of a request has come (bytes not consumed count).
  bool begun() const;
  // The head is complete, the body is not, and the client waits for "100 Continue".
  bool wants_continue() const;
  bool keep_alive() const;
  bool is_upgrade() const;  // "Upgrade: websocket" with "Connection: upgrade"
  // The finished request without its peer (but with peer.token); false: its target is malformed.
  bool take(Request& request);
  void reset();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tutti::wire::detail
