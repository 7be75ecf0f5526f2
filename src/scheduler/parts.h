// Parts of devices for one role: how many a node still holds, and which to take. Complete for parts
// of one kind: legal start slots of a profile do not overlap each other, so every free one counts.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "model/gang.h"
#include "scheduler/need.h"

namespace tutti::scheduler {

// Devices of each type that are whole and free: not held, no part in use.
std::array<std::int16_t, kGpuTypesPerNode> whole_gpus(const Capacity& free);

// How many parts as asked fit at once; of shares at most one on a device.
std::int32_t free_parts(const RoleNeed& need, const NodeClass& node, const Capacity& free);

// The parts that are taken: on the fullest device that holds one, on a whole one last; of MIG the
// start that leaves the most legal starts to others. Requires free_parts() >= count.
DeviceParts take_parts(const RoleNeed& need, const NodeClass& node, const Capacity& free,
                       std::int32_t count);

// The same as they are journalled, by device and start.
std::vector<DevicePart> device_parts(const RoleNeed& need, const NodeClass& node,
                                     const DeviceParts& taken);

}  // namespace tutti::scheduler
