#include "tests/fuzz/state/virtual_time.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>

namespace offload::fuzz {
namespace {

constexpr core::Duration kBegin = std::chrono::hours(1);

VirtualTime* running = nullptr;
core::Duration virtual_now{};
core::Duration in_sleep{};

void put(core::Duration time, timespec& to) {
  to.tv_sec = time.count() / 1'000'000'000;
  to.tv_nsec = time.count() % 1'000'000'000;
}

}  // namespace

VirtualTime::VirtualTime() {
  virtual_now = kBegin;
  in_sleep = {};
  running = this;
}

VirtualTime::~VirtualTime() {
  running = nullptr;
}

void VirtualTime::advance(core::Duration by) noexcept {
  virtual_now += by;
}

void VirtualTime::advance_in_sleep(core::Duration by) noexcept {
  in_sleep += by;
}

}  // namespace offload::fuzz

using namespace offload::fuzz;

extern "C" {

/// Options of AddressSanitizer: short stacks of allocations and a short quarantine halve the time
/// of a run, which allocates a whole server.
const char* __asan_default_options() {  // NOLINT: the sanitizer's name
  return "malloc_context_size=8:quarantine_size_mb=8";
}

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  if (clock != CLOCK_MONOTONIC || running == nullptr) {
    return static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  }
  put(virtual_now, *time);
  return 0;
}

int epoll_pwait2(int epoll, epoll_event* events, int count, const timespec* timeout,
                 const sigset_t*) {
  static constexpr timespec kNone{};
  virtual_now += in_sleep;
  in_sleep = {};
  const timespec* const limit = running == nullptr ? timeout : &kNone;
  return static_cast<int>(
      ::syscall(SYS_epoll_pwait2, epoll, events, count, limit, nullptr, sizeof(sigset_t)));
}

int poll(pollfd* fds, nfds_t count, int timeout) {
  if (running == nullptr) {
    timespec limit{timeout / 1000, timeout % 1000 * 1'000'000L};
    return static_cast<int>(
        ::syscall(SYS_ppoll, fds, count, timeout < 0 ? nullptr : &limit, nullptr, 0));
  }
  while (true) {
    timespec none{};
    const auto ready = static_cast<int>(::syscall(SYS_ppoll, fds, count, &none, nullptr, 0));
    if (ready != 0 || timeout == 0) return ready;
    if (!running->on_wait || !running->on_wait()) break;
  }
  virtual_now += std::chrono::milliseconds(timeout);
  return 0;
}
}
