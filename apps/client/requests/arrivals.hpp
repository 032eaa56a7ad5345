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

/// When the requests of a load thread are due, one after the other. A copy goes on from the same
/// request with the same times. One thread.
class Arrivals {
 public:
  /// A request each 1/`per_second` seconds, the first at `first`, in seconds.
  static Arrivals constant(double per_second, double first) {
    Arrivals arrivals(Kind::constant);
    arrivals.gap_ = 1 / per_second;
    arrivals.first_ = first;
    arrivals.next_ = core::seconds(first);
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
      case Kind::constant:
        next_ = core::seconds(first_ + gap_ * static_cast<double>(++count_));
        break;
      case Kind::poisson:
        time_ += gaps_(random_);
        next_ = core::seconds(time_);
        break;
      case Kind::replay:
        requests_ = requests_.subspan(std::min(step_, requests_.size()));
        take_scheduled();
        break;
    }
  }

 private:
  enum class Kind : std::uint8_t { constant, poisson, replay };
  explicit Arrivals(Kind kind) noexcept : kind_(kind) {}
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
  std::mt19937_64 random_;
  std::exponential_distribution<double> gaps_;
  std::span<const ScheduledRequest> requests_;
  std::size_t step_ = 1;
};

}  // namespace offload::client
