#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/clock.hpp"

namespace offload::client {

class Flow;

/// The slots of a closed loop that wait between a response and their next request. All wait for the
/// same time, so the first that began is the first that ends. One thread.
class ThinkQueue {
 public:
  /// `slots`: the most that wait at a time.
  ThinkQueue(core::Duration time, std::size_t slots)
      : time_(time), ring_(std::bit_ceil(slots)), mask_(ring_.size() - 1) {}

  [[nodiscard]] bool is_empty() const noexcept { return begun_ == ended_; }
  /// Returns when the next one ends. Precondition: !is_empty().
  [[nodiscard]] core::TimePoint next_end() const noexcept { return ring_[ended_ & mask_].end; }
  /// Notes that a slot of `flow` begins to wait.
  void begin(Flow& flow, core::TimePoint now) noexcept {
    ring_[begun_++ & mask_] = {now + time_, &flow};
  }
  /// Ends the next one. Returns its flow. Precondition: !is_empty().
  Flow& end_next() noexcept { return *ring_[ended_++ & mask_].flow; }
  /// Returns whether another one of `flow` ends until `now`.
  [[nodiscard]] bool ends_again(const Flow& flow, core::TimePoint now) const noexcept {
    return !is_empty() && next_end() <= now && ring_[ended_ & mask_].flow == &flow;
  }

 private:
  struct Slot {
    core::TimePoint end;
    Flow* flow = nullptr;
  };
  core::Duration time_;
  std::vector<Slot> ring_;
  std::size_t mask_;
  std::uint64_t begun_ = 0;
  std::uint64_t ended_ = 0;
};

}  // namespace offload::client
