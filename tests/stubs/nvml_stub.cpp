// A machine with two GPUs, as libnvidia-ml.so.1 would show it.
#include <cstdint>
#include <cstdio>
#include <cstring>

#define STUB extern "C" __attribute__((visibility("default")))

namespace {
int started = 0;
constexpr int kUninitialized = 1;
constexpr int kInvalidArgument = 2;
constexpr int kLost = 15;
}  // namespace

#ifdef TUTTI_STUB_OLD
STUB int nvmlInit() {
  ++started;
  return 0;
}
STUB int nvmlDeviceGetCount(unsigned* count) {
  *count = 1;
  return started ? 0 : kUninitialized;
}
STUB int nvmlDeviceGetHandleByIndex(unsigned, void**) { return kLost; }
STUB int nvmlDeviceGetName(void*, char*, unsigned) { return kInvalidArgument; }
#else
namespace {
struct Memory {
  unsigned long long total, free, used;
};
struct PciInfo {
  char legacy_bus_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
// A handle is the index plus 1.
unsigned index_of(void* device) {
  return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(device)) - 1;
}
}  // namespace

STUB int nvmlInit_v2() {
  ++started;
  return 0;
}
STUB int nvmlShutdown() {
  --started;
  return 0;
}
STUB const char* nvmlErrorString(int code) { return code == kLost ? "GPU is lost" : "other"; }
STUB int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return started ? 0 : kUninitialized;
}
STUB int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = reinterpret_cast<void*>(static_cast<std::uintptr_t>(index) + 1);
  return index < 2 ? 0 : kInvalidArgument;
}
STUB int nvmlDeviceGetName(void* device, char* text, unsigned size) {
  const char* names[] = {"NVIDIA H200", "NVIDIA RTX PRO 6000 Blackwell Server Edition"};
  std::snprintf(text, size, "%s", names[index_of(device)]);
  return 0;
}
STUB int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  std::snprintf(text, size, "GPU-0000000%u-aaaa", index_of(device));
  return 0;
}
// Not the index: minors follow the driver's order of probing.
STUB int nvmlDeviceGetMinorNumber(void* device, unsigned* minor) {
  *minor = 1 - index_of(device);
  return 0;
}
STUB int nvmlDeviceGetMemoryInfo(void*, Memory* memory) {
  *memory = {150754820096ULL, 1, 2};
  return 0;
}
STUB int nvmlDeviceGetPciInfo_v3(void* device, PciInfo* pci) {
  std::memset(pci, 0, sizeof *pci);
  pci->bus = 0xC1 + index_of(device);
  std::snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0", pci->bus);
  return 0;
}
#endif
