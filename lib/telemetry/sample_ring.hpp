#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/counter.hpp"

namespace offload::telemetry {

/// The last samples of a value, each a struct of 64-bit numbers. One thread adds without waiting;
/// any thread may read.
template <class Sample, std::size_t Most = 512>
class SampleRing {
 public:
  static constexpr std::size_t kMost = Most;

  void add(const Sample& sample) noexcept {
    const std::uint64_t number = count_.load(std::memory_order_relaxed);
    Slot& slot = slots_[number % kMost];
    const auto fields = std::bit_cast<Fields>(sample);
    // Odd while the slot changes. The fence orders it before the fields; pairs with latest()'s.
    slot.version.store(2 * number + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    for (std::size_t i = 0; i < fields.size(); ++i) slot.fields[i].set(fields[i]);
    slot.version.store(2 * number + 2, std::memory_order_release);  // pairs with latest()
    count_.store(number + 1, std::memory_order_release);            // pairs with latest()
  }

  /// Those that did not change while they were read, the oldest first.
  [[nodiscard]] std::vector<Sample> latest() const {
    std::vector<Sample> samples;
    const std::uint64_t end = count_.load(std::memory_order_acquire);  // pairs with add()
    for (std::uint64_t number = end > kMost ? end - kMost : 0; number < end; ++number) {
      const Slot& slot = slots_[number % kMost];
      if (slot.version.load(std::memory_order_acquire) != 2 * number + 2) continue;
      Fields fields;
      for (std::size_t i = 0; i < fields.size(); ++i) fields[i] = slot.fields[i].value();
      std::atomic_thread_fence(std::memory_order_acquire);  // pairs with the fence in add()
      if (slot.version.load(std::memory_order_relaxed) == 2 * number + 2) {
        samples.push_back(std::bit_cast<Sample>(fields));
      }
    }
    return samples;
  }

 private:
  static constexpr std::size_t kFields = sizeof(Sample) / sizeof(std::uint64_t);
  using Fields = std::array<std::uint64_t, kFields>;

  struct Slot {
    std::atomic<std::uint64_t> version{0};
    std::array<core::Counter, kFields> fields;
  };

  std::array<Slot, kMost> slots_;
  std::atomic<std::uint64_t> count_{0};
};

}  // namespace offload::telemetry
