// The right to write to a state directory: at most one process has it at a time. The kernel
// gives it back when the process ends, however it ends.
#pragma once

#include <string>

#include "base/error.h"

namespace tutti::journal {

class DirectoryLock {
 public:
  // Locks DIRECTORY/journal.lock (created 0600) without waiting. Errors: kConflict, naming the
  // process that holds it; kDenied, kNotFound, kExhausted.
  static Result<DirectoryLock> take(const std::string& directory);

  DirectoryLock(DirectoryLock&& other) noexcept;
  DirectoryLock& operator=(DirectoryLock&& other) noexcept;
  ~DirectoryLock();

 private:
  explicit DirectoryLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

}  // namespace tutti::journal
