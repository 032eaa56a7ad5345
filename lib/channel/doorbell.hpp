#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/cpu.hpp"
#include "core/error.hpp"
#include "core/fd.hpp"
#include "kernels/channel_layout.hpp"

namespace offload::channel {

/// How a sleeping requester learns of a response, which depends on the worker at the other end.
/// Used everywhere from the back end to the I/O thread.
enum class Wakeup : std::uint8_t {
  none,      ///< no worker is attached: no responses arrive
  doorbell,  ///< the worker rings the requester's doorbell
  polling,   ///< the worker cannot ring (a GPU): the requester polls at intervals
  engine,    ///< a connection delivers responses, in turns of the requester's own engine
};

/// The descriptors of a doorbell: a pipe. O_NONBLOCK belongs to the open file (fcntl(2), F_SETFL),
/// so a process with a descriptor of the same open file can clear it and make calls of the other
/// one block. Therefore each side has its own open files, which an eventfd does not allow: the
/// maker keeps one end, and the process that gets the other end reopens it (ImportedChannel).
struct DoorbellPipe {
  core::Fd waiting;
  core::Fd ringing;

  /// Throws Error.
  static DoorbellPipe make() {
    std::array<int, 2> ends{};
    core::check_errno(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), "pipe of a doorbell");
    DoorbellPipe pipe{core::Fd(ends[0]), core::Fd(ends[1])};
    // A worker of another user also reopens it (--insecure). It has no path for other processes.
    core::check_errno(::fchmod(ends[0], 0666), "pipe of a doorbell");
    return pipe;
  }
};

/// The waiting side of a doorbell: a word in shared memory that means "wake me", and a descriptor
/// that becomes readable to wake it. Watch fd() edge-triggered, and drain() it with each event.
///
/// arm() → look for work → sleep pairs with hand over work → ring(): each side writes its word,
/// fences, and reads the other's, so at least one of them sees the other.
class Waiter {
 public:
  Waiter(kernels::Doorbell& word, int fd) noexcept : word_(&word), fd_(fd) {}

  void arm() noexcept {
    __atomic_store_n(&word_->armed, 1, __ATOMIC_RELAXED);  // ordered by the fence
    core::full_fence();
  }
  void disarm() noexcept { __atomic_store_n(&word_->armed, 0, __ATOMIC_RELAXED); }
  [[nodiscard]] int fd() const noexcept { return fd_; }
  /// Further rings of a peer that rings without end cause the next event.
  void drain() const noexcept {
    std::array<std::byte, 256> rings;
    [[maybe_unused]] const auto count = ::read(fd_, rings.data(), rings.size());
  }

 private:
  kernels::Doorbell* word_;
  int fd_;
};

/// The ringing side of a doorbell.
class Ringer {
 public:
  Ringer(kernels::Doorbell& word, int fd) noexcept : word_(&word), fd_(fd) {}

  /// Wakes the waiter if it asked for it; called after a batch of work was handed over. Takes one
  /// system call for each wake-up, none while the waiter is awake. A waiter that does not drain
  /// gets no more wake-ups.
  void ring() noexcept {
    core::full_fence();
    if (__atomic_load_n(&word_->armed, __ATOMIC_RELAXED) == 0) return;  // ordered by the fence
    if (__atomic_exchange_n(&word_->armed, 0, __ATOMIC_RELAXED) == 0) return;
    const std::byte one{1};
    [[maybe_unused]] const auto written = ::write(fd_, &one, sizeof one);
  }

 private:
  kernels::Doorbell* word_;
  int fd_;
};

}  // namespace offload::channel
