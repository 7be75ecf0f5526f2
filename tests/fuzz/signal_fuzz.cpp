// A signal specification and an exit status are what they print as.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/signal_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  if (auto spec = tutti::parse_signal_spec(text)) {
    auto again = tutti::parse_signal_spec(tutti::to_string(*spec));
    TUTTI_CHECK(again.has_value() && *again == *spec);
  }
  if (auto status = tutti::parse_wait_status(text)) {
    auto again = tutti::parse_wait_status(tutti::to_string(*status));
    TUTTI_CHECK(again.has_value() && *again == *status);
  }
  return 0;
}
