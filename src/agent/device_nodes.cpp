#include "agent/device_nodes.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "agent/process.h"

namespace tutti::agent {

std::uint32_t pick_gpu_major(const std::string& proc_devices) {
  std::set<std::uint32_t> taken;
  const auto text = read_small_file(proc_devices).value_or("");
  // "Character devices:\n  1 mem\n...\n\nBlock devices:\n"
  std::string_view rest(text);
  rest = rest.substr(0, rest.find("Block devices:"));
  while (!rest.empty()) {
    auto line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    std::uint32_t number = 0;
    const auto parsed = std::from_chars(line.data(), line.data() + line.size(), number);
    if (parsed.ec == std::errc()) taken.insert(number);
  }
  if (!taken.contains(195)) return 195;
  for (std::uint32_t number = 240; number < 254; ++number) {
    if (!taken.contains(number)) return number;
  }
  return 254;
}

std::vector<std::string> shared_device_paths() {
  std::vector<std::string> paths;
  const auto add = [&paths](const std::string& path) {
    struct stat status{};
    if (::stat(path.c_str(), &status) == 0 && S_ISCHR(status.st_mode)) paths.push_back(path);
  };
  for (const auto* path :
       {"/dev/fuse", "/dev/net/tun", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools",
        "/dev/nvidia-modeset", "/dev/kfd", "/dev/gdrdrv"}) {
    add(path);
  }
  if (DIR* dir = ::opendir("/dev/infiniband")) {
    std::set<std::string> names;
    while (const dirent* entry = ::readdir(dir)) names.insert(entry->d_name);
    ::closedir(dir);
    for (const auto& name : names) add("/dev/infiniband/" + name);
  }
  return paths;
}

}  // namespace tutti::agent
