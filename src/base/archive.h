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
#include "base/enum_names.h"
#include "base/error.h"
#include "base/id.h"
#include "base/json.h"
#include "base/time.h"

namespace tutti {

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
    if constexpr (detail::IsShared<T>::value) {
      write(value.get());
    } else if constexpr (std::is_same_v<T, bool>) {
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
            fields(alternative);
            out_.end_object();
          },
          value);
    } else {
      out_.begin_object();
      fields(value);
      out_.end_object();
    }
  }

 private:
  // Describes `record` beside a default-constructed one, so that a field is compared with the
  // default of its own record: a 0 where the default is 1 is written.
  template <class T>
  void fields(const T& record) {
    static const T kDefaults{};
    const char* outer_record = std::exchange(record_, reinterpret_cast<const char*>(&record));
    const char* outer_default = std::exchange(default_, reinterpret_cast<const char*>(&kDefaults));
    std::size_t outer_size = std::exchange(size_, sizeof(T));
    describe(*this, const_cast<T&>(record));
    record_ = outer_record;
    default_ = outer_default;
    size_ = outer_size;
  }

  // The same field of the default record; a value outside the record (a local of describe) has
  // the default of its type.
  template <class T>
  bool is_default(const T& value) const {
    if constexpr (detail::IsShared<T>::value) {
      using Value = typename T::value_type;
      if constexpr (detail::IsVector<Value>::value) return value.empty();
      return value.is_shared_default();
    } else if constexpr (detail::IsOptional<T>::value) {
      return !value.has_value();
    } else if constexpr (detail::IsVector<T>::value || detail::IsMap<T>::value) {
      return value.empty();
    } else if constexpr (detail::Described<T> || detail::IsVariant<T>::value) {
      return false;
    } else {
      const char* at = reinterpret_cast<const char*>(&value);
      if (record_ == nullptr || at < record_ || at >= record_ + size_) return value == T{};
      return value == *reinterpret_cast<const T*>(default_ + (at - record_));
    }
  }
  JsonWriter& out_;
  const char* record_ = nullptr;
  const char* default_ = nullptr;
  std::size_t size_ = 0;
};

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
