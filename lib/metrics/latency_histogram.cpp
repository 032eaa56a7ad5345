#include "metrics/latency_histogram.hpp"

#include <cmath>
#include <numeric>

namespace offload::metrics {
namespace {

using Histogram = LatencyHistogram;

constexpr std::uint64_t power_of_ten(unsigned exponent) {
  return exponent == 0 ? 1 : 10 * power_of_ten(exponent - 1);
}
static_assert(std::bit_width(2 * power_of_ten(Histogram::kSignificantDigits) - 1) ==
              Histogram::kStepBits + 1);
static_assert(Histogram::highest_of(Histogram::kBuckets - 1) == INT64_MAX);

std::chrono::nanoseconds nanoseconds(std::uint64_t value) noexcept {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(value));
}

}  // namespace

void LatencyHistogram::merge(const LatencyHistogram& other) noexcept {
  for (std::size_t i = other.begin_bucket(); i < other.end_bucket(); ++i) {
    buckets_[i] += other.buckets_[i];
  }
  count_ += other.count_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

void LatencyHistogram::clear() noexcept {
  for (std::size_t i = begin_bucket(); i < end_bucket(); ++i) buckets_[i] = 0;
  count_ = 0;
  min_ = UINT64_MAX;
  max_ = 0;
}

void LatencyHistogram::add(std::size_t bucket, std::uint64_t count) noexcept {
  if (count == 0) return;
  buckets_[bucket] += count;
  count_ += count;
  min_ = std::min(min_, lowest_of(bucket));
  max_ = std::max(max_, highest_of(bucket));
}

std::uint64_t LatencyHistogram::count_up_to(std::chrono::nanoseconds latency) const noexcept {
  const auto value = static_cast<std::uint64_t>(std::max(latency.count(), {}));
  const std::size_t end = std::min(bucket_of(value) + 1, end_bucket());
  return std::accumulate(buckets_.begin(), buckets_.begin() + static_cast<std::ptrdiff_t>(end),
                         std::uint64_t{0});
}

std::chrono::nanoseconds LatencyHistogram::min() const noexcept {
  return nanoseconds(count_ == 0 ? 0 : min_);
}

std::chrono::nanoseconds LatencyHistogram::max() const noexcept {
  return nanoseconds(max_);
}

std::chrono::duration<double, std::nano> LatencyHistogram::mean() const noexcept {
  if (count_ == 0) return {};
  double sum = 0;
  for (std::size_t i = begin_bucket(); i < end_bucket(); ++i) {
    if (buckets_[i] != 0)
      sum += static_cast<double>(buckets_[i]) * static_cast<double>(middle_of(i));
  }
  const double mean = sum / static_cast<double>(count_);
  return std::chrono::duration<double, std::nano>(
      std::clamp(mean, static_cast<double>(min_), static_cast<double>(max_)));
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
  std::size_t bucket = begin_bucket();
  while ((seen += buckets_[bucket]) < wanted && bucket + 1 < end_bucket()) ++bucket;
  return nanoseconds(std::clamp(middle_of(bucket), min_, max_));
}

std::array<std::pair<const char*, double>, 10> LatencyHistogram::summary() const noexcept {
  const auto us = [](std::chrono::duration<double, std::micro> time) { return time.count(); };
  return {{{"min", us(min())},
           {"mean", us(mean())},
           {"p50", us(percentile(0.5))},
           {"p90", us(percentile(0.9))},
           {"p95", us(percentile(0.95))},
           {"p99", us(percentile(0.99))},
           {"p99_9", us(percentile(0.999))},
           {"p99_99", us(percentile(0.9999))},
           {"p99_999", us(percentile(0.99999))},
           {"max", us(max())}}};
}

}  // namespace offload::metrics
