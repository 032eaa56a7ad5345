#pragma once

#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <limits>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/fd.hpp"

namespace offload::clients {

/// An epoll descriptor that is readable when the client has work to do: one descriptor has events,
/// or a time has come. So a program's loop needs to know only this one. One thread.
class Watch {
 public:
  /// Throws core::Error.
  Watch() {
    core::check_errno(epoll_.get(), "epoll_create1");
    core::check_errno(timer_.get(), "timerfd_create");
    control(EPOLL_CTL_ADD, timer_.get(), EPOLLIN);
  }
  Watch& operator=(Watch&&) = delete;

  [[nodiscard]] int fd() const noexcept { return epoll_.get(); }

  /// Watches `fd` for `events` instead of the one before. To be called before that one is closed,
  /// as a forked process may have a copy that keeps it in the set; -1: none. Throws core::Error.
  void watch(int fd, std::uint32_t events = 0) {
    if (fd == watched_ && events == events_) return;
    if (fd != watched_ && watched_ >= 0)
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, watched_, nullptr);
    const int operation = fd == watched_ ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    watched_ = -1;
    if (fd >= 0) control(operation, fd, events);
    watched_ = fd;
    events_ = events;
  }

  /// The descriptor becomes readable at `time` or before. It is set seldom: an early wake-up costs
  /// less than a system call for each request.
  void wake_at(core::TimePoint time, core::TimePoint now) {
    if (set_ > now && set_ <= time) return;
    using std::chrono::nanoseconds;
    itimerspec when{};  // zero: never
    if (time != core::TimePoint::max()) {
      const auto at = std::max(time.time_since_epoch(), core::Duration(1));
      const auto whole = std::chrono::duration_cast<std::chrono::seconds>(at);
      when.it_value = {whole.count(), nanoseconds(at - whole).count()};
    }
    if (time != set_) {
      core::check_errno(::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr),
                        "timerfd_settime");
    }
    set_ = time;
  }

  /// Sleeps until the descriptor is readable, or `until`.
  void sleep(core::TimePoint until, core::TimePoint now) noexcept {
    int limit = -1;
    if (until != core::TimePoint::max()) {
      constexpr std::int64_t kMost = std::numeric_limits<int>::max();
      const auto rest = std::chrono::ceil<std::chrono::milliseconds>(until - now).count();
      limit = static_cast<int>(std::clamp<std::int64_t>(rest, 0, kMost));
    }
    epoll_event event{};
    (void)::epoll_wait(epoll_.get(), &event, 1, limit);  // after a signal the caller looks again
  }

 private:
  void control(int operation, int fd, std::uint32_t events) const {
    epoll_event event{};
    event.events = events;
    core::check_errno(::epoll_ctl(epoll_.get(), operation, fd, &event), "epoll_ctl");
  }

  core::Fd epoll_{::epoll_create1(EPOLL_CLOEXEC)};
  core::Fd timer_{::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)};
  core::TimePoint set_ = core::TimePoint::max();
  int watched_ = -1;
  std::uint32_t events_ = 0;
};

}  // namespace offload::clients
