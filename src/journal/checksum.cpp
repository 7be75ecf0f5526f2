#include "journal/checksum.h"

#include <array>
#include <cstring>

namespace tutti::journal {
namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78;  // reflected

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) ? kPolynomial : 0);
    table[i] = value;
  }
  return table;
}
constexpr auto kTable = make_table();

std::uint32_t portable(std::uint32_t state, std::string_view data) {
  for (char c : data) state = (state >> 8) ^ kTable[(state ^ static_cast<std::uint8_t>(c)) & 0xFF];
  return state;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t with_sse42(std::uint32_t state,
                                                           std::string_view data) {
  std::uint64_t wide = state;
  while (data.size() >= sizeof(std::uint64_t)) {
    std::uint64_t word;
    std::memcpy(&word, data.data(), sizeof word);
    wide = __builtin_ia32_crc32di(wide, word);
    data.remove_prefix(sizeof word);
  }
  auto narrow = static_cast<std::uint32_t>(wide);
  for (char c : data) narrow = __builtin_ia32_crc32qi(narrow, static_cast<std::uint8_t>(c));
  return narrow;
}
#endif

}  // namespace

std::uint32_t crc32c(std::uint32_t seed, std::string_view data) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return ~with_sse42(~seed, data);
#endif
  return ~portable(~seed, data);
}

std::uint32_t chain_checksum(std::uint32_t previous, std::uint64_t sequence,
                             std::string_view body) {
  std::array<char, 8> number;  // little-endian on every machine
  for (int i = 0; i < 8; ++i) number[i] = static_cast<char>(sequence >> (8 * i));
  return crc32c(crc32c(previous, {number.data(), number.size()}), body);
}

}  // namespace tutti::journal
