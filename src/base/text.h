// Small operations on text that every parser here needs. ASCII rules throughout (no locale):
// Slurm's and Kubernetes' keywords are ASCII, and a locale would make parsing depend on the host.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tutti {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}
constexpr char to_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }
constexpr char to_upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; }
std::string lower(std::string_view text);
std::string upper(std::string_view text);

std::string_view trim(std::string_view text);

// What split() does with pieces of no characters: "a,,b" is three pieces or two.
enum class EmptyPieces : std::uint8_t { kKeep, kDrop };
// The views point into `text`. An empty text gives one empty piece under kKeep, none under kDrop.
std::vector<std::string_view> split(std::string_view text, char separator,
                                    EmptyPieces empty = EmptyPieces::kKeep);
// As split(), but a separator inside (), [] or {} does not count: "a[1,2],b" has two pieces.
// Unbalanced brackets are the caller's to notice; they never make this fail.
std::vector<std::string_view> split_outside_brackets(std::string_view text, char separator,
                                                     EmptyPieces empty = EmptyPieces::kKeep);
// The parts before and after the first separator; nullopt when there is none.
std::optional<std::pair<std::string_view, std::string_view>> split_once(std::string_view text,
                                                                        char separator);

// The pieces with `separator` between them; a piece is anything convertible to string_view.
template <class Range>
std::string join(const Range& pieces, std::string_view separator) {
  std::string out;
  bool first = true;
  for (const auto& piece : pieces) {
    if (!first) out += separator;
    first = false;
    out += std::string_view(piece);
  }
  return out;
}

bool equals_ci(std::string_view a, std::string_view b);
bool starts_with_ci(std::string_view text, std::string_view prefix);

// The whole text as a number in base 10: no blanks, no '+', no rest, in range; else nullopt.
template <std::integral T>
std::optional<T> parse_integer(std::string_view text) {
  T value{};
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || text.empty()) return std::nullopt;
  return value;
}

// Insertions, deletions and changes of one character that turn a into b; case counts.
// Cost: a.size() * b.size().
std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate nearest to a mistyped word, for "did you mean": at most a third of the word's
// letters (and at least one) may differ, case aside. Ties go to the earlier candidate; nullopt
// when nothing is near. Words over 64 characters are never matched, so the cost is bounded.
std::optional<std::string> closest_match(std::string_view word,
                                         std::span<const std::string_view> candidates);

// How a text from outside is shown inside an error: quoted, control characters as \xNN, cut to
// 60 characters.
std::string quote(std::string_view text);

}  // namespace tutti
