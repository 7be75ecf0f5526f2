#include "scheduler/registry.h"

namespace tutti::scheduler {

ReservePolicy reserve_nothing() {
  return {"none", "a blocked job keeps everybody behind it from its nodes, without a promise",
          ReservePolicy::Behind::kWait, [](bool, std::uint32_t, std::uint32_t) { return false; }};
}

}  // namespace tutti::scheduler
