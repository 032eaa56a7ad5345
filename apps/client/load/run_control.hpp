#pragma once

#include <sys/eventfd.h>

#include <atomic>
#include <cstdint>
#include <latch>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/fd.hpp"

namespace offload::client {

/// The signals between the main thread and the load threads. Any thread may call any function.
class RunControl {
 public:
  RunControl() : stop_fd_(make_event()), done_fd_(make_event()) {}

  /// Blocks a load thread until start(), and returns the common start of all. The main thread calls
  /// start() in every case, also when it fails to create a thread, so the wait is bounded.
  core::TimePoint wait_for_start() const {
    start_.wait();  // makes start_time_ visible
    return start_time_;
  }
  void start(core::TimePoint now) {
    start_time_ = now;
    start_.count_down();
  }

  /// Asks the load threads to send no more requests and to end soon.
  void stop() noexcept {
    // Relaxed, pairs with stopping(): it publishes nothing else, and stop_fd_ wakes the threads.
    stopping_.store(true, std::memory_order_relaxed);
    ::eventfd_write(stop_fd_.get(), 1);
  }
  [[nodiscard]] bool stopping() const noexcept { return stopping_.load(std::memory_order_relaxed); }
  /// Readable for good after stop(), to end a wait in poll or epoll.
  [[nodiscard]] int stop_fd() const noexcept { return stop_fd_.get(); }

  /// Reports that a load thread has ended.
  void thread_done() noexcept { ::eventfd_write(done_fd_.get(), 1); }
  /// Readable when threads have ended since the last call of threads_done(), which returns how
  /// many.
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
  core::TimePoint start_time_{};  ///< written before start_ counts down
  std::atomic<bool> stopping_{false};
  core::Fd stop_fd_;
  core::Fd done_fd_;
};

}  // namespace offload::client
