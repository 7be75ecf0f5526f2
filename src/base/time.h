// Time as the core knows it. Instant is a point on a clock that cannot be read here: it has no
// now(), so code below the edge receives the time as an argument or does not have it at all.
// Both types count whole milliseconds.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace tutti {

class Duration {
 public:
  constexpr Duration() = default;
  static constexpr Duration milliseconds(std::int64_t n) { return Duration(n); }
  static constexpr Duration seconds(std::int64_t n) { return Duration(n * 1000); }
  static constexpr Duration minutes(std::int64_t n) { return Duration(n * 60'000); }
  // Longer than any run: "no limit".
  static constexpr Duration infinite() {
    return Duration(std::numeric_limits<std::int64_t>::max() / 4);
  }
  constexpr std::int64_t ms() const { return ms_; }
  constexpr std::int64_t whole_seconds() const { return ms_ / 1000; }
  constexpr bool is_infinite() const { return *this >= infinite(); }
  friend constexpr auto operator<=>(Duration, Duration) = default;
  friend constexpr Duration operator+(Duration a, Duration b) { return Duration(a.ms_ + b.ms_); }
  friend constexpr Duration operator-(Duration a, Duration b) { return Duration(a.ms_ - b.ms_); }

 private:
  explicit constexpr Duration(std::int64_t ms) : ms_(ms) {}
  std::int64_t ms_ = 0;
};

// Milliseconds since 1970-01-01 UTC; in a simulation, since its start. Instant() is "never set".
class Instant {
 public:
  constexpr Instant() = default;
  static constexpr Instant from_ms(std::int64_t ms) { return Instant(ms); }
  static constexpr Instant never() { return Instant(std::numeric_limits<std::int64_t>::max() / 2); }
  constexpr std::int64_t ms() const { return ms_; }
  constexpr std::int64_t whole_seconds() const { return ms_ / 1000; }
  constexpr bool is_set() const { return ms_ != 0; }
  friend constexpr auto operator<=>(Instant, Instant) = default;
  // An infinite duration gives never(); never() absorbs.
  friend constexpr Instant operator+(Instant a, Duration d) {
    return (a >= never() || d.is_infinite()) ? never() : Instant(a.ms_ + d.ms());
  }
  friend constexpr Duration operator-(Instant a, Instant b) {
    return Duration::milliseconds(a.ms_ - b.ms_);
  }

 private:
  explicit constexpr Instant(std::int64_t ms) : ms_(ms) {}
  std::int64_t ms_ = 0;
};

}  // namespace tutti
