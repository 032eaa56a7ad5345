#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "apps/report/vocabulary.hpp"
#include "metrics/latency_histogram.hpp"

namespace offload::report {

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

/// Returns the log of HdrHistogram of all intervals of all runs, with the tags service_time and
/// response_time, and of the last of these without a tag. Throws Error (bad_message) for an
/// invalid histogram.
std::string histogram_log(const Result& result);

}  // namespace offload::report
