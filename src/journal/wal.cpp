#include "journal/wal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

namespace tutti::journal {
namespace {

constexpr std::size_t kHeaderSize = 32;
constexpr std::size_t kFrameHeaderSize = 24;

using Bytes = std::span<const std::uint8_t>;

std::uint32_t big_endian(Bytes bytes, std::size_t offset) {
  return std::uint32_t{bytes[offset]} << 24 | std::uint32_t{bytes[offset + 1]} << 16 |
         std::uint32_t{bytes[offset + 2]} << 8 | std::uint32_t{bytes[offset + 3]};
}
std::uint32_t little_endian(Bytes bytes, std::size_t offset) {
  return std::uint32_t{bytes[offset + 3]} << 24 | std::uint32_t{bytes[offset + 2]} << 16 |
         std::uint32_t{bytes[offset + 1]} << 8 | std::uint32_t{bytes[offset]};
}

using Checksum = std::array<std::uint32_t, 2>;

// The log's running checksum; words are read in the byte order that the header's magic names.
Checksum advance(Checksum sum, Bytes bytes, bool words_big_endian) {
  const auto word = words_big_endian ? big_endian : little_endian;
  for (std::size_t i = 0; i + 8 <= bytes.size(); i += 8) {
    sum[0] += word(bytes, i) + sum[1];
    sum[1] += word(bytes, i + 4) + sum[0];
  }
  return sum;
}

struct Header {
  bool words_big_endian = false;
  std::uint32_t page_size = 0;
  std::array<std::uint32_t, 2> salt{};
  Checksum checksum{};
};

std::optional<Header> parse_header(Bytes bytes) {
  const std::uint32_t magic = big_endian(bytes, 0);
  if ((magic & ~1U) != 0x377F0682) return std::nullopt;
  Header header;
  header.words_big_endian = (magic & 1) != 0;
  header.page_size = big_endian(bytes, 8);
  header.salt = {big_endian(bytes, 16), big_endian(bytes, 20)};
  header.checksum = advance({0, 0}, bytes.first(24), header.words_big_endian);
  const bool power_of_two = (header.page_size & (header.page_size - 1)) == 0;
  if (header.checksum != Checksum{big_endian(bytes, 24), big_endian(bytes, 28)} ||
      header.page_size < 512 || header.page_size > 65536 || !power_of_two) {
    return std::nullopt;
  }
  return header;
}

struct Frame {
  bool same_generation = false;  // carries the salts of the header: not left from an earlier round
  bool commits = false;
  Checksum stored{};
};

// Follows the frames. `valid` ones continue the checksum from the header; behind the first that
// does not, frames are only compared with what their neighbour claims.
class Scanner {
 public:
  explicit Scanner(const Header& header) : header_(header), previous_(header.checksum) {}

  void add(Bytes bytes) {
    ++index_;
    Frame frame;
    frame.same_generation = header_.salt == std::array{big_endian(bytes, 8), big_endian(bytes, 12)};
    frame.commits = big_endian(bytes, 4) != 0;
    frame.stored = {big_endian(bytes, 16), big_endian(bytes, 20)};
    Checksum sum = advance(previous_, bytes.first(8), header_.words_big_endian);
    sum = advance(sum, bytes.subspan(kFrameHeaderSize), header_.words_big_endian);
    const bool linked = frame.same_generation && sum == frame.stored;
    if (!linked && first_bad_ == 0) first_bad_ = index_;
    if (first_bad_ == 0) {
      if (frame.commits) last_commit_ = index_;
    } else if (linked && previous_commits_) {
      // This frame was written after a commit that lies at or behind the damage. Frames follow a
      // commit only once it is synced, so that commit was acknowledged. (Attempts that failed
      // and were overwritten by shorter ones leave frames too, but none linked to a commit.)
      buried_commit_ = true;
    }
    if (frame.same_generation) last_same_generation_ = index_;
    previous_commits_ = frame.same_generation && frame.commits;
    previous_ = frame.stored;
  }

  bool buried_commit() const { return buried_commit_; }
  std::uint64_t first_bad() const { return first_bad_; }
  std::uint64_t last_commit() const { return last_commit_; }
  std::uint64_t last_same_generation() const { return last_same_generation_; }
  std::uint64_t count() const { return index_; }

 private:
  const Header& header_;
  Checksum previous_;
  bool previous_commits_ = false;
  bool buried_commit_ = false;
  std::uint64_t index_ = 0;  // frames count from 1
  std::uint64_t first_bad_ = 0;
  std::uint64_t last_commit_ = 0;
  std::uint64_t last_same_generation_ = 0;
};

// Reads up to buffer.size() bytes; fewer only at the end of the file. -1: errno.
ssize_t read_full(int descriptor, std::span<std::uint8_t> buffer) {
  std::size_t done = 0;
  while (done < buffer.size()) {
    const ssize_t n = ::read(descriptor, buffer.data() + done, buffer.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return static_cast<ssize_t>(done);
}

Result<WalReport> inspect(int descriptor, const std::string& path) {
  std::array<std::uint8_t, kHeaderSize> head;
  ssize_t size = read_full(descriptor, head);
  if (size < 0) return fail_errno(errno, path);
  WalReport report;
  if (size < static_cast<ssize_t>(kHeaderSize)) {
    report.bytes_dropped = static_cast<std::uint64_t>(size);
    return report;
  }
  const std::optional<Header> header = parse_header(head);
  std::vector<std::uint8_t> buffer(kFrameHeaderSize + (header ? header->page_size : 512));
  if (!header) {
    // SQLite syncs the header before it writes the first frame, so a log with frames has one.
    size = read_full(descriptor, buffer);
    if (size < 0) return fail_errno(errno, path);
    report.bytes_dropped = kHeaderSize;
    if (size == 0) return report;
    return fail(ErrorCode::kCorrupt,
                fmt::format("{}: the header of the write-ahead log (bytes 0 to 31) is damaged but "
                            "transactions follow it; restore the state directory from a backup, "
                            "or ask `tutti doctor` what can be saved",
                            path),
                "journal_log_damaged");
  }
  Scanner scanner(*header);
  while ((size = read_full(descriptor, buffer)) == static_cast<ssize_t>(buffer.size())) {
    scanner.add(buffer);
  }
  if (size < 0) return fail_errno(errno, path);
  if (scanner.buried_commit()) {
    const std::uint64_t bad = scanner.first_bad();
    return fail(
        ErrorCode::kCorrupt,
        fmt::format("{}: frame {} of the write-ahead log (byte {}) is damaged and "
                    "acknowledged transactions lie behind it; the last whole one ends at "
                    "frame {}. Restore the state directory from a backup, or ask `tutti "
                    "doctor` what can be saved",
                    path, bad, kHeaderSize + (bad - 1) * buffer.size(), scanner.last_commit()),
        "journal_log_damaged");
  }
  report.frames_kept = scanner.last_commit();
  if (scanner.last_same_generation() > scanner.last_commit()) {
    report.frames_dropped = scanner.last_same_generation() - scanner.last_commit();
    report.bytes_dropped = report.frames_dropped * buffer.size();
  }
  if (size > 0) {  // part of a frame at the end of the file
    report.frames_dropped = scanner.count() - scanner.last_commit() + 1;
    report.bytes_dropped =
        (report.frames_dropped - 1) * buffer.size() + static_cast<std::uint64_t>(size);
  }
  return report;
}

}  // namespace

Result<WalReport> inspect_wal(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    if (errno == ENOENT) return WalReport{};
    return fail_errno(errno, path);
  }
  Result<WalReport> report = inspect(descriptor, path);
  ::close(descriptor);
  return report;
}

}  // namespace tutti::journal
