#include "telemetry/exposition.hpp"

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace offload::telemetry {
namespace {

constexpr double kNanoseconds = 1e9;

bool has_labels(const prometheus::ClientMetric& sample, const Labels& labels) {
  return std::equal(sample.label.begin(), sample.label.end(), labels.begin(), labels.end(),
                    [](const auto& one, const auto& other) {
                      return one.name == other.first && one.value == other.second;
                    });
}

std::vector<prometheus::ClientMetric::Bucket> empty_buckets(std::span<const std::uint64_t> bounds,
                                                            double one) {
  std::vector<prometheus::ClientMetric::Bucket> buckets(bounds.size() + 1);
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    buckets[i].upper_bound = static_cast<double>(bounds[i]) / one;
  }
  buckets.back().upper_bound = std::numeric_limits<double>::infinity();
  return buckets;
}

}  // namespace

/// A new one if there is none. Threads are gone through one by one, each with all families in one
/// order: the one that is wanted is the last one or the next.
prometheus::MetricFamily& Exposition::family(const Metric& metric, prometheus::MetricType type) {
  for (std::size_t step = 0; step < families_.size(); ++step) {
    const std::size_t at = (last_ + step) % families_.size();
    if (families_[at].name == metric.name) return families_[last_ = at];
  }
  last_ = families_.size();
  return families_.emplace_back(prometheus::MetricFamily{metric.name, metric.help, type, {}});
}

/// The sample of these labels, a new one if there is none.
prometheus::ClientMetric& Exposition::sample(const Metric& metric, prometheus::MetricType type,
                                             const Labels& labels) {
  auto& samples = family(metric, type).metric;
  const auto found = std::find_if(samples.begin(), samples.end(),
                                  [&](const auto& each) { return has_labels(each, labels); });
  if (found != samples.end()) return *found;
  auto& added = samples.emplace_back();
  for (const auto& [name, value] : labels) added.label.push_back({name, value});
  return added;
}

void Exposition::counter(const Metric& metric, const Labels& labels, double value) {
  sample(metric, prometheus::MetricType::Counter, labels).counter.value += value;
}

void Exposition::counter_of_seconds(const Metric& metric, const Labels& labels,
                                    std::uint64_t count) {
  counter(metric, labels, static_cast<double>(count) / kNanoseconds);
}

void Exposition::gauge(const Metric& metric, const Labels& labels, double value) {
  sample(metric, prometheus::MetricType::Gauge, labels).gauge.value += value;
}

void Exposition::gauge_of_most(const Metric& metric, const Labels& labels, double value) {
  double& most = sample(metric, prometheus::MetricType::Gauge, labels).gauge.value;
  most = std::max(most, value);
}

void Exposition::add_buckets(const Metric& metric, const Labels& labels, const Buckets& buckets) {
  auto& sum = sample(metric, prometheus::MetricType::Histogram, labels).histogram;
  if (sum.bucket.empty()) sum.bucket = empty_buckets(buckets.bounds, buckets.one);
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < sum.bucket.size(); ++i) {
    below += buckets.counts[i];
    sum.bucket[i].cumulative_count += below;
  }
  // The sum of the buckets: the thread may record meanwhile.
  sum.sample_count += below;
  sum.sample_sum += static_cast<double>(buckets.sum) / buckets.one;
}

void Exposition::exemplar(const Metric& metric, const Labels& labels, std::size_t bucket,
                          Exemplar exemplar) {
  const auto& of = sample(metric, prometheus::MetricType::Histogram, labels);
  const auto number = static_cast<std::size_t>(&of - families_[last_].metric.data());
  Exemplar& kept = exemplars_[{last_, number, bucket}];
  if (kept.time < exemplar.time) kept = std::move(exemplar);
}

std::string Exposition::text() const {
  return prometheus::TextSerializer().Serialize(families_);
}

std::string Exposition::open_metrics() const {
  return open_metrics_text(families_, exemplars_);
}

Labels with(Labels labels, const char* name, std::string value) {
  labels.emplace_back(name, std::move(value));
  return labels;
}

}  // namespace offload::telemetry
