// Loop: one thread's event loop: readiness of descriptors, a tick, work posted by other threads.
// The only file that sees Asio is loop.cpp.
#pragma once

#include <functional>
#include <memory>

#include "base/time.h"

namespace tutti::wire::detail {

class Loop {
 public:
  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Runs in the calling thread until finish() was called, every Watch is closed and all posted
  // work is done.
  void run();
  // Any thread: `work` runs in the loop's thread, in the order posted. False (and nothing happens)
  // after run() has ended.
  bool post(std::function<void()> work);
  // On the loop's thread: lets run() end.
  void finish();
  bool is_loop_thread() const;
  // Calls `work` every `interval` until finish(). Call before run().
  void every(Duration interval, std::function<void()> work);

 private:
  friend class Watch;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Readiness of one descriptor, which it owns; closed at once if the kernel can't watch it. Only on
// the loop's thread (or before it runs); the Loop must outlive it.
class Watch {
 public:
  Watch(Loop& loop, int descriptor);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  int descriptor() const;  // -1 once closed
  // Calls `work` once when there is something to read (or an end, or an error). Not after close().
  void when_readable(std::function<void()> work);
  void when_writable(std::function<void()> work);
  void close();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tutti::wire::detail
