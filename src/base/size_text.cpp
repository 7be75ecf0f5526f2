#include "base/size_text.h"

#include <fmt/format.h>

#include <limits>

#include "base/text.h"

namespace tutti {

namespace {
constexpr std::string_view kUnits = "KMGTP";

tl::unexpected<Error> bad_memory(std::string_view text) {
  return invalid(
      fmt::format("memory {}: expected a whole number with K, M, G, T or P, such as 500M "
                  "or 64G",
                  quote(text)),
      "invalid_memory");
}

// The digits at the start of text; `rest` becomes what follows.
std::optional<std::uint64_t> leading_number(std::string_view text, std::string_view& rest) {
  std::size_t end = 0;
  while (end < text.size() && is_digit(text[end])) ++end;
  rest = text.substr(end);
  return parse_integer<std::uint64_t>(text.substr(0, end));
}

std::string with_unit(double number, char unit) {
  if (number == static_cast<double>(static_cast<std::uint64_t>(number)))
    return fmt::format("{}{}", static_cast<std::uint64_t>(number), unit);
  return fmt::format("{:.2f}{}", number, unit);
}
}  // namespace

Result<std::uint64_t> parse_memory_mib(std::string_view text) {
  std::string_view unit;
  auto number = leading_number(text, unit);
  if (!number) return bad_memory(text);
  char letter = unit.empty() ? 'M' : to_upper(unit.front());
  std::string_view tail = unit.empty() ? unit : unit.substr(1);
  if (!tail.empty() && !equals_ci(tail, "B") && !equals_ci(tail, "iB")) return bad_memory(text);
  // MiB per unit; K is the only one below, and rounds up.
  std::uint64_t factor = 1;
  std::uint64_t units = *number;
  switch (letter) {
    case 'K':
      units = *number / 1024 + (*number % 1024 != 0);
      break;
    case 'M':
      break;
    case 'G':
      factor = std::uint64_t{1} << 10;
      break;
    case 'T':
      factor = std::uint64_t{1} << 20;
      break;
    case 'P':  // printed by Slurm, so read
      factor = std::uint64_t{1} << 30;
      break;
    default:
      return bad_memory(text);
  }
  // More than an exabyte is a slip, and must not overflow sums over nodes.
  constexpr std::uint64_t kMaxMib = std::uint64_t{1} << 40;
  if (units > kMaxMib / factor)
    return invalid(fmt::format("memory {}: more than 1024P", quote(text)), "invalid_memory");
  return units * factor;
}

std::string format_memory_mib(std::uint64_t mib, MemoryStyle style) {
  if (mib == 0) return "0";
  std::size_t unit = 1;
  if (style == MemoryStyle::kRounded) {
    double number = static_cast<double>(mib);
    for (; number >= 1024 && unit + 1 < kUnits.size(); ++unit) number /= 1024;
    return with_unit(number, kUnits[unit]);
  }
  if (style == MemoryStyle::kExact) {
    for (; mib % 1024 == 0 && unit + 1 < kUnits.size(); ++unit) mib /= 1024;
  }
  return fmt::format("{}{}", mib, kUnits[unit]);
}

std::string format_memory_in(std::uint64_t mib, char unit) {
  if (mib == 0) return "0";
  std::size_t wanted = kUnits.find(to_upper(unit));
  if (wanted == std::string_view::npos) wanted = 1;
  double number = static_cast<double>(mib);
  if (wanted == 0) number *= 1024;
  for (std::size_t at = 1; at < wanted; ++at) number /= 1024;
  return with_unit(number, kUnits[wanted]);
}

namespace {
std::optional<std::uint32_t> parse_count(std::string_view text) {
  std::string_view suffix;
  auto number = leading_number(text, suffix);
  std::uint64_t factor = 1;
  if (equals_ci(suffix, "k"))
    factor = 1024;
  else if (equals_ci(suffix, "m"))
    factor = 1024 * 1024;
  else if (!suffix.empty())
    return std::nullopt;
  if (!number || *number > std::numeric_limits<std::uint32_t>::max() / factor) return std::nullopt;
  return static_cast<std::uint32_t>(*number * factor);
}
}  // namespace

Result<NodeCount> parse_node_count(std::string_view text) {
  auto bounds = split_once(text, '-');
  auto min = parse_count(bounds ? bounds->first : text);
  auto max = bounds ? parse_count(bounds->second) : min;
  if (!min || !max || *min == 0)
    return invalid(fmt::format("node count {}: expected N or MIN-MAX, at least 1", quote(text)),
                   "invalid_node_count");
  if (*max < *min)
    return invalid(
        fmt::format("Maximum node count {} is less than minimum node count {}", *max, *min),
        "node_count_order");
  return NodeCount{*min, *max};
}

}  // namespace tutti
