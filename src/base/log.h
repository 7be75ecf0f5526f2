// The log of a daemon: one event per line,
//
//   2026-11-30T20:00:42.123Z info job_started job=31 nodes=node[01-02] script="a b.sh"
//
// to a file that is rotated and bounded, to stderr, or to a function. A Log is passed to whoever
// writes to it; there is no global one. Logging never throws, never ends the program and never
// blocks for long: a line that cannot be written (disk full, directory gone) is counted and
// dropped, the file is tried again a second later, and then the first line tells how many lines
// were lost. Safe to use from several threads.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/time.h"

namespace tutti {

enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarning, kError };
std::string_view log_level_name(LogLevel level);  // "debug", "info", "warning", "error"
Result<LogLevel> parse_log_level(std::string_view text);

// key=value; the value is quoted when it has blanks, quotes, '=' or control characters.
struct LogField {
  LogField(std::string_view k, std::string_view v) : key(k), value(v) {}
  LogField(std::string_view k, const std::string& v) : key(k), value(v) {}
  LogField(std::string_view k, const char* v) : key(k), value(v) {}
  LogField(std::string_view k, bool v) : key(k), value(v ? "true" : "false") {}
  template <class Number>
    requires((std::integral<Number> || std::floating_point<Number>) && !std::same_as<Number, bool>)
  LogField(std::string_view k, Number v) : key(k), value(fmt::to_string(v)) {}
  LogField(std::string_view k, const Error& error) : key(k), value(to_string(error)) {}
  std::string_view key;
  std::string value;
};

// Writes one line, without its end; false: it was not written.
using LogSink = std::function<bool(std::string_view line)>;

struct LogOptions {
  LogLevel level = LogLevel::kInfo;  // what is less is not written
  // Read once per line. Empty: the machine's clock, which only a program at the edge may want.
  std::function<Instant()> clock;
  // For files: "log.txt" is moved to "log.1.txt" before it passes max_bytes, and so on;
  // `files` in all.
  std::uint64_t max_bytes = 8u << 20;
  std::uint32_t files = 3;
};

class Log {
 public:
  // Errors: kUnavailable when the file cannot be opened now; missing folders are made.
  static Result<Log> to_file(const std::string& path, LogOptions options = {});
  static Log to_stderr(LogOptions options = {});
  static Log to_sink(LogSink sink, LogOptions options = {});
  static Log discard();

  Log(Log&&) noexcept;
  Log& operator=(Log&&) noexcept;
  ~Log();

  using Fields = std::initializer_list<LogField>;
  void write(LogLevel level, std::string_view event, Fields fields = {}) noexcept;
  void debug(std::string_view event, Fields fields = {}) { write(LogLevel::kDebug, event, fields); }
  void info(std::string_view event, Fields fields = {}) { write(LogLevel::kInfo, event, fields); }
  void warning(std::string_view event, Fields fields = {}) {
    write(LogLevel::kWarning, event, fields);
  }
  void error(std::string_view event, Fields fields = {}) { write(LogLevel::kError, event, fields); }

  // Whether lines of that level are written: spares making costly fields.
  bool enabled(LogLevel level) const;
  std::uint64_t lost() const;  // lines dropped since the start

 private:
  struct Impl;
  explicit Log(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tutti
