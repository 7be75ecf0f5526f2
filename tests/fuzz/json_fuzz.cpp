// Any JSON is refused or can be walked; what cannot be read as a number is not guessed.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  auto document = tutti::JsonDocument::parse(text);
  if (!document) return 0;
  std::vector<tutti::JsonNode> nodes{document->root()};
  while (!nodes.empty()) {
    tutti::JsonNode node = nodes.back();
    nodes.pop_back();
    if (auto number = node.exact_uint()) TUTTI_CHECK(node.is_number());
    if (auto number = node.exact_int()) TUTTI_CHECK(*number == node.as_int());
    for (std::size_t i = 0; i < node.size(); ++i)
      nodes.push_back(node.is_array() ? node.at(i) : node.member(i).second);
  }
  return 0;
}
