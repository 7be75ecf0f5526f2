#include "base/hostlist.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/text.h"

namespace tutti {

namespace {
// Longest tail of digits read as a number, so that it fits 64 bits; more digits stay prefix.
constexpr std::size_t kMaxDigits = 18;
constexpr std::size_t kMaxNameLength = 255;

struct NumberRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::size_t width = 0;  // digits printed at least
};

// One name with brackets, cut into fixed text and lists of ranges between.
struct Part {
  std::string_view text;
  std::vector<NumberRange> ranges;  // empty: the text alone
};

tl::unexpected<Error> bad(std::string_view piece, std::string_view why) {
  return invalid(fmt::format("host list {}: {}", quote(piece), why), "invalid_hostlist");
}
tl::unexpected<Error> too_many() {
  return invalid(fmt::format("host list names more than {} hosts", kMaxHostlistNames),
                 "invalid_hostlist");
}

Result<NumberRange> parse_range(std::string_view piece, std::string_view text) {
  auto bounds = split_once(text, '-');
  std::string_view low = bounds ? bounds->first : text;
  std::string_view high = bounds ? bounds->second : text;
  auto first = parse_integer<std::uint64_t>(low);
  auto last = parse_integer<std::uint64_t>(high);
  if (!first || !last || low.size() > kMaxDigits || high.size() > kMaxDigits)
    return bad(piece,
               fmt::format("expected a number or a range such as 01-08, not {}", quote(text)));
  if (*last < *first) return bad(piece, fmt::format("the range {} runs backwards", quote(text)));
  return NumberRange{*first, *last, low.size()};
}

bool is_name_character(char c) {
  return static_cast<unsigned char>(c) > ' ' && c != '\x7F' &&
         std::string_view("](){}").find(c) == std::string_view::npos;
}

Result<std::vector<Part>> parse_parts(std::string_view piece) {
  std::vector<Part> parts;
  std::string_view rest = piece;
  while (!rest.empty()) {
    std::size_t open = rest.find('[');
    std::string_view text = rest.substr(0, open);
    if (!std::all_of(text.begin(), text.end(), is_name_character))
      return bad(piece, "a blank, a parenthesis or an unopened ] inside a name");
    if (!text.empty()) parts.push_back({text, {}});
    if (open == std::string_view::npos) break;
    std::size_t close = rest.find(']', open);
    if (close == std::string_view::npos) return bad(piece, "a [ without its ]");
    Part part;
    for (std::string_view range : split(rest.substr(open + 1, close - open - 1), ',')) {
      auto parsed = parse_range(piece, trim(range));
      if (!parsed) return tl::unexpected<Error>(parsed.error());
      part.ranges.push_back(*parsed);
    }
    parts.push_back(std::move(part));
    rest.remove_prefix(close + 1);
  }
  return parts;
}

Status add_names(std::string_view piece, std::vector<std::string>& out) {
  auto parts = parse_parts(piece);
  if (!parts) return tl::unexpected<Error>(parts.error());
  // Before anything is made: 100,000 long names would take gigabytes.
  std::size_t longest = 0;
  for (const Part& part : *parts) {
    std::size_t width = part.text.size();
    for (const NumberRange& range : part.ranges)
      width = std::max({width, range.width, fmt::formatted_size("{}", range.last)});
    longest += width;
  }
  if (longest > kMaxNameLength)
    return bad(piece, fmt::format("a name longer than {} characters", kMaxNameLength));
  std::vector<std::string> names{""};
  for (const Part& part : *parts) {
    if (part.ranges.empty()) {
      for (std::string& name : names) name += part.text;
      continue;
    }
    std::uint64_t count = 0;
    for (const NumberRange& range : part.ranges) {
      count += std::min<std::uint64_t>(range.last - range.first + 1, kMaxHostlistNames + 1);
      if (count * names.size() + out.size() > kMaxHostlistNames) return too_many();
    }
    std::vector<std::string> grown;
    grown.reserve(names.size() * count);
    for (const std::string& name : names) {
      for (const NumberRange& range : part.ranges) {
        for (std::uint64_t n = range.first; n <= range.last; ++n)
          grown.push_back(fmt::format("{}{:0{}}", name, n, range.width));
      }
    }
    names = std::move(grown);
  }
  if (out.size() + names.size() > kMaxHostlistNames) return too_many();
  std::move(names.begin(), names.end(), std::back_inserter(out));
  return {};
}

// A name cut before its trailing digits.
struct SplitName {
  std::string_view prefix;
  std::string_view digits;  // empty: the name does not end in a digit
  std::uint64_t number = 0;

  explicit SplitName(std::string_view name) {
    std::size_t start = name.size();
    while (start > 0 && name.size() - start < kMaxDigits && is_digit(name[start - 1])) --start;
    prefix = name.substr(0, start);
    digits = name.substr(start);
    number = parse_integer<std::uint64_t>(digits).value_or(0);
  }
};

// Whether both numbers can be written at one width: 9 and 10, 01 and 100, but not 1 and 01.
bool share_width(const SplitName& a, const SplitName& b) {
  if (a.digits.size() == b.digits.size()) return true;
  return (a.digits.size() > b.digits.size() ? a : b).digits.front() != '0';
}
bool share_bracket(const SplitName& a, const SplitName& b) {
  return !a.digits.empty() && !b.digits.empty() && a.prefix == b.prefix && share_width(a, b);
}
bool follows(const SplitName& a, const SplitName& b) {
  return share_bracket(a, b) && b.number == a.number + 1;
}
}  // namespace

Result<std::vector<std::string>> expand_hostlist(std::string_view text) {
  std::vector<std::string> names;
  for (std::string_view piece : split_outside_brackets(text, ',', EmptyPieces::kDrop)) {
    piece = trim(piece);
    if (piece.empty()) continue;
    if (auto added = add_names(piece, names); !added) return tl::unexpected<Error>(added.error());
  }
  return names;
}

std::string fold_hostlist(const std::vector<std::string>& names, FoldOrder order) {
  std::vector<SplitName> hosts;
  hosts.reserve(names.size());
  for (const std::string& name : names) hosts.emplace_back(name);
  if (order == FoldOrder::kSorted) {
    std::stable_sort(hosts.begin(), hosts.end(), [](const SplitName& a, const SplitName& b) {
      if (a.prefix != b.prefix) return a.prefix < b.prefix;
      if (a.number != b.number) return a.number < b.number;
      return a.digits.size() < b.digits.size();
    });
  }
  std::string out;
  for (std::size_t i = 0; i < hosts.size();) {
    std::size_t end = i + 1;
    while (end < hosts.size() && share_bracket(hosts[end - 1], hosts[end])) ++end;
    if (!out.empty()) out += ',';
    out += hosts[i].prefix;
    bool bracket = end - i > 1;
    if (bracket) out += '[';
    for (std::size_t j = i; j < end;) {
      std::size_t run = j + 1;
      while (run < end && follows(hosts[run - 1], hosts[run])) ++run;
      if (j > i) out += ',';
      out += hosts[j].digits;
      if (run - j > 1) (out += '-') += hosts[run - 1].digits;
      j = run;
    }
    if (bracket) out += ']';
    i = end;
  }
  return out;
}

std::string fold_counts(const std::vector<std::uint32_t>& counts) {
  std::string out;
  for (std::size_t i = 0; i < counts.size();) {
    std::size_t end = i + 1;
    while (end < counts.size() && counts[end] == counts[i]) ++end;
    if (!out.empty()) out += ',';
    out += fmt::to_string(counts[i]);
    if (end - i > 1) out += fmt::format("(x{})", end - i);
    i = end;
  }
  return out;
}

Result<std::vector<std::uint32_t>> expand_counts(std::string_view text) {
  std::vector<std::uint32_t> counts;
  for (std::string_view piece : split(text, ',', EmptyPieces::kDrop)) {
    auto repeated = split_once(piece, '(');
    auto count = parse_integer<std::uint32_t>(repeated ? repeated->first : piece);
    std::optional<std::size_t> times = 1;
    if (repeated) {
      std::string_view rest = repeated->second;
      bool framed = rest.size() > 2 && rest.front() == 'x' && rest.back() == ')';
      times = framed ? parse_integer<std::size_t>(rest.substr(1, rest.size() - 2)) : std::nullopt;
    }
    if (!count || !times || *times == 0)
      return invalid(fmt::format("counts {}: expected COUNT or COUNT(xTIMES), not {}", quote(text),
                                 quote(piece)));
    if (*times > kMaxHostlistNames - counts.size())
      return invalid(fmt::format("counts {}: more than {}", quote(text), kMaxHostlistNames));
    counts.insert(counts.end(), *times, *count);
  }
  return counts;
}

}  // namespace tutti
