#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace offload::metrics {

/// Hands what a load thread records over to another thread, interval by interval: without a lock,
/// an allocation or a loss. The writer records into one of two Intervals, and offers it when its
/// time is over; the reader takes it and gives it back. While the reader has not done so, the
/// writer goes on in the same Interval, which then is longer.
///
/// `Interval`: default-constructible, with clear(), which brings it back to that state. It is on
/// the heap. When it began and ended is the writer's to note in it.
template <class Interval>
class IntervalRecorder {
 public:
  /// @name The writer: one thread @{ Returns the interval to record in. The reference is valid
  /// until the next offer() returns true.
  [[nodiscard]] Interval& active() noexcept { return *active_; }

  /// Offers the active interval to the reader; active() is an empty one then. False, and nothing
  /// has changed, if the reader has not taken the interval before it.
  bool offer() noexcept {
    // Pairs with the release in take(): the reader has cleared the other interval.
    if (state_.load(std::memory_order_acquire) == State::offered) return false;
    std::swap(active_, other_);
    // Pairs with the acquire in take(): the reader sees what was recorded, and the swap.
    state_.store(State::offered, std::memory_order_release);
    return true;
  }
  /// @}

  /// @name The reader: one thread
  /// @{
  /// Calls use(Interval&) for an offered interval, clears it and gives it back; false if there is
  /// none. If use() throws, the interval remains offered.
  template <class Use>
  bool take(Use&& use) {
    // Pairs with the release in offer().
    if (state_.load(std::memory_order_acquire) == State::spare) return false;
    use(*other_);
    other_->clear();
    // Pairs with the acquire in offer().
    state_.store(State::spare, std::memory_order_release);
    return true;
  }

  /// Takes an interval that is still offered, and then the active one, even if it is empty.
  /// Precondition: the writer has ended, and that is known to this thread, such as by a join.
  template <class Use>
  void take_rest(Use&& use) {
    take(use);
    use(*active_);
    active_->clear();
  }
  /// @}

 private:
  /// The owner of other_.
  enum class State : std::uint8_t {
    spare,    ///< the writer's, and empty
    offered,  ///< the reader's
  };

  std::unique_ptr<Interval> active_ = std::make_unique<Interval>();  ///< the writer's
  std::unique_ptr<Interval> other_ = std::make_unique<Interval>();
  std::atomic<State> state_{State::spare};
};

}  // namespace offload::metrics
