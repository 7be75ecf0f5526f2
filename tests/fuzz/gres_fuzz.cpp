// A list of generic resources, and one of GPUs, is what it prints as.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/gres_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  if (auto list = tutti::parse_gres_list(text)) {
    auto again = tutti::parse_gres_list(tutti::to_string(*list));
    TUTTI_CHECK(again.has_value() && *again == *list);
  }
  if (auto list = tutti::parse_gpu_list(text)) {
    auto again = tutti::parse_gres_list(tutti::to_string(*list));
    TUTTI_CHECK(again.has_value() && *again == *list);
  }
  return 0;
}
