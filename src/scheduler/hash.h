// Mixing of values into one 64-bit number, for the planner's look-up tables. Not for anything that
// is stored: every hit is verified by comparing the values.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace tutti::scheduler {

class Hash {
 public:
  Hash& add(std::uint64_t value) {
    state_ = (state_ ^ value) * 0x9E3779B97F4A7C15ULL;
    state_ ^= state_ >> 29;
    return *this;
  }
  Hash& add(std::string_view text) {
    add(static_cast<std::uint64_t>(text.size()));
    while (!text.empty()) {
      std::uint64_t word = 0;
      std::size_t taken = text.size() < 8 ? text.size() : 8;
      std::memcpy(&word, text.data(), taken);
      add(word);
      text.remove_prefix(taken);
    }
    return *this;
  }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0x2545F4914F6CDD1DULL;
};

}  // namespace tutti::scheduler
