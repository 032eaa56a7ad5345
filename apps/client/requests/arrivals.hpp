#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>

#include "apps/client/requests/schedule.hpp"
#include "core/clock.hpp"

namespace offload::client {

enum class ArrivalKind : std::uint8_t { constant, poisson };

/// A rate of requests a second, and for how long it lasts.
struct RateStep {
  double rate = 0;
  core::Duration length{};
};

/// When the requests of a load thread are due, one after the other. A copy goes on from the same
/// request with the same times. One thread.
class Arrivals {
 public:
  /// A request each 1/`per_second` seconds, the first at `first`, in seconds.
  static Arrivals constant(double per_second, double first) {
    Arrivals arrivals(Kind::constant);
    arrivals.gap_ = 1 / per_second;
    arrivals.first_ = first;
    arrivals.set_next(first);
    return arrivals;
  }
  /// Poisson arrivals: the gaps are exponentially distributed and independent.
  static Arrivals poisson(double per_second, std::uint64_t seed) {
    Arrivals arrivals(Kind::poisson);
    arrivals.random_.seed(seed);
    arrivals.gaps_ = std::exponential_distribution<double>(per_second);
    arrivals.advance();
    return arrivals;
  }
  /// `burst` requests at once, each `burst`/`per_second` seconds, the first at `first`. The
  /// requests of all `threads` are counted in turn: these are those of thread number `number`.
  static Arrivals bursts(double per_second, double first, std::uint64_t burst, std::uint64_t number,
                         std::uint64_t threads) {
    Arrivals arrivals(Kind::burst);
    arrivals.gap_ = static_cast<double>(burst) / per_second;
    arrivals.first_ = first;
    arrivals.burst_ = burst;
    arrivals.count_ = number;
    arrivals.threads_ = threads;
    arrivals.set_next_burst();
    return arrivals;
  }
  /// `arrivals`, which are of one request a second in all, in the rhythm of `steps` of the rate,
  /// which must outlive it: `share` of each. The last step goes on. The first one also lasts for
  /// `warmup` before.
  static Arrivals in_steps(Arrivals arrivals, std::span<const RateStep> steps, double share,
                           core::Duration warmup) {
    arrivals.steps_ = steps;
    arrivals.share_ = share;
    arrivals.step_length_ = core::to_seconds(steps.front().length + warmup);
    arrivals.set_next(arrivals.unit_);
    return arrivals;
  }
  /// Each `step`-th of `requests`, from number `first` on. They must outlive it.
  static Arrivals replay(std::span<const ScheduledRequest> requests, std::size_t first,
                         std::size_t step) {
    Arrivals arrivals(Kind::replay);
    arrivals.requests_ = requests.subspan(std::min(first, requests.size()));
    arrivals.step_ = step;
    arrivals.take_scheduled();
    return arrivals;
  }

  /// When the next request is due, from the start on; Duration::max() if there is none. It cannot
  /// pass that: a run ends long before.
  [[nodiscard]] core::Duration next() const noexcept { return next_; }
  /// The next request's size, as the schedule numbers it.
  [[nodiscard]] std::uint32_t size_class() const noexcept { return size_class_; }
  /// Returns whether it has the requests' sizes: it is a replay.
  [[nodiscard]] bool has_sizes() const noexcept { return kind_ == Kind::replay; }
  void advance() {
    switch (kind_) {
      case Kind::constant: set_next(first_ + gap_ * static_cast<double>(++count_)); break;
      case Kind::burst:
        count_ += threads_;
        set_next_burst();
        break;
      case Kind::poisson:
        time_ += gaps_(random_);
        set_next(time_);
        break;
      case Kind::replay:
        requests_ = requests_.subspan(std::min(step_, requests_.size()));
        take_scheduled();
        break;
    }
  }

 private:
  enum class Kind : std::uint8_t { constant, burst, poisson, replay };
  explicit Arrivals(Kind kind) noexcept : kind_(kind) {}
  void set_next_burst() noexcept {
    const std::uint64_t burst = count_ / burst_;
    set_next(first_ + gap_ * static_cast<double>(burst));
  }
  void set_next(double seconds) noexcept {
    unit_ = seconds;
    next_ = core::seconds(steps_.empty() ? seconds : time_of(seconds));
  }
  /// The time at which the sum of the steps is `count` requests, which must not fall.
  double time_of(double count) noexcept {
    while (steps_.size() > 1 &&
           count >= step_count_ + steps_.front().rate * share_ * step_length_) {
      step_count_ += steps_.front().rate * share_ * step_length_;
      step_begin_ += step_length_;
      steps_ = steps_.subspan(1);
      step_length_ = core::to_seconds(steps_.front().length);
    }
    return step_begin_ + (count - step_count_) / (steps_.front().rate * share_);
  }
  void take_scheduled() noexcept {
    next_ = requests_.empty() ? core::Duration::max() : requests_.front().offset;
    size_class_ = requests_.empty() ? 0 : requests_.front().size_class;
  }

  Kind kind_;
  core::Duration next_{};
  std::uint32_t size_class_ = 0;
  // In seconds, as whole nanoseconds would add up their rounding.
  double first_ = 0;
  double gap_ = 0;
  std::uint64_t count_ = 0;
  double time_ = 0;
  double unit_ = 0;  ///< the next one's time without steps
  std::uint64_t burst_ = 1;
  std::uint64_t threads_ = 1;
  std::span<const RateStep> steps_;  ///< from the current one on
  double share_ = 1;
  double step_length_ = 0;  ///< of the current one
  double step_begin_ = 0;
  double step_count_ = 0;  ///< requests before it
  std::mt19937_64 random_;
  std::exponential_distribution<double> gaps_;
  std::span<const ScheduledRequest> requests_;
  std::size_t step_ = 1;
};

}  // namespace offload::client
