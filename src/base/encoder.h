// Encoder: the writing half of base/archive.h, which says how records are described. It goes over
// a record beside a default-made one and leaves out what is equal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/archive_traits.h"
#include "base/enum_names.h"
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

}  // namespace tutti
