#include "agent/cgroup_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <thread>

#include "agent/process.h"

namespace tutti::agent::cgroup {

Status write_control(const std::string& path, std::string_view value) {
  Descriptor fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd) return fail_errno(errno, path);
  if (::write(fd.get(), value.data(), value.size()) < 0) {
    return fail_errno(errno, fmt::format("writing '{}' to {}", value, path));
  }
  return {};
}

Result<bool> make_group(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) == 0) return true;
  if (errno == EEXIST) return false;
  return fail_errno(errno, "making cgroup " + path);
}

bool is_directory(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

std::vector<std::string> subgroups(const std::string& path) {
  std::vector<std::string> names;
  DIR* dir = ::opendir(path.c_str());
  if (dir == nullptr) return names;
  while (const dirent* entry = ::readdir(dir)) {
    if (entry->d_type == DT_DIR && entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  ::closedir(dir);
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::vector<pid_t>> read_processes(const std::string& path) {
  std::vector<pid_t> pids;
  auto text = read_small_file(path + "/cgroup.procs");
  if (!text) {
    if (text.error().code == ErrorCode::kNotFound) return pids;
    return tl::unexpected(text.error());
  }
  const char* at = text->data();
  const char* const end = at + text->size();
  while (at < end) {
    pid_t pid = 0;
    const auto parsed = std::from_chars(at, end, pid);
    // 0 is a process of another pid namespace: it exists, though we cannot name it.
    if (parsed.ec == std::errc()) pids.push_back(pid);
    at = std::find(parsed.ptr, end, '\n') + 1;
  }
  for (const auto& name : subgroups(path)) {
    auto below = read_processes(path + "/" + name);
    if (!below) return below;
    pids.insert(pids.end(), below->begin(), below->end());
  }
  return pids;
}

Status remove_tree(const std::string& path) {
  constexpr int kTries = 50;
  for (int attempt = 0;; ++attempt) {
    if (::rmdir(path.c_str()) == 0 || errno == ENOENT) return {};
    if (errno != EBUSY && errno != ENOTEMPTY) return fail_errno(errno, "removing cgroup " + path);
    for (const auto& name : subgroups(path)) {
      if (auto status = remove_tree(path + "/" + name); !status) return status;
    }
    if (::rmdir(path.c_str()) == 0 || errno == ENOENT) return {};
    auto pids = read_processes(path);
    if (attempt >= kTries || (pids && !pids->empty())) {
      return fail(ErrorCode::kConflict,
                  fmt::format("cgroup {} is not empty: processes {}", path,
                              pids ? fmt::format("{}", fmt::join(*pids, " ")) : "unknown"));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

std::uint64_t number_after(std::string_view text, std::string_view key) {
  std::size_t at = 0;
  while (at < text.size()) {
    auto line = text.substr(at, text.find('\n', at) - at);
    at += line.size() + 1;
    if (!line.starts_with(key)) continue;
    line.remove_prefix(key.size());
    if (!key.empty() && !line.starts_with(' ')) continue;
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    std::uint64_t number = 0;
    std::from_chars(line.data(), line.data() + line.size(), number);
    return number;
  }
  return 0;
}

Status kill_until_empty(const KillLoop& loop) {
  const auto deadline = std::chrono::steady_clock::now() + loop.timeout;
  auto pause = std::chrono::microseconds(200);
  while (true) {
    if (loop.before) loop.before();
    auto pids = read_processes(loop.path);
    if (pids) {
      std::erase(*pids, loop.except);
      for (pid_t pid : *pids) {
        if (pid > 0) ::kill(pid, SIGKILL);
      }
    }
    if (loop.after) loop.after();
    if (!pids) return tl::unexpected(pids.error());
    if (pids->empty()) return {};
    if (std::chrono::steady_clock::now() >= deadline) {
      return fail(ErrorCode::kUnavailable, fmt::format("processes in {} do not die of SIGKILL: {}",
                                                       loop.path, fmt::join(*pids, " ")));
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(20000));
  }
}

std::string job_name(std::uint32_t job) { return fmt::format("job_{}", job); }
std::string step_name(std::string_view step) { return fmt::format("step_{}", step); }

std::vector<std::uint32_t> job_ids(const std::string& path) {
  std::vector<std::uint32_t> ids;
  for (const auto& name : subgroups(path)) {
    if (!name.starts_with("job_")) continue;
    std::uint32_t id = 0;
    const char* end = name.data() + name.size();
    const auto parsed = std::from_chars(name.data() + 4, end, id);
    if (parsed.ec == std::errc() && parsed.ptr == end) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace tutti::agent::cgroup
