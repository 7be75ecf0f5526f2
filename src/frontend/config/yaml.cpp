#include "frontend/config/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

namespace tutti::config {

namespace {

constexpr std::size_t kMaxBytes = std::size_t{4} << 20;
constexpr std::size_t kMaxNodes = 200'000;
constexpr int kMaxDepth = 64;

Place place_of(const YAML::Mark& mark) {
  if (mark.is_null()) return {};
  return {static_cast<std::uint32_t>(mark.line + 1), static_cast<std::uint32_t>(mark.column + 1)};
}

struct Copy {
  std::size_t nodes = 0;
  std::string problem;
  Place where;

  bool take(const YAML::Node& from, YamlNode& to, int depth) {
    to.place = place_of(from.Mark());
    if (++nodes > kMaxNodes)
      return stop(to.place,
                  fmt::format("more than {} values (aliases count each time)", kMaxNodes));
    if (depth > kMaxDepth)
      return stop(to.place, fmt::format("more than {} levels inside each other", kMaxDepth));
    switch (from.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null:
        return true;
      case YAML::NodeType::Scalar:
        to.kind = YamlNode::Kind::kScalar;
        to.text = from.Scalar();
        return true;
      case YAML::NodeType::Sequence:
        to.kind = YamlNode::Kind::kList;
        for (const YAML::Node& item : from)
          if (!take(item, to.items.emplace_back(), depth + 1)) return false;
        return true;
      case YAML::NodeType::Map:
        break;
    }
    to.kind = YamlNode::Kind::kMap;
    for (const auto& entry : from) {
      const Place at = place_of(entry.first.Mark());
      if (!entry.first.IsScalar()) return stop(at, "a key that is no plain word");
      for (const YamlNode::Key& other : to.keys)
        if (other.text == entry.first.Scalar())
          return stop(at, fmt::format("\"{}\" is said twice, first in line {}", other.text,
                                      other.place.line));
      to.keys.push_back({entry.first.Scalar(), at});
      if (!take(entry.second, to.items.emplace_back(), depth + 1)) return false;
    }
    return true;
  }
  bool stop(Place at, std::string text) {
    where = at;
    problem = std::move(text);
    return false;
  }
};

tl::unexpected<Error> problem_at(const std::string& file, Place at, std::string text) {
  return tl::unexpected<Error>(
      Error{ErrorCode::kInvalid, "malformed", std::move(text), {file, at.line, at.column}});
}

}  // namespace

const YamlNode* YamlNode::find(std::string_view key) const {
  for (std::size_t i = keys.size(); i-- > 0;)
    if (keys[i].text == key) return &items[i];
  return nullptr;
}

std::string_view kind_name(YamlNode::Kind kind) {
  switch (kind) {
    case YamlNode::Kind::kNull:
      return "nothing";
    case YamlNode::Kind::kScalar:
      return "a single value";
    case YamlNode::Kind::kList:
      return "a list";
    case YamlNode::Kind::kMap:
      break;
  }
  return "a mapping";
}

Result<std::vector<YamlNode>> read_yaml(std::string_view text, const std::string& file) {
  if (text.size() > kMaxBytes)
    return problem_at(file, {},
                      fmt::format("has {} bytes; at most {} are read", text.size(), kMaxBytes));
  std::vector<YamlNode> documents;
  // The library reports by exceptions; they end here.
  try {
    Copy copy;
    for (const YAML::Node& root : YAML::LoadAll(std::string(text))) {
      YamlNode node;
      if (!copy.take(root, node, 0)) return problem_at(file, copy.where, std::move(copy.problem));
      if (node.kind != YamlNode::Kind::kNull) documents.push_back(std::move(node));
    }
  } catch (const YAML::Exception& error) {
    return problem_at(file, place_of(error.mark), fmt::format("not YAML: {}", error.msg));
  }
  return documents;
}

}  // namespace tutti::config
