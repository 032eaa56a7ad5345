#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/clock.hpp"
#include "core/counter.hpp"

namespace offload::telemetry {

/// A Prometheus histogram of durations: its bounds go by 1, 2.5 and 5 from 1 µs to 10 s. One thread
/// records, any may read: a reader may miss the latest. For those who sample: record() takes up to
/// 22 comparisons.
class DurationHistogram {
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

  /// A negative one counts as 0.
  void record(core::Duration duration) noexcept {
    const auto value = static_cast<std::uint64_t>(duration.count() > 0 ? duration.count() : 0);
    std::size_t bucket = 0;
    while (bucket < kBounds.size() && value > kBounds[bucket]) ++bucket;
    counts_[bucket].add();
    sum_.add(value);
  }

  /// Adds durations that another histogram has recorded: `count` of them to a bucket, and the sum
  /// of all of them in ns.
  void add(std::size_t bucket, std::uint64_t count) noexcept { counts_[bucket].add(count); }
  void add_sum(std::uint64_t sum) noexcept { sum_.add(sum); }

  [[nodiscard]] std::uint64_t count_at(std::size_t bucket) const noexcept {
    return counts_[bucket].value();
  }
  /// Returns the sum of all durations, in ns.
  [[nodiscard]] std::uint64_t sum() const noexcept { return sum_.value(); }

 private:
  std::array<core::Counter, kBounds.size() + 1> counts_;
  core::Counter sum_;
};

}  // namespace offload::telemetry
