#include "base/blob_id.h"

#include <charconv>
#include <fmt/format.h>

namespace tutti {

std::string to_hex(BlobId id) { return fmt::format("{:016x}{:016x}", id.high, id.low); }

std::optional<BlobId> blob_id_from_hex(std::string_view text) {
  if (text.size() != 32) return std::nullopt;
  BlobId id;
  const char* middle = text.data() + 16;
  const char* end = text.data() + 32;
  auto high = std::from_chars(text.data(), middle, id.high, 16);
  auto low = std::from_chars(middle, end, id.low, 16);
  if (high.ptr != middle || low.ptr != end) return std::nullopt;
  return id;
}

}  // namespace tutti
