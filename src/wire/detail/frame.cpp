#include "wire/detail/frame.h"

#include <sys/random.h>

#include <cstring>

#include "base/check.h"

namespace tutti::wire::detail {
namespace {

// XORs with the four key bytes, beginning with byte `offset` of the key.
void apply_mask(char* data, std::size_t size, const std::array<unsigned char, 4>& key,
                std::size_t offset) {
  std::array<unsigned char, 8> wide{};
  for (std::size_t i = 0; i < wide.size(); ++i) wide[i] = key[(offset + i) % 4];
  std::uint64_t word = 0;
  std::memcpy(&word, wide.data(), sizeof word);
  std::size_t i = 0;
  for (; i + 8 <= size; i += 8) {
    std::uint64_t chunk = 0;
    std::memcpy(&chunk, data + i, sizeof chunk);
    chunk ^= word;
    std::memcpy(data + i, &chunk, sizeof chunk);
  }
  for (; i < size; ++i) data[i] = static_cast<char>(data[i] ^ static_cast<char>(wide[i % 8]));
}

std::array<std::uint32_t, 5> sha1(std::string text) {
  const std::uint64_t bits = std::uint64_t{text.size()} * 8;
  text.push_back('\x80');
  while (text.size() % 64 != 56) text.push_back('\0');
  for (int shift = 56; shift >= 0; shift -= 8) text.push_back(static_cast<char>(bits >> shift));
  const auto rotate = [](std::uint32_t x, int n) { return (x << n) | (x >> (32 - n)); };
  std::array<std::uint32_t, 5> h{0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
  for (std::size_t block = 0; block < text.size(); block += 64) {
    std::array<std::uint32_t, 80> w{};
    for (std::size_t i = 0; i < 64; ++i) {
      w[i / 4] = (w[i / 4] << 8) | static_cast<unsigned char>(text[block + i]);
    }
    for (std::size_t i = 16; i < 80; ++i) {
      w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    }
    auto [a, b, c, d, e] = h;
    for (std::size_t i = 0; i < 80; ++i) {
      const std::uint32_t f = i < 20   ? (b & c) | (~b & d)
                              : i < 40 ? b ^ c ^ d
                              : i < 60 ? (b & c) | (b & d) | (c & d)
                                       : b ^ c ^ d;
      static constexpr std::array<std::uint32_t, 4> kRound{0x5A827999, 0x6ED9EBA1, 0x8F1BBCDC,
                                                           0xCA62C1D6};
      const std::uint32_t next = rotate(a, 5) + f + e + kRound[i / 20] + w[i];
      e = d;
      d = c;
      c = rotate(b, 30);
      b = a;
      a = next;
    }
    h = {h[0] + a, h[1] + b, h[2] + c, h[3] + d, h[4] + e};
  }
  return h;
}

std::string base64(std::string_view bytes) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group = (group << 8) | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      out.push_back(i + k <= bytes.size() ? kDigits[(group >> (18 - 6 * k)) & 63] : '=');
    }
  }
  return out;
}

void fill_random(void* data, std::size_t size) {
  TUTTI_CHECK(getrandom(data, size, 0) == static_cast<ssize_t>(size));
}

}  // namespace

std::uint32_t next_mask() {
  thread_local std::uint64_t state = [] {
    std::uint64_t seed = 0;
    fill_random(&seed, sizeof seed);
    return seed;
  }();
  state += 0x9E3779B97F4A7C15ULL;  // splitmix64
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return static_cast<std::uint32_t>(z >> 32);
}

void append_frame(std::string& out, Side side, Opcode opcode, std::string_view payload) {
  const bool masked = side == Side::kClient;
  const char mask_bit = masked ? '\x80' : '\0';
  out.push_back(static_cast<char>(0x80U | static_cast<unsigned>(opcode)));
  const std::uint64_t size = payload.size();
  if (size < 126) {
    out.push_back(static_cast<char>(mask_bit | static_cast<char>(size)));
  } else if (size <= 0xFFFF) {
    out.push_back(static_cast<char>(mask_bit | 126));
    for (int shift = 8; shift >= 0; shift -= 8) out.push_back(static_cast<char>(size >> shift));
  } else {
    out.push_back(static_cast<char>(mask_bit | 127));
    for (int shift = 56; shift >= 0; shift -= 8) out.push_back(static_cast<char>(size >> shift));
  }
  if (!masked) {
    out.append(payload);
    return;
  }
  std::array<unsigned char, 4> key{};
  const std::uint32_t mask = next_mask();
  std::memcpy(key.data(), &mask, sizeof mask);
  out.append(reinterpret_cast<const char*>(key.data()), key.size());
  const std::size_t start = out.size();
  out.append(payload);
  apply_mask(out.data() + start, payload.size(), key, 0);
}

void append_close(std::string& out, Side side, std::uint16_t code, std::string_view reason) {
  if (reason.size() > 123) {
    std::size_t end = 123;
    while (end > 0 && (static_cast<unsigned char>(reason[end]) & 0xC0U) == 0x80U) --end;
    reason = reason.substr(0, end);
  }
  std::string payload;
  payload.push_back(static_cast<char>(code >> 8));
  payload.push_back(static_cast<char>(code & 0xFF));
  payload.append(reason);
  append_frame(out, side, Opcode::kClose, payload);
}

bool FrameReader::broken(std::uint16_t code, std::string text) {
  error_code_ = code;
  error_ = std::move(text);
  closed_ = true;
  return false;
}

// The header is complete: checks it and prepares for the payload.
bool FrameReader::begin_frame() {
  final_ = (header_[0] & 0x80U) != 0;
  const unsigned opcode = header_[0] & 0x0FU;
  const bool masked = (header_[1] & 0x80U) != 0;
  if ((header_[0] & 0x70U) != 0) return broken(kCloseProtocol, "reserved bits set in a frame");
  if (masked != expect_mask_) {
    return broken(kCloseProtocol,
                  expect_mask_ ? "unmasked frame from a client" : "masked frame from a server");
  }
  std::uint64_t size = header_[1] & 0x7FU;
  std::size_t at = 2;
  if (size >= 126) {
    const std::size_t width = size == 126 ? 2 : 8;
    size = 0;
    for (std::size_t i = 0; i < width; ++i) size = (size << 8) | header_[at + i];
    at += width;
    if (size < (width == 2 ? 126U : 0x10000U) || (size >> 63) != 0) {
      return broken(kCloseProtocol, "frame length not in its shortest form");
    }
  }
  if (masked) std::memcpy(mask_.data(), header_.data() + at, 4);
  mask_offset_ = 0;
  remaining_ = size;
  opcode_ = static_cast<Opcode>(opcode);
  switch (opcode_) {
    case Opcode::kClose:
    case Opcode::kPing:
    case Opcode::kPong:
      if (!final_ || size > 125) return broken(kCloseProtocol, "malformed control frame");
      control_.clear();
      break;
    case Opcode::kContinuation:
      if (!in_message_) return broken(kCloseProtocol, "continuation without a message");
      break;
    case Opcode::kText:
    case Opcode::kBinary:
      if (in_message_) return broken(kCloseProtocol, "message begun inside another one");
      in_message_ = true;
      message_.clear();
      break;
    default:
      return broken(kCloseProtocol, "unknown frame type");
  }
  if (opcode < 8) {
    if (size > message_max_ - message_.size()) {
      return broken(kCloseTooBig,
                    "message of more than " + std::to_string(message_max_) + " bytes");
    }
    message_.reserve(message_.size() + static_cast<std::size_t>(
                                           std::min<std::uint64_t>(size, std::uint64_t{1} << 20)));
  }
  in_payload_ = true;
  return true;
}

void FrameReader::finish_frame(std::vector<FrameEvent>& events) {
  in_payload_ = false;
  header_size_ = 0;
  header_need_ = 2;
  switch (opcode_) {
    case Opcode::kPing:
      events.push_back({FrameEvent::Kind::kPing, std::move(control_), 0});
      return;
    case Opcode::kPong:
      events.push_back({FrameEvent::Kind::kPong, std::move(control_), 0});
      return;
    case Opcode::kClose: {
      FrameEvent event{FrameEvent::Kind::kClose, {}, 1005};
      if (control_.size() >= 2) {
        event.code = static_cast<std::uint16_t>((static_cast<unsigned char>(control_[0]) << 8) |
                                                static_cast<unsigned char>(control_[1]));
        event.payload = control_.substr(2);
      }
      events.push_back(std::move(event));
      closed_ = true;
      return;
    }
    default:
      if (!final_) return;
      in_message_ = false;
      events.push_back({FrameEvent::Kind::kMessage, std::move(message_), 0});
      message_.clear();
      return;
  }
}

bool FrameReader::feed(std::string_view bytes, std::vector<FrameEvent>& events) {
  if (!error_.empty()) return false;
  while (!bytes.empty() && !closed_) {
    if (!in_payload_) {
      const std::size_t take = std::min(bytes.size(), header_need_ - header_size_);
      std::memcpy(header_.data() + header_size_, bytes.data(), take);
      header_size_ += take;
      bytes.remove_prefix(take);
      if (header_size_ < header_need_) break;
      if (header_need_ == 2) {
        const unsigned size = header_[1] & 0x7FU;
        header_need_ += (size == 126   ? 2U
                         : size == 127 ? 8U
                                       : 0U) +
                        ((header_[1] & 0x80U) ? 4U : 0U);
        if (header_size_ < header_need_) continue;
      }
      if (!begin_frame()) return false;
    } else {
      const auto take = static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), remaining_));
      std::string& target = static_cast<unsigned>(opcode_) < 8 ? message_ : control_;
      const std::size_t start = target.size();
      target.append(bytes.substr(0, take));
      if (expect_mask_) {
        apply_mask(target.data() + start, take, mask_, mask_offset_);
        mask_offset_ = (mask_offset_ + take) % 4;
      }
      remaining_ -= take;
      bytes.remove_prefix(take);
    }
    if (in_payload_ && remaining_ == 0) finish_frame(events);
  }
  return true;
}

std::string websocket_accept(std::string_view key) {
  std::string bytes;
  for (const std::uint32_t word : sha1(std::string(key) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(word >> shift));
  }
  return base64(bytes);
}

std::string make_websocket_key() {
  std::array<char, 16> nonce{};
  fill_random(nonce.data(), nonce.size());
  return base64({nonce.data(), nonce.size()});
}

}  // namespace tutti::wire::detail
