// One message on a channel: a line of JSON, then, for the few kinds that carry data, raw bytes.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/archive.h"

namespace tutti {

template <class Message>
std::string encode_frame(const Message& message, std::string_view payload = {}) {
  std::string frame = to_json(message);
  frame.push_back('\n');
  frame.append(payload);
  return frame;
}

// The payload is a view into `frame`. Errors: kInvalid.
template <class Message>
Result<std::pair<Message, std::string_view>> decode_frame(std::string_view frame) {
  std::size_t end = frame.find('\n');
  if (end == std::string_view::npos) return invalid("a frame without end of line");
  auto message = from_json<Message>(frame.substr(0, end));
  if (!message) return tl::unexpected<Error>(message.error());
  return std::pair<Message, std::string_view>(std::move(*message), frame.substr(end + 1));
}

}  // namespace tutti
