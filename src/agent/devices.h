// What this machine has: CPUs, memory, GPUs; and how a node's configured devices become device
// files and permissions. Reads /sys, /proc and NVML; changes nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/cgroups.h"
#include "agent/nvml.h"
#include "agent/virtual_cluster.h"
#include "base/error.h"
#include "model/cluster.h"

namespace tutti::agent {

struct Inventory {
  std::uint32_t cpus = 1;  // hardware threads that are online
  std::uint32_t sockets = 1;
  std::uint32_t cores_per_socket = 1;
  std::uint32_t threads_per_core = 1;  // sockets * cores * threads == cpus always
  std::string cpu_list;                // the online ones, "0-127"
  std::uint64_t memory_mib = 0;
  std::vector<GpuInfo> gpus;
  std::vector<std::string> missing;  // what could not be found out, for people
};

struct InventoryOptions {
  std::string sys = "/sys";
  std::string proc = "/proc";
  std::string nvml_library = "libnvidia-ml.so.1";
};
// A few milliseconds, with NVML up to a second (it starts the driver).
Inventory take_inventory(const InventoryOptions& options = {});

// The CPU ids of a kernel list ("0-3,8"), ascending; kInvalid when it is not one.
Result<std::vector<std::uint32_t>> parse_cpu_list(std::string_view text);

// Device files for a virtual node's configured devices, with minors from `first_minor` on (unique
// over the cluster). Devices without a file have none. If the machine has a character device at
// that path, the real one is shown.
std::vector<NodeDevice> node_device_files(const std::vector<DeviceSpec>& devices,
                                          std::uint32_t first_minor);

// The permission to open the device at this path, by looking at it where the caller is (so an
// agent in its node sees its node's). kInvalid when it is no device: a plain file stands in, and
// there is nothing to isolate.
Result<DeviceRule> device_rule(const std::string& path);

}  // namespace tutti::agent
