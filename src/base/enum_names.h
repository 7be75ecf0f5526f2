// The names of an enum's values, given once, both ways.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace tutti {

// Specialise with `static constexpr std::array kTable{std::pair{E::kA, "a"sv}, ...}`.
template <class E>
struct EnumNames;

template <class E>
constexpr std::string_view enum_name(E value) {
  for (const auto& [e, name] : EnumNames<E>::kTable)
    if (e == value) return name;
  return "?";
}
template <class E>
constexpr std::optional<E> enum_from_name(std::string_view text) {
  for (const auto& [e, name] : EnumNames<E>::kTable)
    if (name == text) return e;
  return std::nullopt;
}

}  // namespace tutti
