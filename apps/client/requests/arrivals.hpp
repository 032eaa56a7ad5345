#pragma once

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
  static Arrivals constant(double per_second, double first);
  /// Poisson arrivals: the gaps are exponentially distributed and independent.
  static Arrivals poisson(double per_second, std::uint64_t seed);
  /// Each `step`-th of `requests`, from number `first` on. They must outlive it.
  static Arrivals replay(std::span<const ScheduledRequest> requests, std::size_t first,
                         std::size_t step);

  /// When the next request is due, from the start on; Duration::max() if there is none. It cannot
  /// pass that: a run ends long before.
  [[nodiscard]] core::Duration next() const noexcept { return next_; }
  /// The next request's size, as the schedule numbers it.
  [[nodiscard]] std::uint32_t size_class() const noexcept { return size_class_; }
  /// Returns whether it has the requests' sizes: it is a replay.
  [[nodiscard]] bool has_sizes() const noexcept { return kind_ == Kind::replay; }
  void advance();

 private:
  enum class Kind : std::uint8_t { constant, poisson, replay };
  explicit Arrivals(Kind kind) noexcept : kind_(kind) {}
  void take_scheduled() noexcept;

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
