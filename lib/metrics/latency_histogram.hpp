#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace offload::metrics {

/// A histogram of latencies in the buckets of HdrHistogram: values below 2^(kStepBits + 1) ns have
/// a bucket each, and each power of two above is divided into 2^kStepBits equal steps. A percentile
/// is off by at most half a step, 0.4 %; minimum and maximum are exact. It has 57 KiB: it belongs
/// on the heap or into an object there, not on the stack of a thread. One thread: each thread has
/// its own, and they are merge()d after the threads have ended.
class LatencyHistogram {
 public:
  /// HdrHistogram's precision, of every histogram of the suite: 2 or 3. With 3 it would have
  /// 432 KiB, and record() would take some 4 ns more where its buckets are not in the first cache.
  static constexpr unsigned kSignificantDigits = 2;

  /// Counts `count` equal latencies, at least one; a negative one counts as 0, but a monotonic
  /// clock yields none.
  void record(std::chrono::nanoseconds latency, std::uint64_t count = 1) noexcept {
    const auto value = latency.count() > 0 ? static_cast<std::uint64_t>(latency.count()) : 0;
    buckets_[bucket_of(value)] += count;
    count_ += count;
    if (value < min_) min_ = value;
    if (value > max_) max_ = value;
  }

  /// Adds the counts of `other`. This and clear() take time for the range that was recorded only.
  void merge(const LatencyHistogram& other) noexcept;

  /// Forgets every latency.
  void clear() noexcept;

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }

  /// The smallest and the largest latency; 0 if none was recorded.
  [[nodiscard]] std::chrono::nanoseconds min() const noexcept;
  [[nodiscard]] std::chrono::nanoseconds max() const noexcept;

  /// The mean, with the middle of its bucket for each latency, as in HdrHistogram: so it is the
  /// same after merging and after coding. 0 if none was recorded.
  [[nodiscard]] std::chrono::duration<double, std::nano> mean() const noexcept;

  /// The latency that a share `quantile` of all latencies (0 to 1, 0.99 for p99) does not exceed:
  /// the middle of its bucket, clamped to min() and max(). 0 if none was recorded.
  [[nodiscard]] std::chrono::nanoseconds percentile(double quantile) const noexcept;

  /// Returns the number of latencies up to `latency`, including those in its bucket.
  [[nodiscard]] std::uint64_t count_up_to(std::chrono::nanoseconds latency) const noexcept;

  /// Returns the figures of a report beside count(), in microseconds with the names of its JSON:
  /// min, mean, p50, p90, p95, p99, p99_9, p99_99, p99_999 and max.
  [[nodiscard]] std::array<std::pair<const char*, double>, 10> summary() const noexcept;

  /// @name The buckets, numbered as in HdrHistogram with 1 ns as its lowest discernible value
  /// @{
  /// HdrHistogram has single steps up to twice 10^digits.
  static constexpr unsigned kStepBits = kSignificantDigits == 3 ? 10 : 7;
  /// Every latency that a clock can yield has a bucket, so record() needs no check.
  static constexpr std::size_t kBuckets = (64 - kStepBits) << kStepBits;

  static constexpr std::size_t bucket_of(std::uint64_t value) noexcept {
    const auto width = static_cast<unsigned>(std::bit_width(value));
    // The low bits that the bucket ignores.
    const unsigned shift = width > kStepBits + 1 ? width - (kStepBits + 1) : 0;
    return (std::size_t{shift} << kStepBits) + (value >> shift);
  }
  /// The smallest and the largest value of a bucket, ns.
  static constexpr std::uint64_t lowest_of(std::size_t bucket) noexcept {
    const unsigned shift = shift_of(bucket);
    return (bucket - (std::size_t{shift} << kStepBits)) << shift;
  }
  static constexpr std::uint64_t highest_of(std::size_t bucket) noexcept {
    return lowest_of(bucket) + ((std::uint64_t{1} << shift_of(bucket)) - 1);
  }

  [[nodiscard]] std::uint64_t count_at(std::size_t bucket) const noexcept {
    return buckets_[bucket];
  }
  /// The bucket after the last one that has a count; 0 if none has.
  [[nodiscard]] std::size_t end_bucket() const noexcept {
    return count_ == 0 ? 0 : bucket_of(max_) + 1;
  }
  /// Counts `count` latencies of a bucket whose values are not known more exactly: min() and max()
  /// are then the bucket's lowest and highest value.
  void add(std::size_t bucket, std::uint64_t count) noexcept;
  /// @}

 private:
  static constexpr unsigned shift_of(std::size_t bucket) noexcept {
    const auto step = static_cast<unsigned>(bucket >> kStepBits);
    return step > 1 ? step - 1 : 0;
  }
  static constexpr std::uint64_t middle_of(std::size_t bucket) noexcept {
    return lowest_of(bucket) + (std::uint64_t{1} << shift_of(bucket)) / 2;
  }
  [[nodiscard]] std::size_t begin_bucket() const noexcept {
    return count_ == 0 ? 0 : bucket_of(min_);
  }

  std::array<std::uint64_t, kBuckets> buckets_{};
  std::uint64_t count_ = 0;
  std::uint64_t min_ = UINT64_MAX;
  std::uint64_t max_ = 0;
};

}  // namespace offload::metrics
