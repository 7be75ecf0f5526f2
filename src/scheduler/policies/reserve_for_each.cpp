#include "scheduler/registry.h"

namespace tutti::scheduler {

ReservePolicy reserve_for_each() {
  return {"conservative", "every blocked job within depth is promised its earliest start",
          ReservePolicy::Behind::kMayPass,
          [](bool, std::uint32_t promised, std::uint32_t depth) { return promised < depth; }};
}

}  // namespace tutti::scheduler
