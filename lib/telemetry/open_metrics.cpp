#include "telemetry/open_metrics.hpp"

#include <fmt/core.h>
#include <strings.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <optional>

namespace offload::telemetry {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

// ---- The page

std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char each : text) {
    if (each == '\\' || each == '"') result += '\\';
    result += each == '\n' ? "\\n" : std::string(1, each);
  }
  return result;
}

/// Appends a label to a list without its braces.
void add_label(std::string& list, std::string_view name, std::string_view value) {
  fmt::format_to(std::back_inserter(list), "{}{}=\"{}\"", list.empty() ? "" : ",", name,
                 escaped(value));
}

std::string labels_of(const ClientMetric& sample) {
  std::string list;
  for (const ClientMetric::Label& label : sample.label) add_label(list, label.name, label.value);
  return list;
}

/// Appends a sample without the end of its line.
void add_sample(std::string& page, std::string_view name, const std::string& labels,
                const std::string& value) {
  page += name;
  if (!labels.empty()) page += "{" + labels + "}";
  page += " " + value;
}

void add_exemplar(std::string& page, const Exemplar& exemplar) {
  std::string labels;
  for (const auto& [name, value] : exemplar.labels) add_label(labels, name, value);
  fmt::format_to(std::back_inserter(page), " # {{{}}} {} {:.3f}", labels,
                 number_text(exemplar.value), exemplar.time);
}

/// `place`: the numbers of family and sample.
void add_histogram(std::string& page, const std::string& name, const ClientMetric& sample,
                   std::array<std::size_t, 2> place, const Exemplars& exemplars) {
  const std::string labels = labels_of(sample);
  const auto& buckets = sample.histogram.bucket;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    std::string of_bucket = labels;
    add_label(of_bucket, "le", number_text(buckets[i].upper_bound));
    add_sample(page, name + "_bucket", of_bucket, std::to_string(buckets[i].cumulative_count));
    const auto found = exemplars.find({place[0], place[1], i});
    if (found != exemplars.end()) add_exemplar(page, found->second);
    page += '\n';
  }
  add_sample(page, name + "_count", labels, std::to_string(sample.histogram.sample_count));
  page += '\n';
  add_sample(page, name + "_sum", labels, number_text(sample.histogram.sample_sum));
  page += '\n';
}

const char* name_of(MetricType type) {
  switch (type) {
    case MetricType::Counter: return "counter";
    case MetricType::Gauge: return "gauge";
    case MetricType::Histogram: return "histogram";
    default: return "unknown";
  }
}

/// The suffix is that of a counter's sample, and not in the name of its family.
constexpr std::string_view kTotal = "_total";

std::string family_name(const MetricFamily& family) {
  const bool is_suffixed = family.type == MetricType::Counter && family.name.ends_with(kTotal);
  return family.name.substr(0, family.name.size() - (is_suffixed ? kTotal.size() : 0));
}

void add_metadata(std::string& page, const std::string& name, const MetricFamily& family) {
  const auto out = std::back_inserter(page);
  fmt::format_to(out, "# TYPE {} {}\n", name, name_of(family.type));
  for (const char* const unit : {"seconds", "bytes"}) {
    if (name.ends_with(std::string("_") + unit)) fmt::format_to(out, "# UNIT {} {}\n", name, unit);
  }
  fmt::format_to(out, "# HELP {} {}\n", name, escaped(family.help));
}

// ---- The Accept header

/// Cuts the part up to `separator` off the front of `list`. Returns it without the spaces around.
std::string_view take(std::string_view& list, char separator) {
  std::string_view part = list.substr(0, list.find(separator));
  list.remove_prefix(std::min(part.size() + 1, list.size()));
  const std::size_t begin = std::min(part.find_first_not_of(" \t"), part.size());
  part.remove_prefix(begin);
  return part.substr(0, part.find_last_not_of(" \t") + 1);
}

bool is_same(std::string_view one, std::string_view other) {
  return one.size() == other.size() && ::strncasecmp(one.data(), other.data(), one.size()) == 0;
}

/// Returns 0 for an invalid one.
double quality_of(std::string_view text) {
  double quality = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, quality);
  return error == std::errc() && rest == end && quality > 0 && quality <= 1 ? quality : 0;
}

/// An element of an Accept header.
struct MediaRange {
  explicit MediaRange(std::string_view element) : type(take(element, ';')) {
    while (!element.empty()) {
      std::string_view value = take(element, ';');
      const std::string_view name = take(value, '=');
      if (value.size() >= 2 && value.starts_with('"')) value = value.substr(1, value.size() - 2);
      if (is_same(name, "version")) version = value;
      if (is_same(name, "q")) quality = quality_of(value);
    }
  }
  [[nodiscard]] bool is(std::string_view of, std::string_view of_version) const {
    return is_same(type, of) && (version.empty() || version == of_version);
  }

  std::string_view type;
  std::string_view version;  ///< empty: any
  double quality = 1;
};

}  // namespace

std::string open_metrics_text(const std::vector<MetricFamily>& families,
                              const Exemplars& exemplars) {
  std::string page;
  for (std::size_t i = 0; i < families.size(); ++i) {
    const MetricFamily& family = families[i];
    const std::string name = family_name(family);
    add_metadata(page, name, family);
    for (std::size_t j = 0; j < family.metric.size(); ++j) {
      const ClientMetric& sample = family.metric[j];
      if (family.type == MetricType::Histogram) {
        add_histogram(page, name, sample, {i, j}, exemplars);
      } else if (family.type == MetricType::Counter) {
        add_sample(page, name + "_total", labels_of(sample),
                   number_text(sample.counter.value) + "\n");
      } else {
        add_sample(page, name, labels_of(sample), number_text(sample.gauge.value) + "\n");
      }
    }
  }
  return page + "# EOF\n";
}

bool prefers_open_metrics(std::string_view accept) noexcept {
  double open_metrics = 0;
  std::optional<double> classic;  // the most specific range counts
  std::optional<double> any_text;
  std::optional<double> anything;
  const auto raise = [](auto& to, double quality) { to = std::max(to.value_or(0), quality); };
  while (!accept.empty()) {
    const MediaRange range(take(accept, ','));
    if (range.is("application/openmetrics-text", "1.0.0")) {
      open_metrics = std::max(open_metrics, range.quality);
    }
    if (range.is("text/plain", "0.0.4")) raise(classic, range.quality);
    if (range.is("text/*", "")) raise(any_text, range.quality);
    if (range.is("*/*", "")) raise(anything, range.quality);
  }
  const double other = classic ? *classic : any_text ? *any_text : anything.value_or(0);
  return open_metrics > 0 && open_metrics >= other;
}

}  // namespace offload::telemetry
