#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/counter.hpp"

namespace offload::telemetry {

/// The times of one request, in the ticks of core::Clock (ns).
struct RequestSample {
  std::uint64_t posted;   ///< taken from its client and written into the channel
  std::uint64_t seen;     ///< its answer was there
  std::uint64_t written;  ///< the answer was given to the socket
  std::uint64_t length;   ///< of the request, bytes
};

/// The last requests whose times were taken. One thread adds and waits for nobody; any may read.
class SampleRing {
 public:
  static constexpr std::size_t kMost = 512;

  void add(const RequestSample& sample) noexcept {
    const std::uint64_t number = count_.load(std::memory_order_relaxed);
    Slot& slot = slots_[number % kMost];
    // Odd while the slot changes. The fence orders it before the fields; pairs with latest()'s.
    slot.version.store(2 * number + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    slot.posted.set(sample.posted);
    slot.seen.set(sample.seen);
    slot.written.set(sample.written);
    slot.length.set(sample.length);
    slot.version.store(2 * number + 2, std::memory_order_release);  // pairs with latest()
    count_.store(number + 1, std::memory_order_release);            // pairs with latest()
  }

  /// Those that did not change while they were read, the oldest first.
  [[nodiscard]] std::vector<RequestSample> latest() const {
    std::vector<RequestSample> samples;
    const std::uint64_t end = count_.load(std::memory_order_acquire);  // pairs with add()
    for (std::uint64_t number = end > kMost ? end - kMost : 0; number < end; ++number) {
      const Slot& slot = slots_[number % kMost];
      if (slot.version.load(std::memory_order_acquire) != 2 * number + 2) continue;
      const RequestSample sample{slot.posted.value(), slot.seen.value(), slot.written.value(),
                                 slot.length.value()};
      std::atomic_thread_fence(std::memory_order_acquire);  // pairs with the fence in add()
      if (slot.version.load(std::memory_order_relaxed) == 2 * number + 2) samples.push_back(sample);
    }
    return samples;
  }

 private:
  struct Slot {
    std::atomic<std::uint64_t> version{0};
    core::Counter posted;
    core::Counter seen;
    core::Counter written;
    core::Counter length;
  };

  std::array<Slot, kMost> slots_;
  std::atomic<std::uint64_t> count_{0};
};

}  // namespace offload::telemetry
