#include "agent/step_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace tutti::agent {

void StepOutput::open(SpoolWriter spool, bool unbuffered) {
  spool_ = std::move(spool);
  unbuffered_ = unbuffered;
}

void StepOutput::add(Descriptor fd, std::uint32_t rank, bool is_error) {
  ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
  sources_.push_back(Source{std::move(fd), rank, is_error, {}});
}

void StepOutput::say(std::uint32_t rank, std::string_view text) {
  if (spool_.is_open()) spool_.append(rank, true, false, text.substr(0, kSpoolRecordMax));
}

bool StepOutput::wants_read() const {
  return !disk_full_ && spool_.size() - spool_.taken() < kBacklogMax;
}

bool StepOutput::store(Source& source, bool at_end) {
  std::string& text = source.unfinished;
  while (!text.empty()) {
    std::size_t length = std::min(text.size(), kSpoolRecordMax);
    if (!unbuffered_) {
      const std::size_t newline = text.rfind('\n', length - 1);
      if (newline != std::string::npos) {
        length = newline + 1;
      } else if (!at_end && text.size() < kSpoolRecordMax) {
        return true;
      }
    }
    if (!spool_.append(source.rank, source.is_error, false,
                       std::string_view(text).substr(0, length))) {
      disk_full_ = true;
      return false;
    }
    text.erase(0, length);
  }
  return true;
}

StepOutput::ReadResult StepOutput::read_once(Source& source) {
  std::array<char, kSpoolRecordMax> buffer;
  ssize_t n = 0;
  do {
    n = ::read(source.fd.get(), buffer.data(), buffer.size());
  } while (n < 0 && errno == EINTR);
  if (n > 0) {
    source.unfinished.append(buffer.data(), static_cast<std::size_t>(n));
    return ReadResult::kSome;
  }
  if (n < 0 && errno == EAGAIN) return ReadResult::kNothing;
  return ReadResult::kEnd;  // a terminal whose processes are gone gives EIO
}

void StepOutput::on_readable(std::size_t index) {
  Source& source = sources_[index];
  const ReadResult result = read_once(source);
  if (result == ReadResult::kNothing || !store(source, result == ReadResult::kEnd)) return;
  if (result == ReadResult::kSome) return;
  if (!spool_.append(source.rank, source.is_error, true, {})) {
    disk_full_ = true;
    return;
  }
  sources_.erase(sources_.begin() + static_cast<std::ptrdiff_t>(index));
}

bool StepOutput::finish() {
  while (!sources_.empty()) {
    Source& source = sources_.back();
    while (read_once(source) == ReadResult::kSome) {
      if (!store(source, false)) return false;
    }
    if (!store(source, true) || !spool_.append(source.rank, source.is_error, true, {})) {
      disk_full_ = true;
      return false;
    }
    sources_.pop_back();
  }
  return true;
}

void StepInput::add(Descriptor fd, std::uint32_t rank, Ending ending) {
  ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
  targets_.push_back(Target{std::move(fd), rank, ending, 0, false});
}

Status StepInput::accept(std::optional<std::uint32_t> rank, std::uint64_t offset,
                         std::string_view bytes, bool end) {
  Source& source = sources_[rank];
  if (offset > source.size) {
    return fail(ErrorCode::kConflict, "input is missing from offset " +
                                          std::to_string(source.size) + " to " +
                                          std::to_string(offset));
  }
  const std::uint64_t known = source.size - offset;
  if (known < bytes.size()) {
    bytes.remove_prefix(static_cast<std::size_t>(known));
    if (!source.file) {
      // Without a name: nothing to clean up.
      source.file = Descriptor(::open(directory_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
      if (!source.file) return fail_errno(errno, "keeping the input of a step");
    }
    while (!bytes.empty()) {
      const ssize_t n =
          ::pwrite(source.file.get(), bytes.data(), bytes.size(), static_cast<off_t>(source.size));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        auto error = fail_errno(errno, "keeping the input of a step");
        error.value().code = ErrorCode::kExhausted;
        return error;
      }
      source.size += static_cast<std::uint64_t>(n);
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  source.ended = source.ended || end;
  for (auto& target : targets_) write_some(target);
  return {};
}

const StepInput::Source* StepInput::source_of(const Target& target) const {
  if (const auto own = sources_.find(target.rank); own != sources_.end()) return &own->second;
  const auto common = sources_.find(std::nullopt);
  return common == sources_.end() ? nullptr : &common->second;
}

int StepInput::fd_to_write(std::size_t index) const {
  const Target& target = targets_[index];
  const Source* source = source_of(target);
  if (target.closed || source == nullptr) return -1;
  return target.position < source->size || source->ended ? target.fd.get() : -1;
}

void StepInput::on_writable(std::size_t index) { write_some(targets_[index]); }

void StepInput::write_some(Target& target) {
  const Source* source = source_of(target);
  if (target.closed || source == nullptr) return;
  std::array<char, 16 * 1024> buffer;
  while (target.position < source->size) {
    const std::size_t length =
        std::min<std::uint64_t>(buffer.size(), source->size - target.position);
    const ssize_t got =
        ::pread(source->file.get(), buffer.data(), length, static_cast<off_t>(target.position));
    if (got <= 0) return;
    const ssize_t n = ::write(target.fd.get(), buffer.data(), static_cast<std::size_t>(got));
    if (n < 0 && errno == EAGAIN) return;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {  // the rank has closed its input
      target.closed = true;
      target.fd.reset();
      return;
    }
    target.position += static_cast<std::uint64_t>(n);
  }
  if (!source->ended) return;
  if (target.ending == Ending::kControlD) {
    const char end_of_file = 4;
    if (::write(target.fd.get(), &end_of_file, 1) < 0 && errno == EAGAIN) return;
  }
  target.closed = true;
  target.fd.reset();
}

}  // namespace tutti::agent
