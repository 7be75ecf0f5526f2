#include "agent/spool.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace tutti::agent {
namespace {

struct Header {
  std::uint32_t length = 0;
  std::uint32_t rank = 0;
  std::uint32_t flags = 0;
};
static_assert(sizeof(Header) == 12);
constexpr std::uint32_t kErrorFlag = 1;
constexpr std::uint32_t kEndFlag = 2;
// Holes are made in pieces of this size, so that forgetting costs little.
constexpr std::uint64_t kPunchBytes = 1 << 20;

}  // namespace

Result<SpoolWriter> SpoolWriter::create(const std::string& path) {
  SpoolWriter writer;
  writer.file_ =
      Descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!writer.file_) return fail_errno(errno, path);
  return writer;
}

bool SpoolWriter::append(std::uint32_t rank, bool is_error, bool end, std::string_view bytes) {
  Header header{static_cast<std::uint32_t>(bytes.size()), rank,
                (is_error ? kErrorFlag : 0) | (end ? kEndFlag : 0)};
  std::size_t done = 0;
  const std::size_t total = sizeof header + bytes.size();
  while (done < total) {
    std::array<iovec, 2> parts{};
    int count = 0;
    if (done < sizeof header) {
      parts[static_cast<std::size_t>(count++)] = {reinterpret_cast<char*>(&header) + done,
                                                  sizeof header - done};
    }
    const std::size_t skip = done < sizeof header ? 0 : done - sizeof header;
    if (skip < bytes.size()) {
      parts[static_cast<std::size_t>(count++)] = {const_cast<char*>(bytes.data()) + skip,
                                                  bytes.size() - skip};
    }
    const ssize_t n = ::pwritev(file_.get(), parts.data(), count, static_cast<off_t>(size_ + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  size_ += total;
  return true;
}

void SpoolWriter::forget_before(std::uint64_t offset) {
  if (offset <= taken_ || offset > size_) return;
  taken_ = offset;
  const std::uint64_t end = taken_ / kPunchBytes * kPunchBytes;
  if (end <= punched_) return;
  // Where the file system cannot make holes the space comes back when the step is removed.
  ::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(punched_),
              static_cast<off_t>(end - punched_));
  punched_ = end;
}

Result<SpoolReader> SpoolReader::open(const std::string& directory) {
  const std::string path = directory + "/output";
  SpoolReader reader;
  reader.file_ = Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!reader.file_) return fail_errno(errno, path);
  struct stat status{};
  if (::fstat(reader.file_.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return fail(ErrorCode::kCorrupt, path + ": not a regular file");
  }
  return reader;
}

Result<std::optional<SpoolRecord>> SpoolReader::read(std::uint64_t offset) {
  const auto available = [&]() -> std::size_t {
    if (offset < buffer_offset_ || offset > buffer_offset_ + buffer_.size()) return 0;
    return static_cast<std::size_t>(buffer_offset_ + buffer_.size() - offset);
  };
  for (int attempt = 0; attempt < 2; ++attempt) {
    const std::size_t have = available();
    Header header;
    if (have >= sizeof header) {
      const char* at = buffer_.data() + (offset - buffer_offset_);
      std::memcpy(&header, at, sizeof header);
      if (header.length > kSpoolRecordMax || header.flags > (kErrorFlag | kEndFlag)) {
        return fail(ErrorCode::kCorrupt,
                    "no record of output at offset " + std::to_string(offset) + " of the spool");
      }
      if (have >= sizeof header + header.length) {
        return SpoolRecord{header.rank,
                           (header.flags & kErrorFlag) != 0,
                           (header.flags & kEndFlag) != 0,
                           std::string_view(at + sizeof header, header.length),
                           offset,
                           offset + sizeof header + header.length};
      }
    }
    if (attempt > 0) break;
    buffer_.resize(4 * kSpoolRecordMax);
    ssize_t n = 0;
    do {
      n = ::pread(file_.get(), buffer_.data(), buffer_.size(), static_cast<off_t>(offset));
    } while (n < 0 && errno == EINTR);
    const int error = errno;
    buffer_.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    buffer_offset_ = offset;
    if (n < 0) return fail_errno(error, "reading the spool");
  }
  return std::optional<SpoolRecord>();
}

}  // namespace tutti::agent
