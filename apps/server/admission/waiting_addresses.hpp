#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

#include "core/clock.hpp"
#include "core/cpu.hpp"
#include "net/peer_address.hpp"

namespace offload::server {

/// The sources (net::Source) that wait, because a request from there crashed workers: new
/// connections are refused, and open ones are paused. Any thread. Nothing allocates.
class WaitingAddresses {
 public:
  /// Such a request costs three workers, which are back after one or two seconds. So a client that
  /// repeats it leaves the others more than 90 % of the time.
  static constexpr core::Duration kTime = core::seconds(30);
  /// More than workers can be lost to in kTime, if each takes a second to start; then the oldest
  /// entry is replaced.
  static constexpr std::size_t kMost = 64;

  /// From `now` on it waits for kTime.
  void add(const net::PeerAddress& address, core::TimePoint now) {
    const std::lock_guard lock(mutex_);
    entries_[next_ % kMost] = {address.source(), now + kTime};
    // Release: pairs with changes().
    changes_.store(++next_, std::memory_order_release);
  }

  /// Until when it waits; nothing if it does not wait at `now`.
  [[nodiscard]] std::optional<core::TimePoint> until(const net::PeerAddress& address,
                                                     core::TimePoint now) const {
    const net::Source source = address.source();
    core::TimePoint latest = now;
    const std::lock_guard lock(mutex_);
    for (const Entry& entry : entries_) {
      if (latest < entry.until && entry.source == source) latest = entry.until;
    }
    return latest == now ? std::nullopt : std::optional(latest);
  }
  [[nodiscard]] bool contains(const net::PeerAddress& address, core::TimePoint now) const {
    return until(address, now).has_value();
  }
  /// Returns the number of additions so far, which until() then sees.
  [[nodiscard]] std::uint64_t changes() const noexcept {
    return changes_.load(std::memory_order_acquire);  // pairs with add()
  }

 private:
  struct Entry {
    net::Source source{};
    core::TimePoint until = core::TimePoint::min();
  };

  mutable std::mutex mutex_;
  std::array<Entry, kMost> entries_;  ///< under the mutex, as next_
  std::uint64_t next_ = 0;
  /// next_ again, which each I/O thread reads in each turn: apart from what changes more often.
  alignas(core::kCacheLinePair) std::atomic<std::uint64_t> changes_{0};
};

}  // namespace offload::server
