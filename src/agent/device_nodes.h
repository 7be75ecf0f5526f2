// Device files: which character major declared (absent) GPUs get, and which device files of the
// machine everybody shares.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tutti::agent {

// A character major that no driver has registered here, so that opening a node of it gives ENXIO:
// 195 (NVIDIA's) if free, else the first free of 240..254 (kernel: "local/experimental use").
std::uint32_t pick_gpu_major(const std::string& proc_devices = "/proc/devices");

// Device files of this machine that are no resource of their own: fuse, tun, the GPU drivers'
// control nodes, InfiniBand. Only those that exist.
std::vector<std::string> shared_device_paths();

}  // namespace tutti::agent
