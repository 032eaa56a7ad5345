#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "apps/report/result/json_field.hpp"
#include "apps/report/result/result.hpp"
#include "metrics/latency_histogram.hpp"

namespace offload::report {

/// How many latencies an encoded histogram has; refuses `field`, which it came from, if it is none.
std::uint64_t count_of(const std::string& encoded, const JsonField& field);

/// What encoded histograms have together. The largest latency that is exact is the one that came
/// beside a histogram: an encoded one knows its bucket only.
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
