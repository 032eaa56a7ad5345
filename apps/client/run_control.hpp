#pragma once

#include <sys/eventfd.h>

#include <atomic>
#include <cstdint>
#include <latch>

#include "core/error.hpp"
#include "core/fd.hpp"

namespace offload::client {

/// What the main thread and the load threads tell each other. Any thread may call anything.
class RunControl {
 public:
  RunControl() : stop_fd_(make_event()), done_fd_(make_event()) {}

  /// The load threads wait here until the main thread lets all go at once.
  void wait_for_start() const { start_.wait(); }
  void start() { start_.count_down(); }

  /// Asks the load threads to send no more and to leave soon.
  void stop() noexcept {
    stopping_.store(true, std::memory_order_relaxed);  // stop_fd_ is what wakes, in any order
    ::eventfd_write(stop_fd_.get(), 1);
  }
  [[nodiscard]] bool stopping() const noexcept { return stopping_.load(std::memory_order_relaxed); }
  /// Readable for good after stop(): ends a wait in poll().
  [[nodiscard]] int stop_fd() const noexcept { return stop_fd_.get(); }

  /// A load thread is through.
  void thread_done() noexcept { ::eventfd_write(done_fd_.get(), 1); }
  /// Readable when a thread is through; threads_done() then says how many are since the last call.
  [[nodiscard]] int done_fd() const noexcept { return done_fd_.get(); }
  std::uint64_t threads_done() noexcept {
    eventfd_t count = 0;
    return ::eventfd_read(done_fd_.get(), &count) == 0 ? count : 0;
  }

 private:
  static core::Fd make_event() {
    return core::Fd(core::check_errno(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd"));
  }

  std::latch start_{1};
  std::atomic<bool> stopping_{false};
  core::Fd stop_fd_;
  core::Fd done_fd_;
};

}  // namespace offload::client
