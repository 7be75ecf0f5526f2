// One description of a record serves both directions. A struct that has
//
//     template <class A> void describe(A& a, Thing& x) { a("id", x.id); a("name", x.name); }
//
// (found by argument-dependent lookup) can be written as JSON and read back. Fields that equal
// their default are left out when writing and left alone when absent, so records stay small and
// a reader of another version is not upset by a field it does not know. Enums need an
// EnumNames<E>; a variant is an object whose "type" is the alternative's kName.
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/archive_traits.h"
#include "base/encoder.h"
#include "base/enum_names.h"
#include "base/error.h"
#include "base/id.h"
#include "base/json.h"
#include "base/time.h"

namespace tutti {

class Decoder {
 public:
  static constexpr bool kReading = true;
  explicit Decoder(JsonNode object, std::string path = {})
      : node_(object), path_(std::move(path)) {}

  template <class T>
  void operator()(std::string_view name, T& value) {
    if (error_) return;
    JsonNode found = node_.find(name, next_);
    if (!found || found.is_null()) return;
    read(found, value, name);
  }

  template <class T>
  void read(JsonNode node, T& value, std::string_view name) {
    if constexpr (detail::IsShared<T>::value) {
      typename T::value_type own{};
      read(node, own, name);
      value = T(std::move(own));
    } else if constexpr (std::is_same_v<T, bool>) {
      if (!node.is_bool()) return set_error(name, "must be true or false");
      value = node.as_bool();
    } else if constexpr (std::is_enum_v<T>) {
      if (auto e = enum_from_name<T>(node.as_string()))
        value = *e;
      else
        set_error(name, "has an unknown value");
    } else if constexpr (std::is_floating_point_v<T>) {
      if (!node.is_number()) return set_error(name, "must be a number");
      value = static_cast<T>(node.as_double());
    } else if constexpr (std::is_integral_v<T>) {
      if (auto number = read_integer<T>(node, name)) value = *number;
    } else if constexpr (detail::IsId<T>::value) {
      if (auto number = read_integer<typename T::number_type>(node, name)) value = T(*number);
    } else if constexpr (std::is_same_v<T, Instant>) {
      if (auto ms = read_integer<std::int64_t>(node, name)) value = Instant::from_ms(*ms);
    } else if constexpr (std::is_same_v<T, Duration>) {
      if (auto ms = read_integer<std::int64_t>(node, name)) value = Duration::milliseconds(*ms);
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
  // Nothing, with the error set, unless the node is a whole number that T can hold.
  template <class T>
  std::optional<T> read_integer(JsonNode node, std::string_view name) {
    using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
    std::optional<Wide> number;
    if constexpr (std::is_signed_v<T>)
      number = node.exact_int();
    else
      number = node.exact_uint();
    if (number && *number == static_cast<Wide>(static_cast<T>(*number)))
      return static_cast<T>(*number);
    set_error(name, node.is_number() ? "is out of range" : "must be a number");
    return std::nullopt;
  }
  template <class... A>
  bool read_variant(JsonNode node, std::variant<A...>& value) {
    std::string_view type = node.find("type").as_string();
    return ((type == A::kName && (read(node, value.template emplace<A>(), type), true)) || ...);
  }
  JsonNode node_;
  std::size_t next_ = 0;  // where the next field is looked for first: writers keep the order
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

// As from_json() below, without a copy of the text.
template <class T>
Result<T> from_own_json(std::string text) {
  auto document = JsonDocument::parse_own(std::move(text));
  if (!document) return tl::unexpected<Error>(document.error());
  return from_json<T>(document->root());
}

template <class T>
Result<T> from_json(std::string_view text) {
  auto document = JsonDocument::parse(text);
  if (!document) return tl::unexpected<Error>(document.error());
  return from_json<T>(document->root());
}

}  // namespace tutti
