// Time limits, memory sizes and node counts: what is printed is read as the same.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/duration_text.h"
#include "base/size_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  if (auto duration = tutti::parse_duration(text)) {
    TUTTI_CHECK(duration->ms() >= 0);
    auto again = tutti::parse_duration(tutti::format_duration(*duration));
    TUTTI_CHECK(again.has_value() && *again == *duration);
    auto limit = tutti::parse_time_limit(text);
    TUTTI_CHECK(limit.has_value() && *limit >= *duration);
  }
  if (auto mib = tutti::parse_memory_mib(text)) {
    auto again = tutti::parse_memory_mib(tutti::format_memory_mib(*mib));
    TUTTI_CHECK(again.has_value() && *again == *mib);
  }
  if (auto nodes = tutti::parse_node_count(text))
    TUTTI_CHECK(nodes->min >= 1 && nodes->min <= nodes->max);
  return 0;
}
