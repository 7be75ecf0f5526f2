#include "base/log.h"

// {fmt} is compiled into the binary (fmt_impl.cpp); spdlog is used from its headers, and only for
// rotating files.
#define SPDLOG_HEADER_ONLY
#define SPDLOG_FMT_EXTERNAL
#include <spdlog/formatter.h>
#include <spdlog/sinks/rotating_file_sink.h>

#include <chrono>
#include <cstdio>
#include <mutex>

#include "base/local_time.h"
#include "base/text.h"

namespace tutti {

namespace {
constexpr std::string_view kLevelNames[] = {"debug", "info", "warning", "error"};
constexpr Duration kRetryAfter = Duration::seconds(1);

Instant machine_clock() {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  return Instant::from_ms(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

bool needs_quotes(std::string_view value) {
  return value.empty() || std::any_of(value.begin(), value.end(), [](char c) {
           return static_cast<unsigned char>(c) <= ' ' || c == '"' || c == '=' || c == '\\' ||
                  c == '\x7F';
         });
}

void append_value(std::string& out, std::string_view value) {
  if (!needs_quotes(value)) {
    out += value;
    return;
  }
  out += '"';
  for (char c : value) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (c == '\n')
      out += "\\n";
    else if (byte < 0x20 || byte == 0x7F)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  out += '"';
}

std::string make_line(Instant now, LogLevel level, std::string_view event, Log::Fields fields) {
  std::string line = fmt::format("{} {} ", format_utc_ms(now), log_level_name(level));
  append_value(line, event);
  for (const LogField& field : fields) {
    ((line += ' ') += field.key) += '=';
    append_value(line, field.value);
  }
  return line;
}

class BareFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    out.append(message.payload.begin(), message.payload.end());
    out.push_back('\n');
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<BareFormatter>();
  }
};

// A sink of spdlog that failed to reopen its file while rotating would write through a null
// pointer next, so after any failure the sink is thrown away and a new one made.
class RotatingFile {
 public:
  RotatingFile(std::string path, const LogOptions& options)
      : path_(std::move(path)),
        max_bytes_(std::max<std::uint64_t>(1, options.max_bytes)),
        files_(std::max(1u, options.files)) {}

  Status open() {
    try {
      auto sink =
          std::make_unique<spdlog::sinks::rotating_file_sink_st>(path_, max_bytes_, files_ - 1);
      sink->set_formatter(std::make_unique<BareFormatter>());
      sink_ = std::move(sink);
      return {};
    } catch (const std::exception& error) {
      return fail(ErrorCode::kUnavailable, fmt::format("log {}: {}", path_, error.what()));
    }
  }

  bool write(std::string_view line) {
    if (!sink_ && !open()) return false;
    try {
      sink_->log(spdlog::details::log_msg({}, spdlog::level::info,
                                          spdlog::string_view_t(line.data(), line.size())));
      sink_->flush();
      return true;
    } catch (const std::exception&) {
      sink_.reset();
      return false;
    }
  }

 private:
  std::string path_;
  std::uint64_t max_bytes_;
  std::uint32_t files_;
  std::unique_ptr<spdlog::sinks::rotating_file_sink_st> sink_;
};
}  // namespace

std::string_view log_level_name(LogLevel level) {
  return kLevelNames[static_cast<std::size_t>(level)];
}

Result<LogLevel> parse_log_level(std::string_view text) {
  for (std::size_t i = 0; i < std::size(kLevelNames); ++i)
    if (equals_ci(text, kLevelNames[i])) return static_cast<LogLevel>(i);
  return invalid(fmt::format("log level {}: expected {}", quote(text), join(kLevelNames, ", ")));
}

struct Log::Impl {
  Impl(LogSink s, LogOptions o) : options(std::move(o)), sink(std::move(s)) {
    if (!options.clock) options.clock = machine_clock;
  }

  void write(LogLevel level, std::string_view event, Fields fields) {
    std::lock_guard lock(mutex);
    Instant now = options.clock();
    // Between a failure and the next try nothing is attempted: opening a file may take long.
    bool wait = failed && now >= failed_at && now < failed_at + kRetryAfter;
    if (wait || !put(now, level, event, fields)) {
      if (!wait) failed_at = now;
      failed = true;
      ++lost;
      return;
    }
    failed = false;
  }
  bool put(Instant now, LogLevel level, std::string_view event, Fields fields) {
    if (lost > lost_told) {
      if (!sink(
              make_line(now, LogLevel::kWarning, "log_lines_lost", {{"count", lost - lost_told}})))
        return false;
      lost_told = lost;
    }
    return sink(make_line(now, level, event, fields));
  }

  std::mutex mutex;
  LogOptions options;
  LogSink sink;
  std::uint64_t lost = 0;
  std::uint64_t lost_told = 0;
  bool failed = false;
  Instant failed_at;
};

Log::Log(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Log::Log(Log&&) noexcept = default;
Log& Log::operator=(Log&&) noexcept = default;
Log::~Log() = default;

Result<Log> Log::to_file(const std::string& path, LogOptions options) {
  auto file = std::make_shared<RotatingFile>(path, options);
  if (auto opened = file->open(); !opened) return tl::unexpected<Error>(opened.error());
  return to_sink([file](std::string_view line) { return file->write(line); }, std::move(options));
}

Log Log::to_stderr(LogOptions options) {
  auto sink = [](std::string_view line) {
    std::string text(line);
    text += '\n';
    return std::fwrite(text.data(), 1, text.size(), stderr) == text.size();
  };
  return to_sink(sink, std::move(options));
}

Log Log::to_sink(LogSink sink, LogOptions options) {
  return Log(std::make_unique<Impl>(std::move(sink), std::move(options)));
}

Log Log::discard() {
  LogOptions options;
  options.clock = [] { return Instant(); };
  return to_sink([](std::string_view) { return true; }, std::move(options));
}

void Log::write(LogLevel level, std::string_view event, Fields fields) noexcept {
  if (!enabled(level)) return;
  try {
    impl_->write(level, event, fields);
  } catch (const std::exception&) {
    // Out of memory while making the line, or a sink of a caller that throws.
    std::lock_guard lock(impl_->mutex);
    ++impl_->lost;
  }
}

bool Log::enabled(LogLevel level) const { return level >= impl_->options.level; }

std::uint64_t Log::lost() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->lost;
}

}  // namespace tutti
