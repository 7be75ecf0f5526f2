// The caller's terminal in raw mode, for as long as this object lives.
#pragma once

#include <termios.h>
#include <unistd.h>

namespace tutti::cli {

class RawTerminal {
 public:
  explicit RawTerminal(int fd) : fd_(fd) {
    changed_ = tcgetattr(fd, &saved_) == 0;
    termios raw = saved_;
    cfmakeraw(&raw);
    if (changed_) tcsetattr(fd, TCSANOW, &raw);
  }
  ~RawTerminal() {
    if (changed_) tcsetattr(fd_, TCSADRAIN, &saved_);
  }
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

 private:
  int fd_;
  termios saved_{};
  bool changed_ = false;
};

}  // namespace tutti::cli
