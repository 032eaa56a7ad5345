#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/clock.hpp"
#include "core/counter.hpp"

namespace offload::telemetry {

/// The counts of a Prometheus histogram with a number of upper bounds, and the sum of its values.
/// One thread records, any may read: a reader may miss the latest.
template <std::size_t Bounds>
class BucketCounts {
 public:
  /// Adds values that another histogram has recorded: `count` of them to a bucket, from 0 to
  /// `Bounds`, and the sum of all of them.
  void add(std::size_t bucket, std::uint64_t count) noexcept { counts_[bucket].add(count); }
  void add_sum(std::uint64_t sum) noexcept { sum_.add(sum); }

  [[nodiscard]] std::uint64_t count_at(std::size_t bucket) const noexcept {
    return counts_[bucket].value();
  }
  /// Returns the sum of all values, in the unit of the bounds.
  [[nodiscard]] std::uint64_t sum() const noexcept { return sum_.value(); }

 protected:
  ~BucketCounts() = default;
  void record_in(std::size_t bucket, std::uint64_t value) noexcept {
    counts_[bucket].add();
    sum_.add(value);
  }

 private:
  std::array<core::Counter, Bounds + 1> counts_;
  core::Counter sum_;
};

/// A Prometheus histogram of durations: its bounds go by 1, 2.5 and 5 from 1 µs to 10 s. For those
/// who sample: record() takes up to 22 comparisons.
class DurationHistogram : public BucketCounts<22> {
 public:
  /// Upper bounds, inclusive, of all buckets but the last, which takes what is longer; ns.
  static constexpr std::array<std::uint64_t, 22> kBounds = [] {
    std::array<std::uint64_t, 22> bounds{};
    std::uint64_t decade = 1000;
    for (std::size_t i = 0; i < bounds.size(); ++i) {
      bounds[i] = i % 3 == 0 ? decade : i % 3 == 1 ? decade * 5 / 2 : decade * 5;
      if (i % 3 == 2) decade *= 10;
    }
    return bounds;
  }();
  /// In the unit of the metric: seconds.
  static constexpr double kOne = 1e9;

  /// Returns the bucket of a duration in ns.
  [[nodiscard]] static std::size_t bucket_of(std::uint64_t value) noexcept {
    std::size_t bucket = 0;
    while (bucket < kBounds.size() && value > kBounds[bucket]) ++bucket;
    return bucket;
  }

  /// A negative one counts as 0.
  void record(core::Duration duration) noexcept {
    const auto value = static_cast<std::uint64_t>(duration.count() > 0 ? duration.count() : 0);
    record_in(bucket_of(value), value);
  }
};

/// A Prometheus histogram of lengths: its bounds go by powers of 4 from 64 bytes to 16 MiB.
/// record() is cheap enough for each message.
class SizeHistogram : public BucketCounts<10> {
 public:
  /// Upper bounds, inclusive, of all buckets but the last, which takes what is longer; bytes.
  static constexpr std::array<std::uint64_t, 10> kBounds = [] {
    std::array<std::uint64_t, 10> bounds{};
    for (std::size_t i = 0; i < bounds.size(); ++i) bounds[i] = std::uint64_t{64} << (2 * i);
    return bounds;
  }();
  /// In the unit of the metric.
  static constexpr double kOne = 1;

  void record(std::uint64_t bytes) noexcept {
    const std::uint64_t last = bytes == 0 ? 0 : bytes - 1;  // a bound is the last of its bucket
    const auto bits = static_cast<std::size_t>(std::bit_width(last / kBounds.front()));
    record_in(std::min((bits + 1) / 2, kBounds.size()), bytes);
  }
};

}  // namespace offload::telemetry
