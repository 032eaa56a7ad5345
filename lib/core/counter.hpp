#pragma once

#include <atomic>
#include <cstdint>

namespace offload::core {

/// A number of one thread that others may read while it changes: a count, or a gauge. Relaxed on
/// both sides: it orders nothing, and a reader sees a value that it had. One writer, which so needs
/// no locked instruction.
class Counter {
 public:
  void add(std::uint64_t count = 1) noexcept { set(value() + count); }
  void set(std::uint64_t value) noexcept { value_.store(value, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t value() const noexcept {
    return value_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> value_{0};
};

}  // namespace offload::core
