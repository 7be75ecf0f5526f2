#include "agent/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace tutti::agent {

namespace {

using Code = int;  // nvmlReturn_t; 0 = success
using Device = void*;
struct Memory {
  unsigned long long total, free, used;
};
struct PciInfo {  // nvmlPciInfo_t since version 3
  std::array<char, 16> legacy_bus_id;
  unsigned domain, bus, device, device_id, subsystem_id;
  std::array<char, 32> bus_id;
};
constexpr unsigned kTextBytes = 96;  // the largest of the library's buffer sizes

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

std::string gpu_type(std::string_view name) {
  std::string type(name);
  for (char& c : type) c = c == ' ' ? '_' : lower(c);
  return type;
}

bool gpu_type_matches(std::string_view configured, std::string_view found) {
  return gpu_type(found).find(gpu_type(configured)) != std::string::npos;
}

struct Nvml::Library {
  void* handle = nullptr;
  bool started = false;
  std::vector<std::string> missing;

  Code (*start)() = nullptr;
  Code (*stop)() = nullptr;
  Code (*count)(unsigned*) = nullptr;
  Code (*by_index)(unsigned, Device*) = nullptr;
  Code (*name)(Device, char*, unsigned) = nullptr;
  Code (*uuid)(Device, char*, unsigned) = nullptr;
  Code (*minor)(Device, unsigned*) = nullptr;
  Code (*memory)(Device, Memory*) = nullptr;
  Code (*pci)(Device, PciInfo*) = nullptr;
  const char* (*error_text)(Code) = nullptr;

  ~Library() {
    if (started && stop != nullptr) stop();
    if (handle != nullptr) ::dlclose(handle);
  }
  // The first of the names that the library has.
  template <class Function>
  bool find(Function& function, std::initializer_list<const char*> names) {
    for (const char* word : names) {
      function = reinterpret_cast<Function>(::dlsym(handle, word));
      if (function != nullptr) return true;
    }
    missing.push_back(fmt::format("{}: not in this driver's library", *names.begin()));
    return false;
  }
  std::string explain(Code code) const {
    return error_text != nullptr ? error_text(code) : fmt::format("error {}", code);
  }
  tl::unexpected<Error> failed(std::string_view what, Code code) const {
    return fail(ErrorCode::kUnavailable, fmt::format("NVML: {}: {}", what, explain(code)));
  }
};

Nvml::Nvml(std::unique_ptr<Library> library) : library_(std::move(library)) {}
Nvml::Nvml(Nvml&&) noexcept = default;
Nvml& Nvml::operator=(Nvml&&) noexcept = default;
Nvml::~Nvml() = default;
const std::vector<std::string>& Nvml::missing() const { return library_->missing; }

Result<Nvml> Nvml::load(const std::string& path) {
  auto library = std::make_unique<Library>();
  library->handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library->handle == nullptr) {
    const std::string text = ::dlerror();
    // The loader has no codes; any other text is a library that is there and broken.
    const bool absent = text.find("No such file") != std::string::npos;
    return fail(absent ? ErrorCode::kNotFound : ErrorCode::kUnavailable, "NVML: " + text);
  }
  auto& lib = *library;
  const bool usable =
      lib.find(lib.start, {"nvmlInit_v2", "nvmlInit"}) &&
      lib.find(lib.count, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"}) &&
      lib.find(lib.by_index, {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"}) &&
      lib.find(lib.name, {"nvmlDeviceGetName"});
  if (!usable) {
    return fail(ErrorCode::kUnavailable, fmt::format("NVML: {}: {}", path, lib.missing.back()));
  }
  lib.find(lib.stop, {"nvmlShutdown"});
  lib.find(lib.uuid, {"nvmlDeviceGetUUID"});
  lib.find(lib.minor, {"nvmlDeviceGetMinorNumber"});
  lib.find(lib.memory, {"nvmlDeviceGetMemoryInfo"});
  lib.find(lib.pci, {"nvmlDeviceGetPciInfo_v3"});
  lib.find(lib.error_text, {"nvmlErrorString"});
  if (const Code code = lib.start()) return lib.failed("start", code);
  lib.started = true;
  return Nvml(std::move(library));
}

Result<std::vector<GpuInfo>> Nvml::gpus() {
  const auto& lib = *library_;
  unsigned count = 0;
  if (const Code code = lib.count(&count)) return lib.failed("number of GPUs", code);
  std::vector<GpuInfo> gpus(count);
  for (unsigned index = 0; index < count; ++index) {
    auto& gpu = gpus[index];
    Device device = nullptr;
    if (const Code code = lib.by_index(index, &device)) {
      return lib.failed(fmt::format("GPU {}", index), code);
    }
    std::array<char, kTextBytes> text{};
    if (const Code code = lib.name(device, text.data(), kTextBytes)) {
      return lib.failed(fmt::format("name of GPU {}", index), code);
    }
    gpu.name = text.data();
    gpu.type = gpu_type(gpu.name);
    if (lib.uuid != nullptr && lib.uuid(device, text.data(), kTextBytes) == 0) {
      gpu.uuid = text.data();
    }
    unsigned minor = 0;
    if (lib.minor != nullptr && lib.minor(device, &minor) == 0) {
      gpu.file = fmt::format("/dev/nvidia{}", minor);
    }
    Memory memory{};
    if (lib.memory != nullptr && lib.memory(device, &memory) == 0) {
      gpu.memory_mib = memory.total >> 20;
    }
    PciInfo pci{};
    if (lib.pci != nullptr && lib.pci(device, &pci) == 0) {
      // NVML writes "00000000:C1:00.0"; /sys has four digits of domain and small letters.
      gpu.pci_bus_id = fmt::format("{:04x}:{:02x}:{:02x}.0", pci.domain, pci.bus, pci.device);
    }
  }
  return gpus;
}

}  // namespace tutti::agent
