#include "wire/token.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

#include "base/check.h"

namespace tutti::wire {
namespace {

constexpr std::size_t kKeyFileBytesMax = 4096;

Status write_and_sync(int descriptor, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t n = ::write(descriptor, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno(errno, "cannot write key file " + path);
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  if (::fsync(descriptor) != 0) return fail_errno(errno, "cannot sync key file " + path);
  return {};
}

}  // namespace

bool equal_constant_time(std::string_view a, std::string_view b) {
  if (a.size() != b.size() || a.empty()) return false;
  volatile unsigned char difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  }
  return difference == 0;
}

std::string make_token() {
  std::array<unsigned char, 32> bytes{};
  TUTTI_CHECK(getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  std::string out;
  for (const unsigned char byte : bytes) out += fmt::format("{:02x}", byte);
  return out;
}

Status write_key_file(const std::string& path, std::string_view token) {
  const std::string temporary = fmt::format("{}.new.{}", path, ::getpid());
  (void)::unlink(temporary.c_str());  // of a process of the same id that died half-way
  const int descriptor =
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor < 0) return fail_errno(errno, "cannot create key file " + temporary);
  Status status = write_and_sync(descriptor, fmt::format("{}\n", token), temporary);
  ::close(descriptor);
  if (status && ::rename(temporary.c_str(), path.c_str()) != 0) {
    status = fail_errno(errno, "cannot put key file in place: " + path);
  }
  if (!status) (void)::unlink(temporary.c_str());
  return status;
}

Result<std::string> read_key_file(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return fail_errno(errno, "cannot open key file " + path);
  struct stat info{};
  std::array<char, kKeyFileBytesMax + 1> buffer{};
  const bool known = ::fstat(descriptor, &info) == 0;
  const ssize_t size =
      known && S_ISREG(info.st_mode) ? ::read(descriptor, buffer.data(), buffer.size()) : -1;
  ::close(descriptor);
  if (!known || !S_ISREG(info.st_mode)) return invalid(path + " is not a regular file");
  if ((info.st_mode & 077U) != 0) {
    return fail(ErrorCode::kDenied,
                fmt::format("key file {} has mode {:04o}: others may reach it, expected 0600", path,
                            info.st_mode & 07777U));
  }
  if (info.st_uid != ::geteuid() && info.st_uid != 0) {
    return fail(ErrorCode::kDenied, fmt::format("key file {} belongs to uid {}, expected {} or 0",
                                                path, info.st_uid, ::geteuid()));
  }
  if (size < 0) return fail_errno(errno, "cannot read key file " + path);
  if (static_cast<std::size_t>(size) > kKeyFileBytesMax) {
    return invalid(fmt::format("key file {} is longer than {} bytes", path, kKeyFileBytesMax));
  }
  std::string token(buffer.data(), static_cast<std::size_t>(size));
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r' || token.back() == ' ')) {
    token.pop_back();
  }
  if (token.empty()) return invalid("key file " + path + " is empty");
  return token;
}

}  // namespace tutti::wire
