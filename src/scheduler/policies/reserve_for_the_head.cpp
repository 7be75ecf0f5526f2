#include "scheduler/registry.h"

namespace tutti::scheduler {

ReservePolicy reserve_for_the_head() {
  return {"easy", "the first blocked job of each set of nodes is promised its earliest start",
          ReservePolicy::Behind::kMayPass,
          [](bool conflicts, std::uint32_t promised, std::uint32_t depth) {
            return !conflicts && promised < depth;
          }};
}

}  // namespace tutti::scheduler
