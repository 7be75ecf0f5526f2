// Content-addressed texts (job scripts, submit environments): a blob is named by its content, so
// a thousand submissions of one script store it once.
//
// The name is SHA-256 cut to 128 bits. Users choose the content, so the hash must resist
// collisions made on purpose (2^64 work); a fast non-cryptographic hash does not.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace tutti::journal {

struct BlobId {
  std::array<std::uint8_t, 16> bytes{};
  friend auto operator<=>(const BlobId&, const BlobId&) = default;
};

// The name of this content. About 2 us for 4 KiB.
BlobId blob_id(std::string_view data);

// 32 lower-case hexadecimal digits, and back. Errors: kInvalid.
std::string to_string(const BlobId& id);
Result<BlobId> parse_blob_id(std::string_view text);

// A text with its name; the two cannot disagree.
class Blob {
 public:
  explicit Blob(std::string data) : data_(std::move(data)), id_(blob_id(data_)) {}
  const BlobId& id() const { return id_; }
  const std::string& data() const { return data_; }

 private:
  std::string data_;
  BlobId id_;
};

}  // namespace tutti::journal
