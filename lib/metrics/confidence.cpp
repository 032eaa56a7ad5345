#include "metrics/confidence.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "core/error.hpp"

namespace offload::metrics {
namespace {

constexpr double kTail = 0.025;  // of each side of the interval
constexpr std::size_t kFewest = 3;
constexpr std::size_t kFewestForRanks = 6;  // between 5, the median lies with 93.75 %
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double median_of(std::span<const double> sorted) {
  const std::size_t half = sorted.size() / 2;
  if (sorted.size() % 2 != 0) return sorted[half];
  return sorted[half - 1] + (sorted[half] - sorted[half - 1]) / 2;
}

/// The largest rank so that fewer than that many of `count` values lie below their median with a
/// probability of at most kTail: the binomial distribution of 1/2.
std::size_t order_rank(std::size_t count) {
  const auto n = static_cast<double>(count);
  double log_term = -n * std::log(2.0);
  double sum = std::exp(log_term);
  std::size_t rank = 0;
  while (sum <= kTail) {
    ++rank;
    log_term += std::log((n - static_cast<double>(rank) + 1) / static_cast<double>(rank));
    sum += std::exp(log_term);
  }
  return rank;
}

/// The median of 3 to 5 sorted values, and Student's t interval around their mean.
Estimate student(std::span<const double> values) {
  // The quantile 0.975 for 2 to 4 degrees of freedom.
  constexpr std::array kQuantiles{4.30265, 3.18245, 2.77645};
  const auto n = static_cast<double>(values.size());
  double mean = 0;
  for (const double value : values) mean += value / n;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double half =
      kQuantiles.at(values.size() - kFewest) * std::sqrt(squares / (n - 1)) / std::sqrt(n);
  return {median_of(values), mean - half, mean + half};
}

std::vector<double> sorted_copy(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

/// Returns whether Student's t is used.
bool is_few(std::size_t count) noexcept {
  return count >= kFewest && count < kFewestForRanks;
}

/// The median of values of any sign and its interval.
Estimate interval_of(std::span<const double> values) {
  if (values.empty()) return {0, -kInfinity, kInfinity};
  const std::vector<double> sorted = sorted_copy(values);
  if (sorted.size() < kFewest) return {median_of(sorted), -kInfinity, kInfinity};
  if (is_few(sorted.size())) return student(sorted);
  const std::size_t rank = order_rank(sorted.size());
  return {median_of(sorted), sorted[rank - 1], sorted[sorted.size() - rank]};
}

std::vector<double> logarithms(std::span<const double> values) {
  std::vector<double> logs;
  logs.reserve(values.size());
  for (const double value : values) logs.push_back(std::log(value));
  return logs;
}

Estimate exponential(const Estimate& logs) {
  return {std::exp(logs.middle), std::exp(logs.low), std::exp(logs.high)};
}

std::vector<double> log_ratios(std::span<const RepeatPair> pairs) {
  std::vector<double> ratios;
  ratios.reserve(pairs.size());
  for (const RepeatPair& pair : pairs) {
    for (const double value : {pair.base, pair.compared}) {
      if (std::isfinite(value) && value > 0) continue;
      throw core::Error(core::ErrorCode::invalid_value,
                        "the values of a ratio must be finite and above 0");
    }
    ratios.push_back(std::log(pair.compared) - std::log(pair.base));
  }
  return ratios;
}

}  // namespace

Estimate estimate_median(std::span<const double> values) {
  const bool positive = std::all_of(values.begin(), values.end(), [](double v) { return v > 0; });
  if (!positive || !is_few(values.size())) return interval_of(values);
  const Estimate estimate = exponential(interval_of(logarithms(values)));
  // Not the logarithm's, which is rounded; it must lie within the interval of equal values, too.
  const double median = median_of(sorted_copy(values));
  return {median, std::min(estimate.low, median), std::max(estimate.high, median)};
}

Estimate estimate_ratio(std::span<const RepeatPair> pairs) {
  return exponential(interval_of(log_ratios(pairs)));
}

}  // namespace offload::metrics
