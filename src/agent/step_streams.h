// The attached streams of a step inside its supervisor: pipes (or a terminal) of the ranks into the
// spool, and the client's input to the ranks. Nothing here blocks.
#pragma once

#include <poll.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/process.h"
#include "agent/spool.h"

namespace tutti::agent {

// Reads what ranks write and appends it to the spool in whole lines (an unfinished last line waits
// for its rest, for the end of the stream or for kSpoolRecordMax bytes), or as it comes when
// unbuffered.
class StepOutput {
 public:
  struct Source {
    Descriptor fd;
    std::uint32_t rank = 0;
    bool is_error = false;
    std::string unfinished;
  };
  // Unacknowledged bytes above which ranks have to wait.
  static constexpr std::uint64_t kBacklogMax = 64 << 20;

  void open(SpoolWriter spool, bool unbuffered);
  bool is_open() const { return spool_.is_open(); }
  void add(Descriptor fd, std::uint32_t rank, bool is_error);
  // Text of the supervisor's own, in the stderr of a rank.
  void say(std::uint32_t rank, std::string_view text);

  // While false nothing should be polled: the client does not take what is there, or the disk is
  // full.
  bool wants_read() const;
  bool is_disk_full() const { return disk_full_; }
  void retry_disk() { disk_full_ = false; }
  std::size_t count() const { return sources_.size(); }
  int fd(std::size_t index) const { return sources_[index].fd.get(); }
  // Reads once (at most kSpoolRecordMax bytes).
  void on_readable(std::size_t index);
  // All ranks are gone: takes what the pipes still hold and ends all streams. False when the disk
  // is full: to be called again.
  bool finish();

  void taken(std::uint64_t offset) { spool_.forget_before(offset); }
  std::uint64_t size() const { return spool_.size(); }
  std::uint64_t taken() const { return spool_.taken(); }

 private:
  enum class ReadResult { kSome, kNothing, kEnd };
  ReadResult read_once(Source& source);
  bool store(Source& source, bool at_end);

  SpoolWriter spool_;
  bool unbuffered_ = false;
  bool disk_full_ = false;
  std::vector<Source> sources_;
};

// The client's input, kept in a file until every rank has read it: a slow rank costs disk, not
// memory, and holds up nobody.
class StepInput {
 public:
  enum class Ending { kClose, kControlD };  // how a target learns of the end

  void set_directory(std::string directory) { directory_ = std::move(directory); }
  void add(Descriptor fd, std::uint32_t rank, Ending ending);
  // Bytes from `offset` on of the input for one rank, or for all. What is known already is
  // dropped; bytes after a gap are refused (kConflict), a full disk is kExhausted.
  Status accept(std::optional<std::uint32_t> rank, std::uint64_t offset, std::string_view bytes,
                bool end);
  std::size_t count() const { return targets_.size(); }
  // -1 when there is nothing to write to it now.
  int fd_to_write(std::size_t index) const;
  void on_writable(std::size_t index);
  void close_all() { targets_.clear(); }

 private:
  struct Source {
    Descriptor file;
    std::uint64_t size = 0;
    bool ended = false;
  };
  struct Target {
    Descriptor fd;
    std::uint32_t rank = 0;
    Ending ending = Ending::kClose;
    std::uint64_t position = 0;
    bool closed = false;
  };
  const Source* source_of(const Target& target) const;
  void write_some(Target& target);

  std::string directory_;
  std::map<std::optional<std::uint32_t>, Source> sources_;
  std::vector<Target> targets_;
};

}  // namespace tutti::agent
