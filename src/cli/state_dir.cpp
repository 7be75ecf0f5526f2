#include "cli/state_dir.h"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/process.h"

namespace tutti::cli {

namespace {
Result<std::string> read_file(const std::string& path) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail_errno(errno, path);
  std::string text;
  char buffer[65536];
  ssize_t n;
  while ((n = read(fd, buffer, sizeof buffer)) > 0) text.append(buffer, static_cast<std::size_t>(n));
  int error = errno;
  close(fd);
  if (n < 0) return fail_errno(error, path);
  return text;
}
}  // namespace

Status replace_file(const std::string& path, const std::string& text, unsigned mode,
                    Durability durability) {
  std::string temporary = fmt::format("{}.new.{}", path, getpid());
  int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
  if (fd < 0) return fail_errno(errno, temporary);
  fchmod(fd, mode);
  std::size_t done = 0;
  while (done < text.size()) {
    ssize_t n = write(fd, text.data() + done, text.size() - done);
    if (n <= 0) {
      int error = errno;
      close(fd);
      unlink(temporary.c_str());
      return fail_errno(error, temporary);
    }
    done += static_cast<std::size_t>(n);
  }
  // An empty file in place of a good one is what a crash or a full disk must not leave.
  if (durability == Durability::kDisk && fsync(fd) != 0) {
    int error = errno;
    close(fd);
    unlink(temporary.c_str());
    return fail_errno(error, temporary);
  }
  close(fd);
  if (rename(temporary.c_str(), path.c_str()) != 0) return fail_errno(errno, path);
  return {};
}

Result<ClusterFile> read_cluster_file(const std::string& dir) {
  std::string path = dir + "/cluster.json";
  auto text = read_file(path);
  if (!text) {
    if (text.error().code == ErrorCode::kNotFound)
      return fail(ErrorCode::kNotFound, fmt::format("no cluster in {}: start one with `tutti up`", dir), "no_cluster");
    return tl::unexpected<Error>(text.error());
  }
  auto file = from_json<ClusterFile>(std::string_view(*text));
  if (!file) return fail(ErrorCode::kCorrupt, fmt::format("{}: {}", path, file.error().message));
  if (file->format == 0) return fail(ErrorCode::kCorrupt, fmt::format("{} names no format: it is damaged, or not a cluster's", path));
  if (file->format > kStateFormat)
    return invalid(fmt::format("{} has format {}, this program reads up to {}: use the newer tutti that wrote it", path, file->format, kStateFormat), "state_too_new");
  return file;
}

Status write_cluster_file(const std::string& dir, const ClusterFile& file) {
  ClusterFile current = file;
  current.format = kStateFormat;
  return replace_file(dir + "/cluster.json", to_json(current) + "\n", 0644);
}

Result<agent::HolderHandle> read_holder(const std::string& dir, const std::string& name) {
  auto text = read_file(fmt::format("{}/holders/{}.json", dir, name));
  if (!text) return tl::unexpected<Error>(text.error());
  return from_json<agent::HolderHandle>(std::string_view(*text));
}

Status write_holder(const std::string& dir, const std::string& name, const agent::HolderHandle& holder) {
  return replace_file(fmt::format("{}/holders/{}.json", dir, name), to_json(holder) + "\n", 0644, Durability::kThisBoot);
}

namespace {

struct PidsFile {
  std::string boot;  // pids and start times mean nothing after the next one
  std::vector<ClusterProcess> processes;
};
void describe(auto& a, PidsFile& x) {
  a("boot", x.boot);
  a("processes", x.processes);
}

std::string boot_id() {
  auto text = agent::read_small_file("/proc/sys/kernel/random/boot_id");
  return text ? text->substr(0, text->find('\n')) : std::string();
}

// Reads, changes and writes the list while nobody else does.
template <class Change>
Status change_pids(const std::string& dir, const Change& change) {
  agent::Descriptor lock(
      open((dir + "/pids.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock) return fail_errno(errno, dir + "/pids.lock");
  flock(lock.get(), LOCK_EX);
  PidsFile file{boot_id(), read_pids(dir)};
  change(file.processes);
  std::string lines;
  for (const ClusterProcess& p : file.processes) lines += fmt::format("{} {}\n", p.name, p.process.pid);
  if (Status written = replace_file(dir + "/pids.json", to_json(file) + "\n", 0644, Durability::kThisBoot); !written) return written;
  return replace_file(dir + "/pids", lines, 0644, Durability::kThisBoot);
}

}  // namespace

std::vector<ClusterProcess> read_pids(const std::string& dir) {
  auto text = read_file(dir + "/pids.json");
  if (!text) return {};
  auto file = from_json<PidsFile>(std::string_view(*text));
  if (!file || file->boot != boot_id()) return {};
  std::erase_if(file->processes, [](const ClusterProcess& p) { return !agent::is_alive(p.process); });
  return std::move(file->processes);
}

Status set_pid(const std::string& dir, const std::string& name, pid_t pid) {
  auto process = agent::process_ref(pid);
  if (!process) return tl::unexpected<Error>(process.error());
  return change_pids(dir, [&](std::vector<ClusterProcess>& processes) {
    std::erase_if(processes, [&](const ClusterProcess& p) { return p.name == name; });
    processes.push_back({name, *process});
  });
}

Status clear_pid(const std::string& dir, const std::string& name, pid_t pid) {
  return change_pids(dir, [&](std::vector<ClusterProcess>& processes) {
    std::erase_if(processes, [&](const ClusterProcess& p) { return p.name == name && p.process.pid == pid; });
  });
}

std::optional<pid_t> pid_of(const std::string& dir, const std::string& name) {
  for (const ClusterProcess& known : read_pids(dir))
    if (known.name == name) return known.process.pid;
  return std::nullopt;
}

}  // namespace tutti::cli
