#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace tutti {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), to_lower);
  return out;
}

std::string upper(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), to_upper);
  return out;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

namespace {
void add_piece(std::vector<std::string_view>& out, std::string_view piece, EmptyPieces empty) {
  if (empty == EmptyPieces::kKeep || !piece.empty()) out.push_back(piece);
}
}  // namespace

std::vector<std::string_view> split(std::string_view text, char separator, EmptyPieces empty) {
  std::vector<std::string_view> out;
  while (true) {
    std::size_t at = text.find(separator);
    add_piece(out, text.substr(0, at), empty);
    if (at == std::string_view::npos) return out;
    text.remove_prefix(at + 1);
  }
}

std::vector<std::string_view> split_outside_brackets(std::string_view text, char separator,
                                                     EmptyPieces empty) {
  std::vector<std::string_view> out;
  std::size_t start = 0;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if ((c == ')' || c == ']' || c == '}') && depth > 0) {
      --depth;
    } else if (c == separator && depth == 0) {
      add_piece(out, text.substr(start, i - start), empty);
      start = i + 1;
    }
  }
  add_piece(out, text.substr(start), empty);
  return out;
}

std::optional<std::pair<std::string_view, std::string_view>> split_once(std::string_view text,
                                                                        char separator) {
  std::size_t at = text.find(separator);
  if (at == std::string_view::npos) return std::nullopt;
  return std::pair{text.substr(0, at), text.substr(at + 1)};
}

bool equals_ci(std::string_view a, std::string_view b) {
  return a.size() == b.size() && starts_with_ci(a, b);
}

bool starts_with_ci(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() &&
         std::equal(prefix.begin(), prefix.end(), text.begin(),
                    [](char a, char b) { return to_lower(a) == to_lower(b); });
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

std::optional<std::string> closest_match(std::string_view word,
                                         std::span<const std::string_view> candidates) {
  constexpr std::size_t kLongest = 64;
  if (word.empty() || word.size() > kLongest) return std::nullopt;
  std::string wanted = lower(word);
  std::size_t best = std::max<std::size_t>(1, word.size() / 3) + 1;
  std::optional<std::string> found;
  for (std::string_view candidate : candidates) {
    if (candidate.size() > kLongest) continue;
    std::size_t distance = edit_distance(wanted, lower(candidate));
    // A candidate that shares no letter with the word is no hint, however short both are.
    if (distance < best && distance < std::max(word.size(), candidate.size())) {
      best = distance;
      found = std::string(candidate);
    }
  }
  return found;
}

std::string quote(std::string_view text) {
  constexpr std::size_t kShown = 60;
  std::string out = "\"";
  std::size_t cut = std::min(text.size(), kShown);
  // Not in the middle of a UTF-8 sequence.
  while (cut < text.size() && cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80)
    --cut;
  for (char c : text.substr(0, cut)) {
    auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  if (cut < text.size()) out += "...";
  return out + "\"";
}

}  // namespace tutti
