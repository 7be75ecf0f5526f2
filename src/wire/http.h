// The values of one HTTP exchange as handlers see them. Plain data: nothing here reads a socket.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tutti::wire {

enum class Transport : std::uint8_t { kUnix, kTcp };

// Who is at the other end. The kernel vouches for uid, gid and pid on a Unix socket; over TCP they
// are unknown (uid and gid -1, pid 0) and only `token`, which the handler must check, can say more.
struct Peer {
  Transport transport = Transport::kUnix;
  uid_t uid = static_cast<uid_t>(-1);
  gid_t gid = static_cast<gid_t>(-1);
  pid_t pid = 0;
  std::string token;           // of "Authorization: Bearer TOKEN"; empty when there is none
  std::string remote_address;  // "127.0.0.1:4242", "[::1]:4242"; empty on a Unix socket
};

using Headers = std::vector<std::pair<std::string, std::string>>;

struct Request {
  std::string method;  // as sent: "GET", "POST", …
  std::string path;    // percent-decoded, without the query; starts with '/' (or is "*")
  std::string target;  // path and query as sent
  std::multimap<std::string, std::string, std::less<>> query;  // decoded; "a" alone is a=""
  Headers headers;                                             // in the order sent
  std::string body;
  Peer peer;

  // First header of that name in any case; empty when absent.
  std::string_view header(std::string_view name) const;
  // First query value of that name, or `otherwise`.
  std::string query_value(std::string_view name, std::string_view otherwise = {}) const;
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  // A shared body is sent without a copy (a published snapshot, a dashboard asset).
  std::variant<std::string, std::shared_ptr<const std::string>> body;
  Headers headers;  // more header lines; CR and LF in them are replaced by blanks
};

// "Not Found" for 404; "Status" for a number without a name.
std::string_view status_text(int status);
// True if the two names are equal, letters in any case (ASCII).
bool equal_ignoring_case(std::string_view a, std::string_view b);
// Percent-decoding. In a query '+' is a blank. False on a malformed escape or a NUL.
enum class UrlPart : std::uint8_t { kPath, kQuery };
bool decode_url(std::string_view text, UrlPart part, std::string& out);
// Percent-encodes everything but the unreserved characters of RFC 3986.
std::string encode_url(std::string_view text);

}  // namespace tutti::wire
