#pragma once

#include <prometheus/metric_family.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "telemetry/open_metrics.hpp"

namespace offload::telemetry {

/// The labels of a sample: names and values.
using Labels = std::vector<std::pair<std::string, std::string>>;

/// The name of a metric, in base units, and its help text.
struct Metric {
  const char* name;
  const char* help;
};

/// The samples of one page, to be written in Prometheus' text format or as OpenMetrics. Samples of
/// equal name and labels are added up: each thread gives its own, and shard() says whether they are
/// told apart.
class Exposition {
 public:
  explicit Exposition(bool per_thread) : per_thread_(per_thread) {}

  /// The label of a thread, a channel or a GPU, where these are wanted; else none.
  [[nodiscard]] Labels shard(const char* name, std::size_t index) const {
    return per_thread_ ? Labels{{name, std::to_string(index)}} : Labels{};
  }

  void counter(const Metric& metric, const Labels& labels, double value);
  /// `count` nanoseconds, as seconds.
  void counter_of_seconds(const Metric& metric, const Labels& labels, std::uint64_t count);
  void gauge(const Metric& metric, const Labels& labels, double value);
  /// Adds a gauge of which the largest sample is kept when samples are merged.
  void gauge_of_most(const Metric& metric, const Labels& labels, double value);
  /// `histogram`: a DurationHistogram or a SizeHistogram.
  template <class Histogram>
  void histogram(const Metric& metric, const Labels& labels, const Histogram& histogram) {
    std::array<std::uint64_t, Histogram::kBounds.size() + 1> counts;
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = histogram.count_at(i);
    add_buckets(metric, labels, {Histogram::kBounds, counts, histogram.sum(), Histogram::kOne});
  }

  /// Adds an exemplar of a bucket of a histogram that was added. The latest one of a bucket is
  /// kept.
  void exemplar(const Metric& metric, const Labels& labels, std::size_t bucket, Exemplar exemplar);

  /// Returns the page: text/plain; version=0.0.4, which has no exemplars.
  [[nodiscard]] std::string text() const;
  /// Returns the page as kOpenMetrics says.
  [[nodiscard]] std::string open_metrics() const;

 private:
  /// The counts of a histogram, one more than bounds. `one`: of these is 1 in the metric's unit.
  struct Buckets {
    std::span<const std::uint64_t> bounds;
    std::span<const std::uint64_t> counts;
    std::uint64_t sum;
    double one;
  };

  void add_buckets(const Metric& metric, const Labels& labels, const Buckets& buckets);
  prometheus::MetricFamily& family(const Metric& metric, prometheus::MetricType type);
  prometheus::ClientMetric& sample(const Metric& metric, prometheus::MetricType type,
                                   const Labels& labels);

  bool per_thread_;
  std::vector<prometheus::MetricFamily> families_;
  std::size_t last_ = 0;  ///< of families_, that was asked for
  Exemplars exemplars_;
};

/// `labels` and one more.
[[nodiscard]] Labels with(Labels labels, const char* name, std::string value);

}  // namespace offload::telemetry
