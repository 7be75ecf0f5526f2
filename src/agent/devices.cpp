#include "agent/devices.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <set>

#include "agent/cgroup_files.h"
#include "agent/device_nodes.h"
#include "agent/process.h"

namespace tutti::agent {

Result<std::vector<std::uint32_t>> parse_cpu_list(std::string_view text) {
  const auto bad = [text] {
    return invalid(fmt::format("not a list of CPUs ('0-3,8'): '{}'", text));
  };
  constexpr std::uint32_t kMaxCpu = 1U << 16;
  std::set<std::uint32_t> cpus;
  std::string_view rest = text;
  while (!rest.empty() && (rest.back() == '\n' || rest.back() == ' ')) rest.remove_suffix(1);
  while (!rest.empty()) {
    std::uint32_t first = 0;
    const char* const end = rest.data() + rest.size();
    auto parsed = std::from_chars(rest.data(), end, first);
    if (parsed.ec != std::errc()) return bad();
    std::uint32_t last = first;
    if (parsed.ptr != end && *parsed.ptr == '-') {
      parsed = std::from_chars(parsed.ptr + 1, end, last);
      if (parsed.ec != std::errc()) return bad();
    }
    if (last < first || last > kMaxCpu) return bad();
    for (auto cpu = first; cpu <= last; ++cpu) cpus.insert(cpu);
    if (parsed.ptr == end) break;
    if (*parsed.ptr != ',' || parsed.ptr + 1 == end) return bad();
    rest = std::string_view(parsed.ptr + 1, static_cast<std::size_t>(end - parsed.ptr - 1));
  }
  return std::vector<std::uint32_t>(cpus.begin(), cpus.end());
}

namespace {

std::string read_line(const std::string& path) {
  auto text = read_small_file(path).value_or("");
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

void count_cpus(const InventoryOptions& options, Inventory& inventory) {
  const auto folder = options.sys + "/devices/system/cpu";
  inventory.cpu_list = read_line(folder + "/online");
  const auto online = parse_cpu_list(inventory.cpu_list);
  if (!online || online->empty()) {
    inventory.missing.push_back(fmt::format("CPUs: {}/online cannot be read", folder));
    inventory.cpu_list = std::string(1, '0');
    return;
  }
  std::set<std::string> sockets;
  std::set<std::string> cores;
  for (auto cpu : *online) {
    const auto topology = fmt::format("{}/cpu{}/topology", folder, cpu);
    const auto socket = read_line(topology + "/physical_package_id");
    sockets.insert(socket);
    cores.insert(socket + ":" + read_line(topology + "/core_id"));
  }
  inventory.cpus = static_cast<std::uint32_t>(online->size());
  inventory.sockets = static_cast<std::uint32_t>(sockets.size());
  inventory.cores_per_socket = static_cast<std::uint32_t>(cores.size()) / inventory.sockets;
  inventory.threads_per_core = inventory.cpus / static_cast<std::uint32_t>(cores.size());
  if (inventory.sockets * inventory.cores_per_socket * inventory.threads_per_core !=
      inventory.cpus) {
    // Cores of two kinds, or some switched off: no three numbers can say it.
    inventory.missing.push_back(fmt::format(
        "CPU topology: {} CPUs on {} cores of {} sockets are not uniform; each counts as a core",
        inventory.cpus, cores.size(), inventory.sockets));
    inventory.sockets = 1;
    inventory.cores_per_socket = inventory.cpus;
    inventory.threads_per_core = 1;
  }
}

void count_memory(const InventoryOptions& options, Inventory& inventory) {
  const auto text = read_small_file(options.proc + "/meminfo").value_or("");
  inventory.memory_mib = cgroup::number_after(text, "MemTotal:") >> 10;
  if (inventory.memory_mib == 0) {
    inventory.missing.push_back(fmt::format("memory: no MemTotal in {}/meminfo", options.proc));
  }
}

void find_gpus(const InventoryOptions& options, Inventory& inventory) {
  auto nvml = Nvml::load(options.nvml_library);
  if (!nvml) {
    // No library means no NVIDIA GPUs, which is nothing to complain of.
    if (nvml.error().code != ErrorCode::kNotFound) {
      inventory.missing.push_back(nvml.error().message);
    }
    return;
  }
  inventory.missing.insert(inventory.missing.end(), nvml->missing().begin(), nvml->missing().end());
  auto gpus = nvml->gpus();
  if (!gpus) {
    inventory.missing.push_back(gpus.error().message);
    return;
  }
  inventory.gpus = std::move(*gpus);
  for (auto& gpu : inventory.gpus) {
    if (gpu.pci_bus_id.empty()) continue;
    const auto folder = options.sys + "/bus/pci/devices/" + gpu.pci_bus_id;
    gpu.near_cpus = read_line(folder + "/local_cpulist");
    const auto node = read_line(folder + "/numa_node");
    std::int32_t number = -1;  // -1 is also what the kernel writes for "no say"
    std::from_chars(node.data(), node.data() + node.size(), number);
    if (number >= 0) gpu.numa_node = number;
  }
}

}  // namespace

Inventory take_inventory(const InventoryOptions& options) {
  Inventory inventory;
  count_cpus(options, inventory);
  count_memory(options, inventory);
  find_gpus(options, inventory);
  return inventory;
}

std::vector<NodeDevice> node_device_files(const std::vector<DeviceSpec>& devices,
                                          std::uint32_t first_minor) {
  const auto declared_major = pick_gpu_major();
  std::vector<NodeDevice> files;
  for (const auto& device : devices) {
    const auto number = first_minor++;
    if (device.file.empty()) continue;
    struct stat status{};
    const bool real = ::stat(device.file.c_str(), &status) == 0 && S_ISCHR(status.st_mode);
    files.push_back({device.file, declared_major, number, real});
  }
  return files;
}

Result<DeviceRule> device_rule(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) < 0) return fail_errno(errno, path);
  if (!S_ISCHR(status.st_mode) && !S_ISBLK(status.st_mode)) {
    return invalid(fmt::format("{} is not a device file", path));
  }
  return DeviceRule{S_ISCHR(status.st_mode) ? 'c' : 'b', major(status.st_rdev),
                    minor(status.st_rdev), "rwm"};
}

}  // namespace tutti::agent
