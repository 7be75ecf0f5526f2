#include "wire/detail/loop.h"

#include <unistd.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <mutex>
#include <thread>

namespace tutti::wire::detail {

namespace asio = boost::asio;

struct Loop::Impl {
  asio::io_context context{1};
  asio::executor_work_guard<asio::io_context::executor_type> guard{context.get_executor()};
  asio::steady_timer timer{context};
  std::chrono::milliseconds interval{0};
  std::function<void()> tick;
  std::atomic<std::thread::id> thread{};
  std::mutex mutex;  // orders post() with the end of run()
  bool ended = false;
  bool finishing = false;

  void arm() {
    timer.expires_after(interval);
    timer.async_wait([this](const boost::system::error_code& error) {
      if (error || finishing) return;
      tick();
      if (!finishing) arm();
    });
  }
};

Loop::Loop() : impl_(std::make_unique<Impl>()) {}
Loop::~Loop() = default;

void Loop::run() {
  impl_->thread = std::this_thread::get_id();
  while (true) {
    impl_->context.run();
    const std::lock_guard lock(impl_->mutex);
    impl_->context.restart();
    if (impl_->context.poll_one() > 0) continue;  // posted after run() saw an empty queue
    impl_->ended = true;
    return;
  }
}

bool Loop::post(std::function<void()> work) {
  const std::lock_guard lock(impl_->mutex);
  if (impl_->ended) return false;
  asio::post(impl_->context, std::move(work));
  return true;
}

void Loop::finish() {
  impl_->guard.reset();
  impl_->finishing = true;
  impl_->timer.cancel();
}

bool Loop::is_loop_thread() const { return impl_->thread.load() == std::this_thread::get_id(); }

void Loop::every(Duration interval, std::function<void()> work) {
  impl_->interval = std::chrono::milliseconds(interval.ms());
  impl_->tick = std::move(work);
  impl_->arm();
}

struct Watch::Impl {
  asio::posix::stream_descriptor descriptor;
};

Watch::Watch(Loop& loop, int descriptor)
    : impl_(std::make_unique<Impl>(Impl{asio::posix::stream_descriptor(loop.impl_->context)})) {
  boost::system::error_code error;
  impl_->descriptor.assign(descriptor, error);
  if (error) ::close(descriptor);
}

Watch::~Watch() = default;

int Watch::descriptor() const {
  return impl_->descriptor.is_open() ? impl_->descriptor.native_handle() : -1;
}

void Watch::when_readable(std::function<void()> work) {
  impl_->descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                               [work = std::move(work)](const boost::system::error_code& error) {
                                 if (!error) work();
                               });
}

void Watch::when_writable(std::function<void()> work) {
  impl_->descriptor.async_wait(asio::posix::stream_descriptor::wait_write,
                               [work = std::move(work)](const boost::system::error_code& error) {
                                 if (!error) work();
                               });
}

void Watch::close() {
  boost::system::error_code ignored;
  impl_->descriptor.close(ignored);
}

}  // namespace tutti::wire::detail
