#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "apps/report/result/json_field.hpp"
#include "apps/report/result/result.hpp"
#include "metrics/latency_histogram.hpp"

namespace offload::report {

/// Returns the number of latencies in an encoded histogram; refuses its `field` if it is invalid.
std::uint64_t count_of(const std::string& encoded, const JsonField& field);

/// The sum of encoded histograms. The exact largest latency is given beside a histogram: an encoded
/// one has only its bucket.
class HistogramSum {
 public:
  /// Throws Error (bad_message) if it is no histogram, or if there are more than 2^53 latencies.
  void add(const std::string& encoded);
  void add(const Latency& latency);
  void add(const IntervalLatency& latency);

  [[nodiscard]] Latency latency() const;
  [[nodiscard]] IntervalLatency interval() const;
  [[nodiscard]] const metrics::LatencyHistogram& histogram() const noexcept { return *sum_; }

 private:
  [[nodiscard]] double percentile_us(double quantile) const;

  std::unique_ptr<metrics::LatencyHistogram> sum_ = std::make_unique<metrics::LatencyHistogram>();
  double min_us_ = 0;
  double max_us_ = 0;
  double weighted_mean_ = 0;  ///< of all, times their number
};

}  // namespace offload::report
