#pragma once

#include <cstddef>
#include <vector>

#include "metrics/confidence.hpp"

namespace offload::metrics {

/// The median of values that arrive one after the other, with an interval that may be looked at
/// after each value: the probability that it ever excludes the true median, at any of these looks,
/// is at most `error`. So a measurement may stop as soon as the interval is good enough, which the
/// intervals of confidence.hpp do not allow.
///
/// The interval lies between two of the values. Their ranks are those at which a bet against "half
/// of the values are below the median" has multiplied its stake by 1 / `error` (a mixture of
/// binomial likelihood ratios; Ville's inequality). Each value must be as likely above the median
/// as below it, whatever the earlier ones were. Nothing else is assumed about their distribution:
/// it may have any tails and may change from one value to the next.
///
/// Howard, Ramdas: Sequential estimation of quantiles with applications to A/B testing and
/// best-arm identification. Bernoulli 28 (2022).
class SequentialMedian {
 public:
  /// `error`: above 0 and below 1.
  explicit SequentialMedian(double error) noexcept;

  void add(double value);

  [[nodiscard]] std::size_t count() const noexcept { return sorted_.size(); }
  /// Returns the median and its interval; infinite bounds as long as there are too few values.
  [[nodiscard]] Estimate estimate() const;

 private:
  /// Returns the logarithm of the bet's worth if `below` of all values lie below the median.
  [[nodiscard]] double log_worth(std::size_t below) const noexcept;

  double log_limit_;
  std::vector<double> sorted_;
  std::size_t excluded_ = 0;  ///< values at each end that the interval excludes
};

}  // namespace offload::metrics
