#include "apps/report/histograms.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "metrics/hdr_codec.hpp"
#include "metrics/hdr_log.hpp"

namespace offload::report {

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
  Latency latency = Latency::of(*sum_);
  if (latency.count == 0) return latency;
  for (double& us : latency.us) us = std::max(min_us_, std::min(us, max_us_));
  const auto set = [&](Statistic statistic, double us) {
    latency.us[static_cast<std::size_t>(statistic)] = us;
  };
  set(Statistic::min, min_us_);
  set(Statistic::mean, weighted_mean_ / static_cast<double>(latency.count));
  set(Statistic::max, max_us_);
  return latency;
}

IntervalLatency HistogramSum::interval() const {
  return {percentile_us(0.5), percentile_us(0.99), max_us_, metrics::encode_hdr(*sum_),
          sum_->count()};
}

namespace {

void add_intervals(const Run& run, double log_start, std::string& log) {
  const auto add = [&](const char* tag, const RunInterval& interval, const auto& latency) {
    if (latency.count == 0) return;
    const double start = run.started_at_unix_s + interval.start_s - log_start;
    log += metrics::hdr_log_line(tag, start, interval.length_s,
                                 metrics::decode_hdr(latency.histogram));
  };
  for (const RunInterval& interval : run.intervals) {
    add("service_time", interval, interval.service_time_us);
    if (interval.response_time_us) add("response_time", interval, *interval.response_time_us);
    add("", interval, interval.response_time_us.value_or(interval.service_time_us));
  }
}

}  // namespace

std::string histogram_log(const Result& result) {
  double start = 0;
  if (!result.runs.empty()) {
    start = std::ranges::min_element(result.runs, {}, &Run::started_at_unix_s)->started_at_unix_s;
  }
  std::string log = metrics::hdr_log_header(start);
  for (const Run& run : result.runs) add_intervals(run, start, log);
  return log;
}

}  // namespace offload::report
