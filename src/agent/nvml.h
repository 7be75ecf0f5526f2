// NVIDIA's management library, found at run time: a node without it is a node without NVIDIA GPUs,
// not an error. Declarations are our own, after the public NVML API reference
// (docs.nvidia.com/deploy/nvml-api). A function that a driver lacks is named and done without.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace tutti::agent {

struct GpuInfo {
  std::string name;              // "NVIDIA H200", as the driver says it
  std::string type;              // gpu_type(name)
  std::string uuid;              // "GPU-..."; empty if unknown
  std::string file;              // "/dev/nvidia0"; empty if the minor number is unknown
  std::string pci_bus_id;        // "0000:c1:00.0", as /sys names it; empty if unknown
  std::uint64_t memory_mib = 0;  // 0 if unknown
  std::optional<std::int32_t> numa_node;
  std::string near_cpus;  // CPU list "0-31", empty if the machine has no say
};

// The type name that Slurm's AutoDetect=nvml makes of a device name (gres.conf(5)): lower case,
// blanks become underscores; other characters stay. "NVIDIA H200" -> "nvidia_h200".
std::string gpu_type(std::string_view name);
// Whether a configured type means a found one: it is a part of it, as in gres.conf(5) ("h200").
bool gpu_type_matches(std::string_view configured, std::string_view found);

class Nvml {
 public:
  // kNotFound: no such library. kUnavailable: it is there, and does not start (no driver).
  static Result<Nvml> load(const std::string& library = "libnvidia-ml.so.1");
  Nvml(Nvml&&) noexcept;
  Nvml& operator=(Nvml&&) noexcept;
  ~Nvml();
  // All GPUs in the order of NVML's index (by PCI bus). One that does not answer is an error: a
  // node that has lost a GPU must not come up with the others renumbered.
  Result<std::vector<GpuInfo>> gpus();
  // "nvmlDeviceGetMinorNumber: not in this driver's library"
  const std::vector<std::string>& missing() const;

 private:
  struct Library;
  explicit Nvml(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library_;
};

}  // namespace tutti::agent
