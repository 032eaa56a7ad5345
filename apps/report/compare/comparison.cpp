#include "apps/report/compare/comparison.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "core/escape.hpp"
#include "metrics/latency_histogram.hpp"

namespace offload::report {
namespace {

using Runs = std::vector<const Run*>;

constexpr std::array kFigures = {
    Figure{Figure::Kind::rate},
    Figure{Figure::Kind::latency, Statistic::mean},
    Figure{Figure::Kind::latency, Statistic::p50},
    Figure{Figure::Kind::latency, Statistic::p90},
    Figure{Figure::Kind::latency, Statistic::p95},
    Figure{Figure::Kind::latency, Statistic::p99},
    Figure{Figure::Kind::latency, Statistic::p99_9},
    Figure{Figure::Kind::latency, Statistic::p99_99},
    Figure{Figure::Kind::latency, Statistic::max},
};

/// A percentile is a bucket's middle: equal runs may be a bucket apart, and unequal ones none.
constexpr double kBucketWidth = 1.0 / (1U << metrics::LatencyHistogram::kStepBits);

bool all_have_response_times(const Runs& runs) {
  return std::ranges::all_of(runs,
                             [](const Run* run) { return run->response_time_us.has_value(); });
}

std::vector<double> values_of(const Runs& runs, Figure figure, bool response) {
  std::vector<double> values;
  for (const Run* run : runs) {
    const Latency& latency = response ? *run->response_time_us : run->service_time_us;
    values.push_back(figure.kind == Figure::Kind::rate ? run->io_rate_miops * 1e6
                                                       : latency.at(figure.statistic));
  }
  return values;
}

/// Returns whether all runs have enough latencies for a figure.
bool have(const Runs& runs, Figure figure, bool response) {
  return figure.kind == Figure::Kind::rate || std::ranges::all_of(runs, [&](const Run* run) {
           return (response ? *run->response_time_us : run->service_time_us).has(figure.statistic);
         });
}

bool are_alternated(const Runs& base, const Runs& candidate) {
  for (std::size_t i = 1; i < base.size(); ++i) {
    const double before =
        std::max(base[i - 1]->measured_until(), candidate[i - 1]->measured_until());
    const double after = std::min(base[i]->started_at_unix_s, candidate[i]->started_at_unix_s);
    if (after < before) return false;
  }
  return true;
}

std::string load_of(const Run& run) {
  return run.offered_per_second ? fmt::format("an open loop of {:.0f}/s", *run.offered_per_second)
                                : fmt::format("a closed loop of {} connections with {} in flight",
                                              run.connections, run.max_concurrent_messages);
}

/// Rates that were asked for are the same to the digits that people write.
bool are_alike(const Run& left, const Run& right) {
  if (left.offered_per_second.has_value() != right.offered_per_second.has_value()) return false;
  if (!left.offered_per_second) {
    return left.connections == right.connections &&
           left.max_concurrent_messages == right.max_concurrent_messages;
  }
  return std::abs(*left.offered_per_second - *right.offered_per_second) <=
         1e-3 * *left.offered_per_second;
}

std::string unlike(const Runs& base, const Runs& candidate) {
  for (std::size_t i = 0; i < base.size(); ++i) {
    if (!are_alike(*base[i], *candidate[i])) {
      return fmt::format("run {} of BASE is {}, that of NEW {}", i + 1, load_of(*base[i]),
                         load_of(*candidate[i]));
    }
  }
  return {};
}

/// Options that do not change the load: where it goes, and how often and in which order.
constexpr std::array<std::string_view, 4> kOptionsBesideTheLoad = {
    "server_ip_address", "server_ip_port", "seed", "repeat"};

/// Returns an option's value as JSON; "unknown" of a result without the option.
std::string value_of(const Result& result, std::string_view name) {
  const auto found = std::ranges::find(
      result.options, name, [](const auto& each) -> const auto& { return each.first; });
  return found == result.options.end() ? "unknown" : found->second;
}

/// Returns the first option in which two loads differ, empty if there is none.
std::string unlike_option(const Result& left, const Result& right) {
  for (const auto* result : {&left, &right}) {
    for (const auto& [name, value] : result->options) {
      const bool is_beside =
          std::ranges::find(kOptionsBesideTheLoad, name) != kOptionsBesideTheLoad.end();
      if (!is_beside && value_of(left, name) != value_of(right, name)) return name;
    }
  }
  return {};
}

std::string label_of(Figure figure, bool response) {
  if (figure.kind == Figure::Kind::rate) return "rate (1/s)";
  return fmt::format("{} {} (us)", response ? "response" : "service", name_of(figure));
}

std::optional<Ratio> ratio_of(const Runs& base, const Runs& candidate, Figure figure, bool response,
                              bool alternated) {
  const auto of_base = values_of(base, figure, response);
  const auto of_candidate = values_of(candidate, figure, response);
  const auto is_zero = [](double value) { return value <= 0; };
  if (!have(base, figure, response) || !have(candidate, figure, response)) return std::nullopt;
  if (std::ranges::any_of(of_base, is_zero) || std::ranges::any_of(of_candidate, is_zero)) {
    return std::nullopt;
  }
  std::vector<metrics::RepeatPair> pairs;
  for (std::size_t i = 0; i < of_base.size(); ++i) pairs.push_back({of_base[i], of_candidate[i]});
  Ratio ratio;
  ratio.figure = figure;
  ratio.label = label_of(figure, response);
  ratio.base = metrics::estimate_median(of_base).middle;
  ratio.candidate = metrics::estimate_median(of_candidate).middle;
  ratio.estimate = metrics::estimate_ratio(pairs);
  const auto [smallest, largest] = std::ranges::minmax_element(of_base);
  ratio.base_range = *largest / *smallest - 1;
  metrics::Estimate& estimate = ratio.estimate;
  double factor = std::sqrt(estimate.high / estimate.low);
  if (figure.kind == Figure::Kind::latency) factor = std::max(factor, 1 + kBucketWidth);
  ratio.interval_noise = factor - 1;
  if (!alternated) factor = std::max(factor, 1 + ratio.base_range);
  estimate.low = std::min(estimate.low, estimate.middle / factor);
  estimate.high = std::max(estimate.high, estimate.middle * factor);
  ratio.noise = factor - 1;
  return ratio;
}

bool is_beyond(const Threshold& threshold, double value) {
  return threshold.above ? value > threshold.bound : value < threshold.bound;
}

/// The quantile of Student's t for a confidence of 95 %, within 4 % (Abramowitz and Stegun,
/// 26.7.5): enough to say "about how many".
double student_t(double degrees) {
  return 1.960 + 2.372 / degrees + 2.823 / (degrees * degrees) +
         2.556 / (degrees * degrees * degrees);
}

}  // namespace

std::string unlike_options(const std::vector<Result>& base, const std::vector<Result>& candidate) {
  if (base.empty()) return {};
  const Result& first = base.front();
  for (const auto* side : {&base, &candidate}) {
    for (const Result& result : *side) {
      const std::string name = unlike_option(first, result);
      if (name.empty()) continue;
      return fmt::format("{} is {} in '{}' and {} in '{}'", core::escaped(name),
                         core::escaped(value_of(first, name)), core::escaped(first.file),
                         core::escaped(value_of(result, name)), core::escaped(result.file));
    }
  }
  return {};
}

Comparison compare(const Runs& base, const Runs& candidate) {
  Comparison comparison;
  comparison.pairs = std::min(base.size(), candidate.size());
  comparison.unpaired = std::max(base.size(), candidate.size()) - comparison.pairs;
  const auto count = static_cast<std::ptrdiff_t>(comparison.pairs);
  const Runs first(base.begin(), base.begin() + count);
  const Runs second(candidate.begin(), candidate.begin() + count);
  comparison.alternated = are_alternated(first, second);
  comparison.unlike = unlike(first, second);
  if (comparison.pairs < kFewestPairs || !comparison.unlike.empty()) return comparison;
  const bool response = all_have_response_times(first) && all_have_response_times(second);
  for (const Figure figure : kFigures) {
    const auto ratio = ratio_of(first, second, figure, response, comparison.alternated);
    if (ratio) comparison.ratios.push_back(*ratio);
  }
  return comparison;
}

Judgement judge(const Threshold& threshold, const Ratio& ratio) {
  const metrics::Estimate& estimate = ratio.estimate;
  // A ratio clearly beyond the bound is certain with any noise.
  if (is_beyond(threshold, threshold.above ? estimate.low : estimate.high)) {
    return Judgement::exceeded;
  }
  const double distance = std::abs(std::log(threshold.bound));
  const double noise = std::log1p(ratio.noise);
  if (distance <= noise) return Judgement::noisy;
  if (!is_beyond(threshold, estimate.middle)) return Judgement::not_exceeded;
  // Beyond a bound that is twice the noise away from 1 is as far from equality as a whole interval
  // beyond a bound that is once as far: as rare without a difference.
  return distance > 2 * noise ? Judgement::exceeded : Judgement::undecided;
}

std::optional<std::size_t> pairs_needed(const Threshold& threshold, const Ratio& ratio,
                                        std::size_t pairs) {
  constexpr std::size_t kMost = 10'000;
  const bool noisy = judge(threshold, ratio) == Judgement::noisy;
  const double distance = std::abs(std::log((noisy ? 1 : ratio.estimate.middle) / threshold.bound));
  if (ratio.figure.kind == Figure::Kind::latency && distance <= std::log1p(kBucketWidth)) {
    return std::nullopt;
  }
  const auto count = static_cast<double>(pairs);
  const double deviation =
      std::log1p(ratio.interval_noise) * std::sqrt(count) / student_t(count - 1);
  for (std::size_t more = pairs + 1; more <= kMost; ++more) {
    const auto size = static_cast<double>(more);
    if (student_t(size - 1) * deviation / std::sqrt(size) < distance) return more;
  }
  return std::nullopt;
}

}  // namespace offload::report
