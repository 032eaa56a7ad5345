#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <mutex>

#include "core/clock.hpp"
#include "net/peer_address.hpp"

namespace offload::server {

/// The sources (net::Source) whose new connections are refused for a while, because a
/// request from there crashed workers. Any thread. Nothing allocates.
class WaitingAddresses {
 public:
  /// Such a request costs three workers, which are back after one or two seconds. So a client that
  /// repeats it leaves the others more than 90 % of the time.
  static constexpr core::Duration kTime = core::seconds(30);
  /// More than workers can be lost to in kTime, if each takes a second to start; then the oldest
  /// entry is replaced.
  static constexpr std::size_t kMost = 64;

  /// From `now` on new connections from there are refused for kTime.
  void add(const net::PeerAddress& address, core::TimePoint now) {
    const std::lock_guard lock(mutex_);
    entries_[next_++ % kMost] = {address.source(), now + kTime};
  }

  [[nodiscard]] bool contains(const net::PeerAddress& address, core::TimePoint now) const {
    const net::Source source = address.source();
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(
        entries_, [&](const Entry& entry) { return now < entry.until && entry.source == source; });
  }

 private:
  struct Entry {
    net::Source source{};
    core::TimePoint until = core::TimePoint::min();
  };

  mutable std::mutex mutex_;
  std::array<Entry, kMost> entries_;  ///< under the mutex, as next_
  std::size_t next_ = 0;
};

}  // namespace offload::server
