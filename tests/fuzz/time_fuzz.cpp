// A point in time that is understood prints as one that is understood as the same.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/local_time.h"
#include "base/time_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  const tutti::UtcZone utc;
  const tutti::Instant now = utc.to_instant({2026, 11, 30, 20, 0, 42});
  for (auto direction : {tutti::TimeDirection::kFuture, tutti::TimeDirection::kPast}) {
    if (auto time = tutti::parse_time(text, now, utc, direction)) {
      std::string printed = tutti::format_time(*time, utc);
      auto again = tutti::parse_time(printed, now, utc, direction);
      TUTTI_CHECK(again.has_value() && *again == *time);
    }
  }
  return 0;
}
