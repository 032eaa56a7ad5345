#include "apps/report/result/histogram.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "metrics/hdr_codec.hpp"

namespace offload::report {

std::uint64_t count_of(const std::string& encoded, const JsonField& field) {
  try {
    return metrics::decode_hdr(encoded).count();
  } catch (const core::Error& error) {
    field.refuse(std::string("is not a histogram: ") + error.what());
  }
}

void HistogramSum::add(const std::string& encoded) {
  const auto decoded = std::make_unique<metrics::LatencyHistogram>(metrics::decode_hdr(encoded));
  if (decoded->count() > metrics::kMaxHdrCount - sum_->count()) {
    throw core::Error(core::ErrorCode::bad_message, "the results have more than 2^53 latencies");
  }
  sum_->merge(*decoded);
}

void HistogramSum::add(const Latency& latency) {
  if (latency.count == 0) return;
  const bool first = sum_->count() == 0;
  add(latency.histogram);
  min_us_ = first ? latency.at(Statistic::min) : std::min(min_us_, latency.at(Statistic::min));
  max_us_ = std::max(max_us_, latency.at(Statistic::max));
  weighted_mean_ += latency.at(Statistic::mean) * static_cast<double>(latency.count);
}

void HistogramSum::add(const IntervalLatency& latency) {
  add(latency.histogram);
  max_us_ = std::max(max_us_, latency.max);
}

double HistogramSum::percentile_us(double quantile) const {
  const std::chrono::duration<double, std::micro> time = sum_->percentile(quantile);
  return std::max(min_us_, std::min(time.count(), max_us_));
}

Latency HistogramSum::latency() const {
  Latency latency;
  latency.count = sum_->count();
  latency.histogram = metrics::encode_hdr(*sum_);
  if (latency.count == 0) return latency;
  const auto summary = sum_->summary();
  static_assert(std::tuple_size_v<decltype(summary)> == std::tuple_size_v<decltype(latency.us)>);
  for (std::size_t i = 0; i < summary.size(); ++i) {
    latency.us[i] = std::max(min_us_, std::min(summary[i].second, max_us_));
  }
  const auto set = [&](Statistic statistic, double us) {
    latency.us[static_cast<std::size_t>(statistic)] = us;
  };
  set(Statistic::min, min_us_);
  set(Statistic::mean, weighted_mean_ / static_cast<double>(latency.count));
  set(Statistic::max, max_us_);
  return latency;
}

IntervalLatency HistogramSum::interval() const {
  return {percentile_us(0.5), percentile_us(0.99), max_us_, metrics::encode_hdr(*sum_)};
}

}  // namespace offload::report
