// A YAML text as plain nodes with their places; the library stays in yaml.cpp. No meaning yet.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tutti::config {

struct Place {
  std::uint32_t line = 0, column = 0;  // from 1; 0 = unknown
};

struct YamlNode {
  enum class Kind : std::uint8_t { kNull, kScalar, kList, kMap };
  struct Key {
    std::string text;
    Place place;
  };
  Kind kind = Kind::kNull;
  Place place;
  std::string text;             // of a scalar, quotes removed
  std::vector<YamlNode> items;  // of a list, or the values of a map
  std::vector<Key> keys;        // of a map, as `items`

  bool is_scalar() const { return kind == Kind::kScalar; }
  bool is_list() const { return kind == Kind::kList; }
  bool is_map() const { return kind == Kind::kMap; }
  const YamlNode* find(std::string_view key) const;  // of a map; the last of equal keys
};
std::string_view kind_name(YamlNode::Kind kind);  // "a list", "a mapping"

// The documents of a text ("---" between them); empty ones are left out. At most 4 MiB, 200,000
// nodes with aliases written out, 64 levels. Errors: kInvalid with the place.
Result<std::vector<YamlNode>> read_yaml(std::string_view text, const std::string& file);

}  // namespace tutti::config
