#include "agent/devices.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace tutti::agent {
namespace {

// A made-up machine: /sys and /proc in a folder.
class Machine {
 public:
  Machine() {
    folder_ = std::filesystem::temp_directory_path() / fmt::format("machine-{}", ::getpid());
    write("proc/meminfo", "MemTotal:       16384000 kB\nMemFree: 5 kB\n");
  }
  ~Machine() { std::filesystem::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
  }
  void add_cpu(unsigned cpu, unsigned socket, unsigned core) {
    const auto topology = fmt::format("sys/devices/system/cpu/cpu{}/topology/", cpu);
    write(topology + "physical_package_id", fmt::format("{}\n", socket));
    write(topology + "core_id", fmt::format("{}\n", core));
  }
  InventoryOptions options(std::string library = "libno-such-library.so.1") const {
    return {folder_ / "sys", folder_ / "proc", std::move(library)};
  }

 private:
  std::filesystem::path folder_;
};

TEST(Inventory, CountsSocketsCoresAndThreads) {
  Machine machine;
  machine.write("sys/devices/system/cpu/online", "0-7\n");
  for (unsigned cpu = 0; cpu < 8; ++cpu) machine.add_cpu(cpu, cpu % 4 / 2, cpu % 2);
  const auto found = take_inventory(machine.options());
  EXPECT_EQ(found.cpus, 8U);
  EXPECT_EQ(found.sockets, 2U);
  EXPECT_EQ(found.cores_per_socket, 2U);
  EXPECT_EQ(found.threads_per_core, 2U);
  EXPECT_EQ(found.cpu_list, "0-7");
  EXPECT_EQ(found.memory_mib, 16000U);
  EXPECT_TRUE(found.gpus.empty());
  EXPECT_TRUE(found.missing.empty()) << found.missing[0];
}

TEST(Inventory, CoresOfTwoKindsCountOneByOne) {
  Machine machine;
  machine.write("sys/devices/system/cpu/online", "0-2\n");
  machine.add_cpu(0, 0, 0);
  machine.add_cpu(1, 0, 0);
  machine.add_cpu(2, 0, 1);
  const auto found = take_inventory(machine.options());
  EXPECT_EQ(found.cpus, 3U);
  EXPECT_EQ(found.sockets * found.cores_per_socket * found.threads_per_core, 3U);
  ASSERT_EQ(found.missing.size(), 1U);
  EXPECT_EQ(found.missing[0],
            "CPU topology: 3 CPUs on 2 cores of 1 sockets are not uniform; each counts as a core");
}

TEST(Inventory, SaysWhatItCannotRead) {
  const auto found = take_inventory({"/nowhere/sys", "/nowhere/proc", "libno-such-library.so.1"});
  EXPECT_EQ(found.cpus, 1U);
  EXPECT_EQ(found.missing,
            (std::vector<std::string>{"CPUs: /nowhere/sys/devices/system/cpu/online cannot be read",
                                      "memory: no MemTotal in /nowhere/proc/meminfo"}));
}

TEST(Inventory, ThisMachineAgreesWithTheLibrary) {
  const auto found = take_inventory();
  EXPECT_EQ(found.cpus, static_cast<std::uint32_t>(::sysconf(_SC_NPROCESSORS_ONLN)));
  EXPECT_EQ(found.memory_mib, static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                                      static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) >>
                                  20);
}

TEST(Inventory, FindsGpusByNvmlAndTheirPlace) {
  Machine machine;
  machine.write("sys/devices/system/cpu/online", "0\n");
  machine.add_cpu(0, 0, 0);
  machine.write("sys/bus/pci/devices/0000:c1:00.0/local_cpulist", "0-31\n");
  machine.write("sys/bus/pci/devices/0000:c1:00.0/numa_node", "0\n");
  machine.write("sys/bus/pci/devices/0000:c2:00.0/numa_node", "-1\n");
  const auto found = take_inventory(machine.options(TUTTI_NVML_STUB));
  EXPECT_TRUE(found.missing.empty()) << found.missing[0];
  ASSERT_EQ(found.gpus.size(), 2U);
  EXPECT_EQ(found.gpus[0].name, "NVIDIA H200");
  EXPECT_EQ(found.gpus[0].type, "nvidia_h200");
  EXPECT_EQ(found.gpus[0].uuid, "GPU-00000000-aaaa");
  EXPECT_EQ(found.gpus[0].file, "/dev/nvidia1") << "the minor number, not the index";
  EXPECT_EQ(found.gpus[0].memory_mib, 143771U);
  EXPECT_EQ(found.gpus[0].pci_bus_id, "0000:c1:00.0");
  EXPECT_EQ(found.gpus[0].near_cpus, "0-31");
  EXPECT_EQ(found.gpus[0].numa_node, 0);
  EXPECT_EQ(found.gpus[1].type, "nvidia_rtx_pro_6000_blackwell_server_edition");
  EXPECT_EQ(found.gpus[1].near_cpus, "");
  EXPECT_EQ(found.gpus[1].numa_node, std::nullopt);
}

TEST(Inventory, AnOldDriverIsNamedAndALostGpuIsAnError) {
  auto nvml = Nvml::load(TUTTI_NVML_STUB_OLD);
  ASSERT_TRUE(nvml) << nvml.error().message;
  EXPECT_EQ(nvml->missing().size(), 6U);
  EXPECT_EQ(nvml->missing()[2], "nvmlDeviceGetMinorNumber: not in this driver's library");
  auto gpus = nvml->gpus();
  ASSERT_FALSE(gpus);
  EXPECT_EQ(gpus.error().message, "NVML: GPU 0: error 15");
  EXPECT_EQ(Nvml::load("libno-such-library.so.1").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(Nvml::load("libm.so.6").error().message,
            "NVML: libm.so.6: nvmlInit_v2: not in this driver's library");
}

TEST(GpuType, FollowsSlurm) {
  EXPECT_EQ(gpu_type("Tesla V100-SXM2 16GB"), "tesla_v100-sxm2_16gb");
  EXPECT_TRUE(gpu_type_matches("H200", "nvidia_h200"));
  EXPECT_TRUE(gpu_type_matches("rtx_pro_6000", "NVIDIA RTX PRO 6000 Blackwell"));
  EXPECT_FALSE(gpu_type_matches("h100", "nvidia_h200"));
}

TEST(CpuList, IsParsedOrRefused) {
  EXPECT_EQ(parse_cpu_list("0-2,8\n").value(), (std::vector<std::uint32_t>{0, 1, 2, 8}));
  EXPECT_EQ(parse_cpu_list("").value(), std::vector<std::uint32_t>{});
  for (const auto* bad : {"x", "1-", "3-1", "1,,2", "1,", "0-99999999", "1 2", "-1"}) {
    EXPECT_FALSE(parse_cpu_list(bad)) << bad;
  }
}

TEST(NodeDevices, DeclaredOnesGetMinorsOfTheirOwnAndRealOnesAreShown) {
  const auto files = node_device_files(
      {{"gpu", "h200", "/dev/nvidia-none-0"}, {"gpu", "h200", ""}, {"gpu", "x", "/dev/null"}}, 16);
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0].path, "/dev/nvidia-none-0");
  EXPECT_EQ(files[0].minor, 16U);
  EXPECT_FALSE(files[0].real);
  EXPECT_EQ(files[1].minor, 18U);
  EXPECT_TRUE(files[1].real);
  EXPECT_EQ(device_rule("/dev/null").value(), (DeviceRule{'c', 1, 3, "rwm"}));
  EXPECT_EQ(device_rule("/etc/passwd").error().code, ErrorCode::kInvalid);
  EXPECT_EQ(device_rule("/dev/nowhere").error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace tutti::agent
