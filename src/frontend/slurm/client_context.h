// What a command knows of the place it was started in. The parsers below it read no clock, no
// environment and no file by themselves: all of it comes in here, so that tests are exact.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/civil_time.h"
#include "base/error.h"
#include "base/time.h"
#include "model/workload.h"

namespace tutti::slurm {

// Variables in the order of environ(7); of a name given twice the first counts, as in getenv().
class Environment {
 public:
  Environment() = default;
  explicit Environment(std::vector<std::string> pairs) : pairs_(std::move(pairs)) {}

  std::optional<std::string_view> get(std::string_view name) const;
  void set(std::string_view name, std::string_view value);
  void remove(std::string_view name);
  const std::vector<std::string>& pairs() const { return pairs_; }
  // NUL-separated, as Submission::environment has it.
  std::string joined() const;

 private:
  std::vector<std::string> pairs_;
};

// Fills the span from the front and says how much it read; 0 = the end.
using ReadSome = std::function<Result<std::size_t>(std::span<char>)>;
// A file to read from its start; the empty path is the standard input.
using OpenFile = std::function<Result<ReadSome>(const std::string& path)>;

struct ClientContext {
  Environment environment;
  std::string work_dir;  // absolute
  std::string user, group, host;
  std::uint32_t uid = 0, gid = 0, pid = 0, umask = 0022;
  std::vector<Rlimit> limits;
  Instant now;
  const TimeZone* zone = nullptr;  // of the caller, for --begin=16:00; null = UTC
  OpenFile open_file;
};

// All of a file, at most `limit` bytes. Errors: what open_file() said, or kExhausted above the
// limit (found before more than `limit` + 1 bytes were read).
Result<std::string> read_file(const OpenFile& open_file, const std::string& path,
                              std::size_t limit);

}  // namespace tutti::slurm
