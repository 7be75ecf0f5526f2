#include "journal/lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace tutti::journal {
namespace {

// The process id that the holder wrote; "unknown" when it has not got that far.
std::string holder(int descriptor) {
  char text[32] = {};
  const ssize_t size = pread(descriptor, text, sizeof text - 1, 0);
  std::string pid;
  for (ssize_t i = 0; i < size && text[i] >= '0' && text[i] <= '9'; ++i) pid += text[i];
  return pid.empty() ? "unknown" : pid;
}

}  // namespace

Result<DirectoryLock> DirectoryLock::take(const std::string& directory) {
  const std::string path = directory + "/journal.lock";
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor < 0) return fail_errno(errno, path);
  DirectoryLock lock(descriptor);
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return fail_errno(errno, path);
    return fail(ErrorCode::kConflict,
                fmt::format("another controller (pid {}) has this state directory open: {}",
                            holder(descriptor), directory),
                "journal_locked");
  }
  const std::string pid = fmt::format("{}\n", getpid());
  // The text only helps the next message; that it cannot be written (disk full) is no reason not
  // to start.
  if (ftruncate(descriptor, 0) == 0) (void)!pwrite(descriptor, pid.data(), pid.size(), 0);
  return lock;
}

DirectoryLock::DirectoryLock(DirectoryLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}
DirectoryLock& DirectoryLock::operator=(DirectoryLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}
DirectoryLock::~DirectoryLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace tutti::journal
