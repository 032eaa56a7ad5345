#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/cpu.hpp"

namespace offload::server {

/// Memory of a client in TLS beside its buffers, bytes: an idle connection of OpenSSL 3.0 took 14.2
/// KiB of resident memory, measured over 1,000 of them.
inline constexpr std::size_t kTlsMemory = std::size_t{16} * 1024;

/// The budget of the memory that clients hold, all I/O threads' together. Half of it is
/// distributed, a share for each thread that no other thread can use up; the other half is a pool
/// to borrow from. Any thread.
class ClientMemory {
 public:
  ClientMemory(std::uint64_t budget, std::uint32_t threads) noexcept
      : share_(budget / 2 / threads),
        step_(std::clamp<std::uint64_t>(budget / 32 / threads, 1, kLongestStep)),
        pool_(static_cast<std::int64_t>(budget - share_ * threads)) {}

  /// The share of one thread, in bytes.
  [[nodiscard]] std::uint64_t share() const noexcept { return share_; }
  /// The number of bytes borrowed and given back at a time.
  [[nodiscard]] std::uint64_t step() const noexcept { return step_; }

  [[nodiscard]] bool borrow(std::uint64_t bytes) noexcept {
    const auto count = static_cast<std::int64_t>(bytes);
    // Relaxed: it is a count, and orders nothing.
    if (pool_.fetch_sub(count, std::memory_order_relaxed) >= count) return true;
    give_back(bytes);
    return false;
  }
  void give_back(std::uint64_t bytes) noexcept {
    pool_.fetch_add(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint64_t kLongestStep = 1024 * 1024;

  std::uint64_t share_;
  std::uint64_t step_;
  alignas(core::kCacheLinePair) std::atomic<std::int64_t> pool_;  ///< relaxed
};

/// The memory that the clients of one thread hold and may hold. It accesses the pool only when that
/// changes by more than a step. One thread.
class ThreadMemory {
 public:
  explicit ThreadMemory(ClientMemory& all) noexcept : all_(&all) {}
  ThreadMemory& operator=(ThreadMemory&&) = delete;
  ~ThreadMemory() { all_->give_back(borrowed_); }

  /// Says what they hold now, bytes. False: it is more than they may.
  bool set_held(std::uint64_t bytes) noexcept {
    const std::uint64_t step = all_->step();
    while (bytes > allowed()) {
      if (!all_->borrow(step)) return false;
      borrowed_ += step;
    }
    // Two steps of it stay, so that small changes do not touch the pool.
    while (borrowed_ != 0 && bytes + 3 * step <= allowed()) {
      all_->give_back(step);
      borrowed_ -= step;
    }
    return true;
  }
  [[nodiscard]] std::uint64_t allowed() const noexcept { return all_->share() + borrowed_; }

 private:
  ClientMemory* all_;
  std::uint64_t borrowed_ = 0;
};

}  // namespace offload::server
