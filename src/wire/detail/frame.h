// WebSocket frames (RFC 6455) as pure functions of bytes: used by the server's channel and by
// ClientChannel. No extensions. Text messages are delivered like binary ones; their UTF-8 isn't
// checked.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::wire::detail {

enum class Opcode : std::uint8_t {
  kContinuation = 0,
  kText = 1,
  kBinary = 2,
  kClose = 8,
  kPing = 9,
  kPong = 10,
};
enum class Side : std::uint8_t { kClient, kServer };

// Close codes of RFC 6455, section 7.4.1.
inline constexpr std::uint16_t kCloseNormal = 1000;
inline constexpr std::uint16_t kCloseProtocol = 1002;
inline constexpr std::uint16_t kCloseTooBig = 1009;

// A random mask key for a client's frame. The generator is seeded once per thread by the kernel.
std::uint32_t next_mask();

// Appends one whole frame sent by `side`; a client's payload is masked. Control payloads must not
// exceed 125 bytes.
void append_frame(std::string& out, Side side, Opcode opcode, std::string_view payload);
// A close frame; the reason is cut to 123 bytes (at a UTF-8 boundary).
void append_close(std::string& out, Side side, std::uint16_t code, std::string_view reason);
// Upper bound of the bytes that append_frame adds to the payload.
inline constexpr std::size_t kFrameOverheadMax = 14;

struct FrameEvent {
  enum class Kind : std::uint8_t { kMessage, kPing, kPong, kClose };
  Kind kind = Kind::kMessage;
  std::string payload;     // kClose: the reason
  std::uint16_t code = 0;  // kClose: the code, 1005 when there was none
};

// Puts frames sent by the other side together. Memory grows with bytes received, not announced.
class FrameReader {
 public:
  FrameReader(Side self, std::size_t message_bytes_max)
      : expect_mask_(self == Side::kServer), message_max_(message_bytes_max) {}

  // Consumes all of `bytes` and appends what became complete. False: the peer broke the protocol,
  // error() and error_code() say how; nothing may be fed any more.
  bool feed(std::string_view bytes, std::vector<FrameEvent>& events);
  const std::string& error() const { return error_; }
  std::uint16_t error_code() const { return error_code_; }

 private:
  bool begin_frame();
  void finish_frame(std::vector<FrameEvent>& events);
  bool broken(std::uint16_t code, std::string text);

  bool expect_mask_;
  std::size_t message_max_;
  std::array<unsigned char, 14> header_{};
  std::size_t header_size_ = 0;
  std::size_t header_need_ = 2;
  bool in_payload_ = false;
  bool final_ = false;
  bool in_message_ = false;  // fragments of a message have come, the last one has not
  bool closed_ = false;
  Opcode opcode_ = Opcode::kBinary;
  std::uint64_t remaining_ = 0;
  std::array<unsigned char, 4> mask_{};
  std::size_t mask_offset_ = 0;
  std::string message_;
  std::string control_;
  std::string error_;
  std::uint16_t error_code_ = 0;
};

// Sec-WebSocket-Accept for a Sec-WebSocket-Key (RFC 6455, 4.2.2), and a fresh key.
std::string websocket_accept(std::string_view key);
std::string make_websocket_key();

}  // namespace tutti::wire::detail
