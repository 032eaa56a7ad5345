#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/counter.hpp"

namespace offload::telemetry {

/// A Prometheus histogram of lengths: its bounds go by powers of 4 from 64 bytes to 16 MiB. One
/// thread records, any may read: a reader may miss the latest. record() is cheap enough for each
/// message.
class SizeHistogram {
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
    counts_[std::min((bits + 1) / 2, kBounds.size())].add();
    sum_.add(bytes);
  }

  [[nodiscard]] std::uint64_t count_at(std::size_t bucket) const noexcept {
    return counts_[bucket].value();
  }
  /// Returns the sum of all lengths.
  [[nodiscard]] std::uint64_t sum() const noexcept { return sum_.value(); }

 private:
  std::array<core::Counter, kBounds.size() + 1> counts_;
  core::Counter sum_;
};

}  // namespace offload::telemetry
