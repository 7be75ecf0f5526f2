// Which kind of value a type is, for base/archive.h alone.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/id.h"
#include "base/shared_value.h"

namespace tutti {

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
struct IsShared : std::false_type {};
template <class T>
struct IsShared<SharedValue<T>> : std::true_type {};
template <class T>
struct IsVariant : std::false_type {};
template <class... T>
struct IsVariant<std::variant<T...>> : std::true_type {};
template <class T>
struct IsId : std::false_type {};
template <class Tag, class N>
struct IsId<Id<Tag, N>> : std::true_type {};
}  // namespace detail

}  // namespace tutti
