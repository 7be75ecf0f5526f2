// A node constraint is what it prints as.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/node_constraint.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  if (auto constraint = tutti::parse_node_constraint(text)) {
    auto again = tutti::parse_node_constraint(tutti::to_string(*constraint));
    TUTTI_CHECK(again.has_value() && *again == *constraint);
    // With every feature, any node can serve any constraint.
    TUTTI_CHECK(tutti::node_may_serve(*constraint, [](std::string_view) { return true; }));
  }
  return 0;
}
