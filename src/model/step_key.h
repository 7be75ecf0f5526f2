// StepKey names a step of one life of a gang; orders and answers carry it.
#pragma once

#include <cstdint>

#include "base/archive.h"
#include "model/ids.h"

namespace tutti {

constexpr std::uint32_t kAgentProtocol = 1;

struct StepKey {
  GangId gang;
  Epoch epoch;
  StepId step = 0;
  friend auto operator<=>(const StepKey&, const StepKey&) = default;
};
void describe(auto& a, StepKey& x) {
  a("gang", x.gang);
  a("epoch", x.epoch);
  a("step", x.step);
}

}  // namespace tutti
