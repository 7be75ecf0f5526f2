// Whatever a host list expands to, folding and expanding it again gives the same names.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/hostlist.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  if (auto names = tutti::expand_hostlist(text)) {
    TUTTI_CHECK(names->size() <= tutti::kMaxHostlistNames);
    auto again = tutti::expand_hostlist(tutti::fold_hostlist(*names));
    TUTTI_CHECK(again.has_value() && *again == *names);
    auto sorted = tutti::expand_hostlist(tutti::fold_hostlist(*names, tutti::FoldOrder::kSorted));
    TUTTI_CHECK(sorted.has_value() && sorted->size() == names->size());
  }
  if (auto counts = tutti::expand_counts(text)) {
    auto again = tutti::expand_counts(tutti::fold_counts(*counts));
    TUTTI_CHECK(again.has_value() && *again == *counts);
  }
  return 0;
}
