// CRC-32C (Castagnoli, RFC 3720 appendix B.4): finds damaged rows; no protection against intent.
#pragma once

#include <cstdint>
#include <string_view>

namespace tutti::journal {

// The checksum of `data` continued from `seed` (0 at the start): crc32c(crc32c(0, a), b) is that
// of a followed by b.
std::uint32_t crc32c(std::uint32_t seed, std::string_view data);

// The checksum stored with an event: over the previous event's checksum, the number and the body.
// So a row that is missing, moved or changed does not fit its neighbours.
std::uint32_t chain_checksum(std::uint32_t previous, std::uint64_t sequence, std::string_view body);

}  // namespace tutti::journal
