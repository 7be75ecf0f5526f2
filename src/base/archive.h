// One description of a record serves both directions. A struct that has
//
//     template <class A> void describe(A& a, Thing& x) { a("id", x.id); a("name", x.name); }
//
// (found by argument-dependent lookup) can be written as JSON and read back. Fields that equal
// their default are left out when writing and left alone when absent, so records stay small and
// a reader of another version is not upset by a field it does not know. Enums need an
// EnumNames<E>; a variant is an object whose "type" is the alternative's kName.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/id.h"
#include "base/time.h"

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

// Writes JSON text. Keys and values alternate inside objects; the caller keeps begin/end paired.
class JsonWriter {
 public:
  JsonWriter();
  ~JsonWriter();
  JsonWriter(const JsonWriter&) = delete;
  JsonWriter& operator=(const JsonWriter&) = delete;
  void begin_object();
  void end_object();
  void begin_array();
  void end_array();
  void key(std::string_view name);
  void string(std::string_view value);
  void integer(std::int64_t value);
  void unsigned_integer(std::uint64_t value);
  void number(double value);
  void boolean(bool value);
  void null();
  void raw(std::string_view json);  // an already encoded value
  std::string take();               // the text so far; the writer is empty afterwards

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A node of a parsed JSON document; valid while its JsonDocument lives.
class JsonNode {
 public:
  JsonNode() = default;
  explicit JsonNode(const void* value) : value_(value) {}
  explicit operator bool() const { return value_ != nullptr; }
  bool is_object() const;
  bool is_array() const;
  bool is_string() const;
  bool is_number() const;
  bool is_null() const;
  JsonNode find(std::string_view key) const;  // empty when absent or not an object
  std::size_t size() const;                   // elements of an array or object, else 0
  JsonNode at(std::size_t index) const;       // element of an array
  std::pair<std::string_view, JsonNode> member(std::size_t index) const;  // of an object
  std::string_view as_string(std::string_view fallback = {}) const;
  std::int64_t as_int(std::int64_t fallback = 0) const;
  std::uint64_t as_uint(std::uint64_t fallback = 0) const;
  double as_double(double fallback = 0) const;
  bool as_bool(bool fallback = false) const;

 private:
  const void* value_ = nullptr;
};

class JsonDocument {
 public:
  // Errors: kInvalid with the byte offset. Depth is bounded (64), so is nothing else.
  static Result<JsonDocument> parse(std::string_view text);
  JsonDocument(JsonDocument&&) noexcept;
  JsonDocument& operator=(JsonDocument&&) noexcept;
  ~JsonDocument();
  JsonNode root() const;

 private:
  JsonDocument();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

class Encoder;
class Decoder;

namespace detail {
template <class T>
concept Described = requires(Encoder& a, T& x) { describe(a, x); };
template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsMap : std::false_type {};
template <class T>
struct IsMap<std::map<std::string, T>> : std::true_type {};
template <class T>
struct IsVariant : std::false_type {};
template <class... T>
struct IsVariant<std::variant<T...>> : std::true_type {};
template <class T>
struct IsId : std::false_type {};
template <class Tag, class N>
struct IsId<Id<Tag, N>> : std::true_type {};
}  // namespace detail

class Encoder {
 public:
  static constexpr bool kReading = false;
  explicit Encoder(JsonWriter& out) : out_(out) {}

  template <class T>
  void operator()(std::string_view name, const T& value) {
    if (is_default(value)) return;
    out_.key(name);
    write(value);
  }

  template <class T>
  void write(const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      out_.boolean(value);
    } else if constexpr (std::is_enum_v<T>) {
      out_.string(enum_name(value));
    } else if constexpr (std::is_floating_point_v<T>) {
      out_.number(value);
    } else if constexpr (std::is_integral_v<T>) {
      if constexpr (std::is_signed_v<T>)
        out_.integer(value);
      else
        out_.unsigned_integer(value);
    } else if constexpr (detail::IsId<T>::value) {
      out_.unsigned_integer(value.value());
    } else if constexpr (std::is_same_v<T, Instant> || std::is_same_v<T, Duration>) {
      out_.integer(value.ms());
    } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
      out_.string(value);
    } else if constexpr (detail::IsVector<T>::value) {
      out_.begin_array();
      for (const auto& element : value) write(element);
      out_.end_array();
    } else if constexpr (detail::IsOptional<T>::value) {
      if (value)
        write(*value);
      else
        out_.null();
    } else if constexpr (detail::IsMap<T>::value) {
      out_.begin_object();
      for (const auto& [key, element] : value) {
        out_.key(key);
        write(element);
      }
      out_.end_object();
    } else if constexpr (detail::IsVariant<T>::value) {
      std::visit(
          [this](const auto& alternative) {
            using A = std::decay_t<decltype(alternative)>;
            out_.begin_object();
            out_.key("type");
            out_.string(A::kName);
            describe(*this, const_cast<A&>(alternative));
            out_.end_object();
          },
          value);
    } else {
      out_.begin_object();
      describe(*this, const_cast<T&>(value));
      out_.end_object();
    }
  }

 private:
  template <class T>
  static bool is_default(const T& value) {
    if constexpr (detail::IsVector<T>::value || detail::IsMap<T>::value ||
                  std::is_same_v<T, std::string>) {
      return value.empty();
    } else if constexpr (detail::IsOptional<T>::value) {
      return !value.has_value();
    } else if constexpr (detail::Described<T> || detail::IsVariant<T>::value) {
      return false;
    } else {
      return value == T{};
    }
  }
  JsonWriter& out_;
};

class Decoder {
 public:
  static constexpr bool kReading = true;
  explicit Decoder(JsonNode object, std::string path = {}) : node_(object), path_(std::move(path)) {}

  template <class T>
  void operator()(std::string_view name, T& value) {
    if (error_) return;
    JsonNode found = node_.find(name);
    if (!found || found.is_null()) return;
    read(found, value, name);
  }

  template <class T>
  void read(JsonNode node, T& value, std::string_view name) {
    if constexpr (std::is_same_v<T, bool>) {
      value = node.as_bool();
    } else if constexpr (std::is_enum_v<T>) {
      if (auto e = enum_from_name<T>(node.as_string()))
        value = *e;
      else
        set_error(name, "has an unknown value");
    } else if constexpr (std::is_floating_point_v<T>) {
      value = node.as_double();
    } else if constexpr (std::is_integral_v<T>) {
      if (!node.is_number()) return set_error(name, "must be a number");
      if constexpr (std::is_signed_v<T>) {
        std::int64_t n = node.as_int();
        if (n != static_cast<std::int64_t>(static_cast<T>(n))) return set_error(name, "is out of range");
        value = static_cast<T>(n);
      } else {
        std::uint64_t n = node.as_uint();
        if (n != static_cast<std::uint64_t>(static_cast<T>(n))) return set_error(name, "is out of range");
        value = static_cast<T>(n);
      }
    } else if constexpr (detail::IsId<T>::value) {
      value = T(static_cast<typename T::number_type>(node.as_uint()));
    } else if constexpr (std::is_same_v<T, Instant>) {
      value = Instant::from_ms(node.as_int());
    } else if constexpr (std::is_same_v<T, Duration>) {
      value = Duration::milliseconds(node.as_int());
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!node.is_string()) return set_error(name, "must be a string");
      value = std::string(node.as_string());
    } else if constexpr (detail::IsVector<T>::value) {
      if (!node.is_array()) return set_error(name, "must be an array");
      value.clear();
      value.reserve(node.size());
      for (std::size_t i = 0; i < node.size() && !error_; ++i) {
        typename T::value_type element{};
        read(node.at(i), element, name);
        value.push_back(std::move(element));
      }
    } else if constexpr (detail::IsOptional<T>::value) {
      typename T::value_type element{};
      read(node, element, name);
      value = std::move(element);
    } else if constexpr (detail::IsMap<T>::value) {
      if (!node.is_object()) return set_error(name, "must be an object");
      value.clear();
      for (std::size_t i = 0; i < node.size() && !error_; ++i) {
        auto [key, member] = node.member(i);
        typename T::mapped_type element{};
        read(member, element, key);
        value.emplace(std::string(key), std::move(element));
      }
    } else if constexpr (detail::IsVariant<T>::value) {
      if (!read_variant(node, value)) set_error(name, "has an unknown type");
    } else {
      if (!node.is_object()) return set_error(name, "must be an object");
      Decoder inner(node, path_.empty() ? std::string(name) : path_ + "." + std::string(name));
      describe(inner, value);
      if (inner.error_) error_ = std::move(inner.error_);
    }
  }

  const std::optional<Error>& error() const { return error_; }

 private:
  void set_error(std::string_view name, std::string_view what);
  template <class... A>
  bool read_variant(JsonNode node, std::variant<A...>& value) {
    std::string_view type = node.find("type").as_string();
    return ((type == A::kName && (read(node, value.template emplace<A>(), type), true)) || ...);
  }
  JsonNode node_;
  std::string path_;
  std::optional<Error> error_;
};

template <class T>
std::string to_json(const T& value) {
  JsonWriter out;
  Encoder encoder(out);
  encoder.write(value);
  return out.take();
}

template <class T>
Result<T> from_json(JsonNode node) {
  T value{};
  Decoder decoder(JsonNode{});
  decoder.read(node, value, "");
  if (decoder.error()) return tl::unexpected<Error>(*decoder.error());
  return value;
}

template <class T>
Result<T> from_json(std::string_view text) {
  auto document = JsonDocument::parse(text);
  if (!document) return tl::unexpected<Error>(document.error());
  return from_json<T>(document->root());
}

}  // namespace tutti
