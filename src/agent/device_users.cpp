#include "agent/device_users.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <set>

#include "agent/process.h"
#include "base/text.h"

namespace tutti::agent {

std::vector<std::string> device_users(const std::vector<std::string>& paths,
                                      const std::string& proc) {
  namespace fs = std::filesystem;
  std::map<dev_t, std::string> devices;
  for (const auto& path : paths) {
    struct stat status{};
    if (::stat(path.c_str(), &status) == 0 && S_ISCHR(status.st_mode)) {
      devices.emplace(status.st_rdev, path);
    }
  }
  std::vector<std::string> lines;
  if (devices.empty()) return lines;
  std::error_code error;
  for (fs::directory_iterator process(proc, error), none; !error && process != none;
       process.increment(error)) {
    const std::string pid = process->path().filename();
    if (!parse_integer<std::uint32_t>(pid)) continue;
    std::set<dev_t> seen;
    std::error_code gone;
    for (fs::directory_iterator file(process->path() / "fd", gone); !gone && file != none;
         file.increment(gone)) {
      struct stat status{};
      if (::stat(file->path().c_str(), &status) != 0 || !S_ISCHR(status.st_mode)) continue;
      const auto device = devices.find(status.st_rdev);
      if (device == devices.end() || !seen.insert(status.st_rdev).second) continue;
      struct stat owner{};
      ::stat(process->path().c_str(), &owner);
      auto name = read_small_file(process->path() / "comm");
      lines.push_back(fmt::format("process {} ({}) of uid {} has {} open", pid,
                                  name ? trim(*name) : "?", owner.st_uid, device->second));
    }
  }
  return lines;
}

}  // namespace tutti::agent
