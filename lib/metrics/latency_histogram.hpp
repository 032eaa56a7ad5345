#pragma once

#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace offload::metrics {

/// A histogram of latencies with log-linear buckets: each power of two is divided into
/// kStepsPerOctave equal steps, so a percentile is off by at most half a step, 0.4 %; minimum and
/// maximum are exact. It has 59 KiB, of which a run uses a few cache lines. One thread: each thread
/// has its own, and they are merge()d after the threads have ended.
class LatencyHistogram {
 public:
  /// Counts one latency; a negative one counts as 0, but a monotonic clock yields none.
  void record(std::chrono::nanoseconds latency) noexcept {
    const auto value = latency.count() > 0 ? static_cast<std::uint64_t>(latency.count()) : 0;
    ++buckets_[bucket_of(value)];
    ++count_;
    if (value < min_) min_ = value;
    if (value > max_) max_ = value;
  }

  /// Adds the counts of `other`.
  void merge(const LatencyHistogram& other) noexcept;

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }

  /// The smallest and the largest latency; 0 if none was recorded.
  [[nodiscard]] std::chrono::nanoseconds min() const noexcept;
  [[nodiscard]] std::chrono::nanoseconds max() const noexcept;

  /// The latency that a share `quantile` of all latencies (0 to 1, 0.99 for p99) does not exceed:
  /// the middle of its bucket, clamped to min() and max(). 0 if none was recorded.
  [[nodiscard]] std::chrono::nanoseconds percentile(double quantile) const noexcept;

  /// What a report shows, in microseconds under the names of its JSON: min, p50, p90, p99, p99_9
  /// and max.
  [[nodiscard]] std::array<std::pair<const char*, double>, 6> summary() const noexcept;

 private:
  static constexpr unsigned kStepBits = 7;
  static constexpr std::uint64_t kStepsPerOctave = 1U << kStepBits;
  /// Every 64-bit value has a bucket, so record() needs no check.
  static constexpr std::size_t kBuckets = (64 - kStepBits + 1) * kStepsPerOctave;

  /// The number of low bits of `value` that its bucket ignores; 0 below 2 * kStepsPerOctave.
  static constexpr unsigned shift_of(std::uint64_t value) noexcept {
    const auto width = static_cast<unsigned>(std::bit_width(value));
    return width > kStepBits + 1 ? width - (kStepBits + 1) : 0;
  }
  static constexpr std::size_t bucket_of(std::uint64_t value) noexcept {
    const unsigned shift = shift_of(value);
    return shift * kStepsPerOctave + (value >> shift);
  }
  static constexpr std::uint64_t middle_of(std::size_t bucket) noexcept {
    if (bucket < 2 * kStepsPerOctave) return bucket;
    const std::size_t shift = bucket / kStepsPerOctave - 1;
    const std::uint64_t lowest = (bucket - shift * kStepsPerOctave) << shift;
    return lowest + (std::uint64_t{1} << shift) / 2;
  }

  std::array<std::uint64_t, kBuckets> buckets_{};
  std::uint64_t count_ = 0;
  std::uint64_t min_ = UINT64_MAX;
  std::uint64_t max_ = 0;
};

}  // namespace offload::metrics
