#include "frontend/config/reading.h"

#include "base/duration_text.h"

namespace tutti::config {

void Findings::expected(const YamlNode& node, std::string_view what, std::string_view key) {
  const std::string found = node.is_scalar() ? quote(node.text) : std::string(kind_name(node.kind));
  error(node.place, fmt::format("{}: expected {}, found {}", key, what, found));
}

Keys::Keys(const YamlNode& node, Findings& findings, std::string of)
    : node_(node), findings_(findings), of_(std::move(of)), taken_(node.keys.size(), false) {}

const YamlNode* Keys::take(std::string_view key) {
  known_.emplace_back(key);
  for (std::size_t i = 0; i < node_.keys.size(); ++i) {
    if (node_.keys[i].text != key) continue;
    taken_[i] = true;
    return node_.items[i].kind == YamlNode::Kind::kNull ? nullptr : &node_.items[i];
  }
  return nullptr;
}

std::optional<std::string> Keys::text(std::string_view key) {
  const YamlNode* node = take(key);
  if (!node) return std::nullopt;
  if (node->is_scalar() && !node->text.empty()) return node->text;
  findings_.expected(*node, "a name", key);
  return std::nullopt;
}

std::optional<std::uint64_t> Keys::count(std::string_view key, std::uint64_t most) {
  const YamlNode* node = take(key);
  if (!node) return std::nullopt;
  if (node->is_scalar())
    if (auto value = parse_integer<std::uint64_t>(node->text); value && *value <= most)
      return value;
  findings_.expected(*node,
                     most == ~std::uint64_t{0} ? std::string("a whole number")
                                               : fmt::format("a whole number up to {}", most),
                     key);
  return std::nullopt;
}

std::optional<bool> Keys::flag(std::string_view key) {
  const YamlNode* node = take(key);
  if (!node) return std::nullopt;
  if (node->is_scalar()) {
    if (equals_ci(node->text, "true") || equals_ci(node->text, "yes")) return true;
    if (equals_ci(node->text, "false") || equals_ci(node->text, "no")) return false;
  }
  findings_.expected(*node, "true or false", key);
  return std::nullopt;
}

std::optional<Duration> Keys::duration(std::string_view key) {
  const YamlNode* node = take(key);
  if (!node) return std::nullopt;
  if (node->is_scalar())
    if (auto value = parse_span(node->text)) return value;
  findings_.expected(*node, "a time such as 90s, 15m, 2h, 1d or 1-12:00:00", key);
  return std::nullopt;
}

std::vector<std::string> Keys::names(std::string_view key) {
  std::vector<std::string> out;
  const YamlNode* node = take(key);
  if (!node) return out;
  if (node->is_scalar() && !node->text.empty()) return {node->text};
  if (!node->is_list()) {
    findings_.expected(*node, "a list of names", key);
    return out;
  }
  for (const YamlNode& item : node->items)
    if (item.is_scalar() && !item.text.empty())
      out.push_back(item.text);
    else
      findings_.expected(item, "a name", key);
  return out;
}

void Keys::finish() {
  const std::vector<std::string_view> known(known_.begin(), known_.end());
  for (std::size_t i = 0; i < node_.keys.size(); ++i) {
    if (taken_[i]) continue;
    std::string message = fmt::format("{}: unknown key {}", of_, quote(node_.keys[i].text));
    if (auto near = closest_match(node_.keys[i].text, known))
      message += fmt::format("; did you mean {}?", *near);
    else
      message += "; known are " + join(known, ", ");
    findings_.add(Severity::kError, "config-unknown-key", node_.keys[i].place, std::move(message));
  }
}

void Keys::leave_rest() {
  for (std::size_t i = 0; i < node_.keys.size(); ++i)
    if (!taken_[i])
      findings_.no_effect(node_.keys[i].place,
                          fmt::format("{}: {} has no effect here", of_, node_.keys[i].text));
}

std::optional<Duration> parse_span(std::string_view text) {
  if (text.find(':') != text.npos || text.find('-') != text.npos) {
    auto duration = parse_duration(text);
    if (!duration || *duration == Duration::infinite()) return std::nullopt;
    return *duration;
  }
  if (text.empty()) return std::nullopt;
  std::int64_t unit = 1;
  switch (text.back()) {
    case 's':
      break;
    case 'm':
      unit = 60;
      break;
    case 'h':
      unit = 3600;
      break;
    case 'd':
      unit = 86400;
      break;
    default:
      return std::nullopt;
  }
  auto number = parse_integer<std::uint32_t>(text.substr(0, text.size() - 1));
  if (!number) return std::nullopt;
  return Duration::seconds(static_cast<std::int64_t>(*number) * unit);
}

std::string span_text(Duration duration) {
  const std::int64_t seconds = duration.ms() / 1000;
  if (seconds != 0 && seconds % 86400 == 0) return fmt::format("{}d", seconds / 86400);
  if (seconds != 0 && seconds % 3600 == 0) return fmt::format("{}h", seconds / 3600);
  if (seconds != 0 && seconds % 60 == 0) return fmt::format("{}m", seconds / 60);
  return fmt::format("{}s", seconds);
}

namespace {

__extension__ using Wide = unsigned __int128;

struct Suffix {
  std::string_view text;
  std::uint64_t factor;
};
constexpr Suffix kSuffixes[] = {{"Ki", 1ull << 10},      {"Mi", 1ull << 20},
                                {"Gi", 1ull << 30},      {"Ti", 1ull << 40},
                                {"Pi", 1ull << 50},      {"k", 1000},
                                {"M", 1000'000},         {"G", 1000'000'000},
                                {"T", 1000'000'000'000}, {"P", 1000'000'000'000'000}};

// In thousandths; nullopt where it is no quantity, or is above 2^53 whole ones.
std::optional<Wide> thousandths(std::string_view text) {
  Wide factor = 1000;
  if (text.ends_with('m')) {
    factor = 1;
    text.remove_suffix(1);
  } else {
    for (const Suffix& suffix : kSuffixes)
      if (text.ends_with(suffix.text)) {
        factor = static_cast<Wide>(suffix.factor) * 1000;
        text.remove_suffix(suffix.text.size());
        break;
      }
  }
  auto parts = split_once(text, '.');
  const std::string_view fraction = parts ? parts->second : std::string_view();
  auto whole = parse_integer<std::uint64_t>(parts ? parts->first : text);
  if (!whole || fraction.size() > 9 || (parts && fraction.empty())) return std::nullopt;
  Wide out = factor * *whole;
  Wide scale = factor;
  for (char c : fraction) {
    if (!is_digit(c)) return std::nullopt;
    scale /= 10;
    out += scale * static_cast<unsigned>(c - '0');
  }
  if (out > static_cast<Wide>(1ull << 53) * 1000 * 1024) return std::nullopt;
  return out;
}

std::uint64_t rounded_up(Wide amount, std::uint64_t unit) {
  return static_cast<std::uint64_t>((amount + unit - 1) / unit);
}

}  // namespace

std::optional<std::uint64_t> parse_quantity(std::string_view text) {
  auto amount = thousandths(text);
  if (!amount) return std::nullopt;
  return rounded_up(*amount, 1000);
}

std::optional<std::uint64_t> parse_memory_quantity(std::string_view text) {
  auto amount = thousandths(text);
  if (!amount) return std::nullopt;
  return rounded_up(*amount, 1000ull << 20);
}

}  // namespace tutti::config
