// BlobId names a stored text (a job's script, an environment) by its content. 0 is "none".
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tutti {

struct BlobId {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  explicit operator bool() const { return high != 0 || low != 0; }
  friend auto operator<=>(const BlobId&, const BlobId&) = default;
};

std::string to_hex(BlobId id);                             // 32 lower-case digits
std::optional<BlobId> blob_id_from_hex(std::string_view);  // exactly 32 digits, else nothing

}  // namespace tutti
