#pragma once

#include <cstdint>

#include "core/cpu.hpp"
#include "core/fd.hpp"
#include "kernels/channel_layout.hpp"

namespace offload::channel {

/// How a requester that sleeps learns that a response is there: what the worker at the other end is
/// able to do. The one word for it, from the back end to the I/O thread.
enum class Wakeup : std::uint8_t {
  none,      ///< no worker is attached: no response comes
  doorbell,  ///< the worker rings the requester's doorbell
  polling,   ///< the worker cannot ring (a GPU): the requester looks at intervals
  engine,    ///< responses come by a connection, in turns of the requester's own engine
};

/// The waiting side of a doorbell: a word in shared memory that says "wake me", and an eventfd on
/// which the wake-up comes. Watch fd() edge-triggered: it need not be read.
///
/// arm() → look for work → sleep pairs with hand over work → ring(): each side writes its word,
/// fences, and reads the other's, so at least one of them sees the other.
class Waiter {
 public:
  Waiter(kernels::Doorbell& word, int eventfd) noexcept : word_(&word), eventfd_(eventfd) {}

  void arm() noexcept {
    __atomic_store_n(&word_->armed, 1, __ATOMIC_RELAXED);  // ordered by the fence
    core::full_fence();
  }
  void disarm() noexcept { __atomic_store_n(&word_->armed, 0, __ATOMIC_RELAXED); }
  [[nodiscard]] int fd() const noexcept { return eventfd_; }

 private:
  kernels::Doorbell* word_;
  int eventfd_;
};

/// The other side.
class Ringer {
 public:
  Ringer(kernels::Doorbell& word, int eventfd) noexcept : word_(&word), eventfd_(eventfd) {}

  /// After a batch of work was handed over: wakes the waiter if it asked for it. One system call a
  /// wake-up, none while the waiter is awake.
  void ring() noexcept {
    core::full_fence();
    if (__atomic_load_n(&word_->armed, __ATOMIC_RELAXED) == 0) return;  // ordered by the fence
    if (__atomic_exchange_n(&word_->armed, 0, __ATOMIC_RELAXED) == 0) return;
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(eventfd_, &one, sizeof one);
  }

 private:
  kernels::Doorbell* word_;
  int eventfd_;
};

}  // namespace offload::channel
