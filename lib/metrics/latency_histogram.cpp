#include "metrics/latency_histogram.hpp"

#include <algorithm>
#include <cmath>

namespace offload::metrics {
namespace {

std::chrono::nanoseconds nanoseconds(std::uint64_t value) noexcept {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(value));
}

}  // namespace

void LatencyHistogram::merge(const LatencyHistogram& other) noexcept {
  for (std::size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

std::chrono::nanoseconds LatencyHistogram::min() const noexcept {
  return nanoseconds(count_ == 0 ? 0 : min_);
}

std::chrono::nanoseconds LatencyHistogram::max() const noexcept {
  return nanoseconds(max_);
}

std::chrono::nanoseconds LatencyHistogram::percentile(double quantile) const noexcept {
  if (count_ == 0) return {};
  if (quantile <= 0) return min();
  // Nearest-rank method: the smallest value that at least `rank` of the recorded ones do not
  // exceed.
  const double rank = std::ceil(quantile * static_cast<double>(count_));
  if (rank >= static_cast<double>(count_)) return max();
  const auto wanted = static_cast<std::uint64_t>(rank);
  std::uint64_t seen = 0;
  std::size_t bucket = 0;
  while ((seen += buckets_[bucket]) < wanted) ++bucket;
  return nanoseconds(std::clamp(middle_of(bucket), min_, max_));
}

std::array<std::pair<const char*, double>, 6> LatencyHistogram::summary() const noexcept {
  const auto us = [](std::chrono::nanoseconds time) {
    return static_cast<double>(time.count()) / 1e3;
  };
  return {{{"min", us(min())},
           {"p50", us(percentile(0.5))},
           {"p90", us(percentile(0.9))},
           {"p99", us(percentile(0.99))},
           {"p99_9", us(percentile(0.999))},
           {"max", us(max())}}};
}

}  // namespace offload::metrics
