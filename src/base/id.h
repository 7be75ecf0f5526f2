// Id<Tag>: a number that names one kind of thing and cannot be mixed up with another kind.
// 0 is "none".
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace tutti {

template <class Tag, class Number = std::uint32_t>
class Id {
 public:
  using number_type = Number;
  constexpr Id() = default;
  explicit constexpr Id(Number value) : value_(value) {}
  constexpr Number value() const { return value_; }
  constexpr explicit operator bool() const { return value_ != 0; }
  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  Number value_ = 0;
};

}  // namespace tutti

template <class Tag, class Number>
struct std::hash<tutti::Id<Tag, Number>> {
  std::size_t operator()(tutti::Id<Tag, Number> id) const noexcept {
    return std::hash<Number>()(id.value());
  }
};
