// What the two hand-written clients share: the text of a request head, and reading a reply head.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "wire/endpoint.h"
#include "wire/http.h"

namespace tutti::wire::detail {

inline constexpr std::size_t kReplyHeadBytesMax = std::size_t{256} * 1024;

// "METHOD TARGET HTTP/1.1", Host and, with a token, Authorization; without the closing empty line.
std::string request_head(const Endpoint& endpoint, std::string_view method, std::string_view target,
                         std::string_view token);

struct ReplyHead {
  int status = 0;
  Headers headers;
  std::string_view header(std::string_view name) const;
};
// Parses `text`, which ends with the empty line.
Result<ReplyHead> parse_reply_head(std::string_view text);

}  // namespace tutti::wire::detail
