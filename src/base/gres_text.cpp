#include "base/gres_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace tutti {

namespace {
constexpr std::uint64_t kMaxCount = std::uint64_t{1} << 50;

tl::unexpected<Error> bad_gres(std::string_view piece, std::string_view why) {
  return invalid(fmt::format("generic resource {}: {}", quote(piece), why), "invalid_gres");
}

bool is_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return is_digit(c) || (to_lower(c) >= 'a' && to_lower(c) <= 'z') || c == '_' || c == '-' ||
           c == '.' || c == '+';
  });
}

// "4", "2k". A word such as "h100" is none.
std::optional<std::uint64_t> parse_count(std::string_view text) {
  if (text.empty() || !is_digit(text.front())) return std::nullopt;
  std::uint64_t factor = 1;
  constexpr std::string_view kSuffixes = "kmgt";
  std::size_t power = kSuffixes.find(to_lower(text.back()));
  if (power != std::string_view::npos) {
    factor <<= 10 * (power + 1);
    text.remove_suffix(1);
  }
  auto number = parse_integer<std::uint64_t>(text);
  if (!number || *number > kMaxCount / factor) return std::nullopt;
  return *number * factor;
}

// TYPE:COUNT, COUNT or TYPE, after the name.
Result<Gres> parse_rest(std::string_view piece, std::string name, std::string_view rest) {
  Gres gres{std::move(name), {}, 1};
  std::vector<std::string_view> fields = split(rest, ':');
  std::string_view last = fields.back();
  if (fields.size() > 2) return bad_gres(piece, "expected NAME[:TYPE][:COUNT]");
  if (auto count = parse_count(last)) {
    gres.count = *count;
    fields.pop_back();
  } else if (fields.size() == 2) {
    return bad_gres(piece, fmt::format("expected a count, not {}", quote(last)));
  }
  if (!fields.empty()) {
    if (!is_word(fields[0]))
      return bad_gres(piece, fmt::format("expected a type or a count, not {}", quote(fields[0])));
    gres.type = std::string(fields[0]);
  }
  return gres;
}

Result<Gres> parse_gres(std::string_view piece) {
  std::string_view text = piece;
  if (starts_with_ci(text, "gres:") || starts_with_ci(text, "gres/")) text.remove_prefix(5);
  // Sockets or device numbers, as sinfo and scontrol print them: known, not asked for.
  if (std::size_t open = text.find('('); open != std::string_view::npos) {
    if (text.back() != ')') return bad_gres(piece, "a ( without its ) at the end");
    text = text.substr(0, open);
  }
  std::string plain(text);
  std::replace(plain.begin(), plain.end(), '=', ':');
  auto parts = split_once(plain, ':');
  std::string name(parts ? parts->first : std::string_view(plain));
  // "gres" in front is a prefix, so it cannot name a resource as well.
  if (!is_word(name) || is_digit(name.front()) || equals_ci(name, "gres"))
    return bad_gres(piece, "expected NAME[:TYPE][:COUNT]");
  if (!parts) return Gres{std::move(name), {}, 1};
  return parse_rest(piece, std::move(name), parts->second);
}

template <class ParsePiece>
Result<std::vector<Gres>> parse_list(std::string_view text, ParsePiece parse_piece) {
  std::vector<Gres> list;
  if (trim(text).empty()) return list;
  for (std::string_view piece : split_outside_brackets(text, ',')) {
    auto gres = parse_piece(trim(piece));
    if (!gres) return tl::unexpected<Error>(gres.error());
    list.push_back(std::move(*gres));
  }
  return list;
}
}  // namespace

Result<std::vector<Gres>> parse_gres_list(std::string_view text) {
  if (equals_ci(trim(text), "none")) return std::vector<Gres>{};
  return parse_list(text, parse_gres);
}

Result<std::vector<Gres>> parse_gpu_list(std::string_view text) {
  return parse_list(text, [](std::string_view piece) { return parse_rest(piece, "gpu", piece); });
}

std::string to_string(const Gres& gres) {
  if (gres.type.empty()) return fmt::format("{}:{}", gres.name, gres.count);
  return fmt::format("{}:{}:{}", gres.name, gres.type, gres.count);
}

std::string to_string(const std::vector<Gres>& list) {
  std::string out;
  for (const Gres& gres : list) {
    if (!out.empty()) out += ',';
    out += to_string(gres);
  }
  return out;
}

}  // namespace tutti
