#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/clock.hpp"

namespace offload::server {

/// The long requests in a channel. A channel answers in order, so a short request waits for all
/// long ones in front of it. While there are short ones, the long ones in the channel are bounded
/// in bytes, as Linux's byte queue limits bound a network card's ring: the rest waits with its
/// clients, and short requests get in between. Without short ones the channel is theirs. One
/// thread.
class LongRequests {
 public:
  /// `capacity`: requests that fit into the channel.
  explicit LongRequests(std::size_t capacity) : ring_(capacity) {}

  /// Returns whether a request of `length` bytes may go into the channel now. `awaited`: the number
  /// of unanswered requests there.
  [[nodiscard]] bool may_post(std::size_t length, std::uint64_t awaited,
                              core::TimePoint now) noexcept {
    if (length <= kLongestShort) return true;
    while (first_ != end_ && ring_[first_ % ring_.size()].number < posted_ - awaited) {
      bytes_ -= ring_[first_++ % ring_.size()].length;
    }
    return bytes_ == 0 || bytes_ + length <= kMostBytes || now - last_short_ >= kMemory;
  }
  /// Records that such a request was posted.
  void note_posted(std::size_t length, core::TimePoint now) noexcept {
    if (length <= kLongestShort) {
      last_short_ = now;
    } else {
      ring_[end_++ % ring_.size()] = {posted_, length};
      bytes_ += length;
    }
    ++posted_;
  }

 private:
  static constexpr std::size_t kLongestShort = 64 * 1024;
  /// Some hundred microseconds of a worker's time, or one request if that is longer.
  static constexpr std::size_t kMostBytes = 1024 * 1024;
  /// For this time after a short request, others are expected.
  static constexpr core::Duration kMemory = std::chrono::milliseconds(100);

  struct Request {
    std::uint64_t number = 0;  ///< among all that were posted
    std::size_t length = 0;
  };

  std::vector<Request> ring_;  ///< those in the channel, from first_ to end_
  std::uint64_t first_ = 0;
  std::uint64_t end_ = 0;
  std::uint64_t posted_ = 0;
  std::size_t bytes_ = 0;
  core::TimePoint last_short_{};
};

}  // namespace offload::server
