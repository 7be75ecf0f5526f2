// An array specification stays inside its bound and is what it prints as.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/index_set.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  constexpr tutti::IndexSet::Index kMaxIndex = 20'000;
  if (auto spec = tutti::parse_array_spec(text, kMaxIndex)) {
    TUTTI_CHECK(!spec->indexes.empty() && *spec->indexes.last() <= kMaxIndex);
    auto again = tutti::parse_index_set(spec->indexes.to_string(), kMaxIndex);
    TUTTI_CHECK(again.has_value() && *again == spec->indexes);
  }
  return 0;
}
