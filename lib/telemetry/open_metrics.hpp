#pragma once

#include <prometheus/metric_family.h>

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace offload::telemetry {

/// The content type of an open_metrics_text().
inline constexpr const char* kOpenMetrics =
    "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// One measured value of a bucket, with labels that lead to more about it: at most 128 characters.
struct Exemplar {
  std::vector<std::pair<std::string, std::string>> labels;
  double value;
  double time;  ///< seconds since the epoch
};

/// By the numbers of family, sample and bucket.
using Exemplars = std::map<std::array<std::size_t, 3>, Exemplar>;

/// Returns the page in OpenMetrics 1.0
/// (https://github.com/prometheus/OpenMetrics/blob/v1.0.0/specification/OpenMetrics.md). Names and
/// labels of samples are those of the classic format, so a change of format makes no new series.
[[nodiscard]] std::string open_metrics_text(const std::vector<prometheus::MetricFamily>& families,
                                            const Exemplars& exemplars);

/// Returns whether an Accept header names OpenMetrics 1.0 with at least the quality of the classic
/// format (RFC 9110, section 12.5.1).
[[nodiscard]] bool prefers_open_metrics(std::string_view accept) noexcept;

}  // namespace offload::telemetry
