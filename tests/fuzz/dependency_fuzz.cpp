// A list of dependencies is what it prints as.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/dependency_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  if (auto list = tutti::parse_dependencies(text)) {
    TUTTI_CHECK(!list->dependencies.empty());
    auto again = tutti::parse_dependencies(tutti::to_string(*list));
    TUTTI_CHECK(again.has_value() && again->dependencies == list->dependencies);
  }
  return 0;
}
