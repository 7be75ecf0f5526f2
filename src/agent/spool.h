// Spool: the attached output of a step on one node, as a file of records in the order in which the
// supervisor read them. Positions are offsets in that file and never change; what the client has
// may be forgotten (a hole), so a long-lived step does not fill the disk. One writer (the
// supervisor, which lives as long as the step), one reader (the agent, which may be restarted).
//
// Record: 12 bytes (length, rank, flags; host byte order) and `length` bytes. The format has the
// version of the supervisor's protocol.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "agent/process.h"
#include "base/error.h"

namespace tutti::agent {

constexpr std::size_t kSpoolRecordMax = 64 * 1024;

struct SpoolRecord {
  std::uint32_t rank = 0;
  bool is_error = false;
  bool end = false;
  std::string_view bytes;
  std::uint64_t offset = 0, next = 0;
};

class SpoolWriter {
 public:
  SpoolWriter() = default;
  static Result<SpoolWriter> create(const std::string& path);
  // At most kSpoolRecordMax bytes. False when the disk is full: nothing was added, try again.
  bool append(std::uint32_t rank, bool is_error, bool end, std::string_view bytes);
  // Everything before it may go. A smaller or too large offset is ignored.
  void forget_before(std::uint64_t offset);
  std::uint64_t size() const { return size_; }
  std::uint64_t taken() const { return taken_; }
  bool is_open() const { return static_cast<bool>(file_); }

 private:
  Descriptor file_;
  std::uint64_t size_ = 0, taken_ = 0, punched_ = 0;
};

class SpoolReader {
 public:
  SpoolReader() = default;
  // The directory belongs to the user: nothing but a regular file there is opened.
  static Result<SpoolReader> open(const std::string& directory);
  bool is_open() const { return static_cast<bool>(file_); }
  // The record at `offset`; its bytes live until the next call. Nothing when it is not complete
  // yet. kCorrupt when what is there cannot be a record.
  Result<std::optional<SpoolRecord>> read(std::uint64_t offset);

 private:
  Descriptor file_;
  std::string buffer_;
  std::uint64_t buffer_offset_ = 0;
};

}  // namespace tutti::agent
