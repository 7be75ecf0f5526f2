#include "wire/detail/plain_http.h"

#include <charconv>

namespace tutti::wire::detail {
namespace {

// A control character or blank in a token or target would break the request apart.
std::string without_controls(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) > ' ' && c != '\x7f') {
      out.push_back(c);
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

}  // namespace

std::string request_head(const Endpoint& endpoint, std::string_view method, std::string_view target,
                         std::string_view token) {
  std::string host = "localhost";
  if (endpoint.unix_path.empty()) host = to_string(endpoint);
  std::string head =
      fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\n", method, without_controls(target), host);
  if (!token.empty()) head += fmt::format("Authorization: Bearer {}\r\n", without_controls(token));
  return head;
}

std::string_view ReplyHead::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (equal_ignoring_case(key, name)) return value;
  }
  return {};
}

Result<ReplyHead> parse_reply_head(std::string_view text) {
  ReplyHead head;
  const std::size_t line_end = text.find("\r\n");
  const std::string_view first = text.substr(0, line_end);
  const char* const digits = first.data() + std::min<std::size_t>(9, first.size());
  const auto [end, error] = std::from_chars(digits, first.data() + first.size(), head.status);
  if (line_end == std::string_view::npos || !first.starts_with("HTTP/1.") || error != std::errc() ||
      end != digits + 3 || head.status < 100) {
    return invalid(fmt::format("the answer isn't HTTP; it begins with '{}'", first.substr(0, 40)));
  }
  text.remove_prefix(line_end + 2);
  while (!text.empty()) {
    const std::size_t stop = text.find("\r\n");
    if (stop == 0) return head;
    const std::string_view line = text.substr(0, stop);
    const std::size_t colon = line.find(':');
    if (stop == std::string_view::npos || colon == std::string_view::npos) break;
    std::string_view value = line.substr(colon + 1);
    while (!value.empty() && (value.front() == ' ' || value.front() == '\t'))
      value.remove_prefix(1);
    while (!value.empty() && (value.back() == ' ' || value.back() == '\t')) value.remove_suffix(1);
    head.headers.emplace_back(line.substr(0, colon), value);
    text.remove_prefix(stop + 2);
  }
  return invalid("the answer has a malformed header line");
}

}  // namespace tutti::wire::detail
