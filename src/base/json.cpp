#include "base/json.h"

#define RAPIDJSON_HAS_STDSTRING 1
#ifdef __SSE2__
#define RAPIDJSON_SSE2
#endif
#include <fmt/format.h>
#include <rapidjson/document.h>
#include <rapidjson/error/en.h>
#include <rapidjson/internal/dtoa.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

namespace tutti {

namespace {
const rapidjson::Value& value_of(const void* p) { return *static_cast<const rapidjson::Value*>(p); }
constexpr unsigned kMaxDepth = 64;

// Refuses nesting that would recurse deeply while destroying or reading the document.
bool too_deep(std::string_view text) {
  unsigned depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (quoted) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxDepth) return true;
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
  return false;
}
}  // namespace

// Written by hand: RapidJSON's writer looks at every character of every key and copies the text at
// the end, which was half of the cost of a listing.
struct JsonWriter::Impl {
  std::string text;
  bool comma = false;  // a value stands before the next one

  void separate() {
    if (comma) text.push_back(',');
    comma = true;
  }
  void open(char bracket) {
    separate();
    text.push_back(bracket);
    comma = false;
  }
  void close(char bracket) {
    text.push_back(bracket);
    comma = true;
  }
  template <class Number>
  void append_number(Number value) {
    separate();
    std::array<char, 24> digits;
    auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
    text.append(digits.data(), end);
  }
  void append_quoted(std::string_view value) {
    text.push_back('"');
    std::size_t plain = 0;
    for (std::size_t i = 0; i < value.size(); ++i) {
      const auto c = static_cast<unsigned char>(value[i]);
      if (c >= 0x20 && c != '"' && c != '\\') continue;
      text.append(value, plain, i - plain);
      append_escape(c);
      plain = i + 1;
    }
    text.append(value, plain);
    text.push_back('"');
  }
  void append_escape(unsigned char c) {
    constexpr std::string_view kHex = "0123456789ABCDEF";
    constexpr std::string_view kNamed = "\b\t\n\f\r\"\\";
    constexpr std::string_view kLetters = "btnfr\"\\";
    text.push_back('\\');
    if (const auto at = kNamed.find(static_cast<char>(c)); at != std::string_view::npos) {
      text.push_back(kLetters[at]);
      return;
    }
    text.append("u00");
    text.push_back(kHex[c >> 4]);
    text.push_back(kHex[c & 15]);
  }
};

JsonWriter::JsonWriter() : impl_(std::make_unique<Impl>()) {}
JsonWriter::~JsonWriter() = default;
void JsonWriter::begin_object() { impl_->open('{'); }
void JsonWriter::end_object() { impl_->close('}'); }
void JsonWriter::begin_array() { impl_->open('['); }
void JsonWriter::end_array() { impl_->close(']'); }
void JsonWriter::key(std::string_view name) {
  impl_->separate();
  impl_->append_quoted(name);
  impl_->text.push_back(':');
  impl_->comma = false;
}
void JsonWriter::string(std::string_view value) {
  impl_->separate();
  impl_->append_quoted(value);
}
void JsonWriter::integer(std::int64_t value) { impl_->append_number(value); }
void JsonWriter::unsigned_integer(std::uint64_t value) { impl_->append_number(value); }
void JsonWriter::number(double value) {
  if (!std::isfinite(value)) return null();
  impl_->separate();
  std::array<char, 32> digits;
  impl_->text.append(digits.data(), rapidjson::internal::dtoa(value, digits.data()));
}
void JsonWriter::boolean(bool value) {
  impl_->separate();
  impl_->text += value ? "true" : "false";
}
void JsonWriter::null() {
  impl_->separate();
  impl_->text += "null";
}
void JsonWriter::raw(std::string_view json) {
  impl_->separate();
  impl_->text += json;
}
std::string JsonWriter::take() {
  impl_->comma = false;
  return std::exchange(impl_->text, {});
}

bool JsonNode::is_object() const { return value_ && value_of(value_).IsObject(); }
bool JsonNode::is_array() const { return value_ && value_of(value_).IsArray(); }
bool JsonNode::is_string() const { return value_ && value_of(value_).IsString(); }
bool JsonNode::is_number() const { return value_ && value_of(value_).IsNumber(); }
bool JsonNode::is_bool() const { return value_ && value_of(value_).IsBool(); }
bool JsonNode::is_null() const { return value_ && value_of(value_).IsNull(); }

JsonNode JsonNode::find(std::string_view key) const {
  if (!is_object()) return {};
  const auto& object = value_of(value_);
  auto it = object.FindMember(rapidjson::Value(
      rapidjson::StringRef(key.data(), static_cast<rapidjson::SizeType>(key.size()))));
  return it == object.MemberEnd() ? JsonNode{} : JsonNode(&it->value);
}
JsonNode JsonNode::find(std::string_view key, std::size_t& next) const {
  if (!is_object()) return {};
  const auto& object = value_of(value_);
  const std::size_t count = object.MemberCount();
  if (next >= count) next = 0;
  const auto first = object.MemberBegin();
  // Once round, from `next`.
  for (std::size_t seen = 0, at = next; seen < count; ++seen, at = at + 1 < count ? at + 1 : 0) {
    const auto& member = *(first + static_cast<std::ptrdiff_t>(at));
    if (member.name.GetStringLength() != key.size() ||
        std::memcmp(member.name.GetString(), key.data(), key.size()) != 0)
      continue;
    next = at + 1;
    return JsonNode(&member.value);
  }
  return {};
}
std::size_t JsonNode::size() const {
  if (is_array()) return value_of(value_).Size();
  if (is_object()) return value_of(value_).MemberCount();
  return 0;
}
JsonNode JsonNode::at(std::size_t index) const {
  return JsonNode(&value_of(value_)[static_cast<rapidjson::SizeType>(index)]);
}
std::pair<std::string_view, JsonNode> JsonNode::member(std::size_t index) const {
  const auto& member = *(value_of(value_).MemberBegin() + static_cast<std::ptrdiff_t>(index));
  return {{member.name.GetString(), member.name.GetStringLength()}, JsonNode(&member.value)};
}
std::string_view JsonNode::as_string(std::string_view fallback) const {
  if (!is_string()) return fallback;
  return {value_of(value_).GetString(), value_of(value_).GetStringLength()};
}
std::int64_t JsonNode::as_int(std::int64_t fallback) const {
  if (!value_) return fallback;
  const auto& v = value_of(value_);
  if (v.IsInt64()) return v.GetInt64();
  return v.IsDouble() ? static_cast<std::int64_t>(v.GetDouble()) : fallback;
}
std::uint64_t JsonNode::as_uint(std::uint64_t fallback) const {
  return value_ && value_of(value_).IsUint64() ? value_of(value_).GetUint64() : fallback;
}
namespace {
// Encoders of other languages write 3 as 3.0; beyond 2^53 a double no longer names one integer.
bool is_whole(double number) {
  return number >= -9007199254740992.0 && number <= 9007199254740992.0 &&
         number == std::trunc(number);
}
}  // namespace
std::optional<std::int64_t> JsonNode::exact_int() const {
  if (!is_number()) return std::nullopt;
  const auto& v = value_of(value_);
  if (v.IsInt64()) return v.GetInt64();
  if (v.IsDouble() && is_whole(v.GetDouble())) return static_cast<std::int64_t>(v.GetDouble());
  return std::nullopt;
}
std::optional<std::uint64_t> JsonNode::exact_uint() const {
  if (!is_number()) return std::nullopt;
  const auto& v = value_of(value_);
  if (v.IsUint64()) return v.GetUint64();
  if (v.IsDouble() && v.GetDouble() >= 0 && is_whole(v.GetDouble()))
    return static_cast<std::uint64_t>(v.GetDouble());
  return std::nullopt;
}
double JsonNode::as_double(double fallback) const {
  return is_number() ? value_of(value_).GetDouble() : fallback;
}
bool JsonNode::as_bool(bool fallback) const {
  return value_ && value_of(value_).IsBool() ? value_of(value_).GetBool() : fallback;
}

// Parsed in place: the strings of the document point into the text.
struct JsonDocument::Impl {
  std::string text;
  rapidjson::Document document;
};
JsonDocument::JsonDocument() : impl_(std::make_unique<Impl>()) {}
JsonDocument::JsonDocument(JsonDocument&&) noexcept = default;
JsonDocument& JsonDocument::operator=(JsonDocument&&) noexcept = default;
JsonDocument::~JsonDocument() = default;
JsonNode JsonDocument::root() const { return JsonNode(&impl_->document); }

Result<JsonDocument> JsonDocument::parse(std::string_view text) {
  std::string own;
  own.reserve(text.size() + 16);
  own.assign(text);
  return parse_own(std::move(own));
}

Result<JsonDocument> JsonDocument::parse_own(std::string text) {
  if (too_deep(text)) return invalid(fmt::format("JSON nested deeper than {} levels", kMaxDepth));
  // Parsing in place would take a NUL for the end.
  if (const auto nul = text.find('\0'); nul != std::string::npos)
    return invalid(fmt::format("not JSON: a NUL at byte {}", nul));
  JsonDocument result;
  std::string& own = result.impl_->text;
  own = std::move(text);
  own.reserve(own.size() + 16);  // the parser looks at 16 bytes at a time
  result.impl_->document.ParseInsitu(own.data());
  if (result.impl_->document.HasParseError()) {
    return invalid(fmt::format("not JSON: {} at byte {}",
                               rapidjson::GetParseError_En(result.impl_->document.GetParseError()),
                               result.impl_->document.GetErrorOffset()));
  }
  return result;
}

}  // namespace tutti
