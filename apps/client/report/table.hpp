#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "apps/client/run/run_result.hpp"

namespace offload::client {

template <class Value>
std::string line(const std::string& name, const char* value_format, Value value) {
  return fmt::format("{:<26}{}\n", name + ":", fmt::format(fmt::runtime(value_format), value));
}

inline std::string errors_of(const RunResult& result) {
  std::string text;
  result.total->errors.for_each([&](std::string_view name, std::uint64_t count) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, count);
  });
  return text;
}

/// A statistic in microseconds, or a dash if there are too few latencies for it.
inline std::string text_of(results::Statistic statistic,
                           const metrics::LatencyHistogram& histogram) {
  const auto i = static_cast<std::size_t>(statistic);
  if (histogram.count() < results::kFewestSamples[i]) return "-";
  return fmt::format("{:.3f}", histogram.summary()[i].second);
}

/// Service and response time side by side, where there are both.
inline std::string latencies(const Interval& total) {
  const bool both = total.response.count() != 0;
  std::string text = fmt::format("{:<26}{:>14}{}\n", "Latency (us)", "service time",
                                 both ? "   response time" : "");
  for (std::size_t i = 0; i < results::kStatisticNames.size(); ++i) {
    std::string name(results::kStatisticNames[i]);
    std::ranges::replace(name, '_', '.');  // p99.9
    const auto statistic = static_cast<results::Statistic>(i);
    text += fmt::format("  {:<24}{:>14}", name, text_of(statistic, total.service));
    if (both) text += fmt::format("  {:>14}", text_of(statistic, total.response));
    text += '\n';
  }
  return text;
}

inline std::string percentiles(const std::string& name,
                               const metrics::LatencyHistogram& histogram) {
  if (histogram.count() == 0) return {};
  return line(
      name, "p50 {}",
      fmt::format("{:.3f}, p99 {:.3f}, max {:.3f}", core::to_micros(histogram.percentile(0.5)),
                  core::to_micros(histogram.percentile(0.99)), core::to_micros(histogram.max())));
}

/// A line for each kind of requests; empty if there is one kind.
inline std::string kinds_of(const RunResult& result) {
  if (result.kinds.empty()) return {};
  const bool both = result.total->response.count() != 0;
  std::string text = fmt::format("{:<20}{:>7}{:>14}{:>14}{:>14}{:>10}\n",
                                 both ? "Kind (response time)" : "Kind (service time)", "port",
                                 "valid/s", "p50 (us)", "p99 (us)", "errors");
  for (const KindResult& kind : result.kinds) {
    const Interval& total = *kind.total;
    const auto& latency = both ? total.response : total.service;
    text += fmt::format(
        "  {:<18}{:>7}{:>14.1f}{:>14}{:>14}{:>10}\n", kind.name, kind.port,
        per_second(static_cast<double>(total.valid - total.valid_after_end), result.duration),
        text_of(results::Statistic::p50, latency), text_of(results::Statistic::p99, latency),
        total.errors.total());
  }
  return text;
}

/// A run as text: one "name: value" a line, then the latencies side by side, then the verdict. The
/// first five names are those of DOCA's dpu_gpu_remote_offload client, so that scripts that parse
/// its output can parse this.
inline std::string make_table(const RunResult& result) {
  const Interval& total = *result.total;
  std::string table =
      line("Duration (seconds)", "{:.6f}", core::to_seconds(result.duration)) +
      line("Operation count", "{}", total.answered) +
      line("Tx Data rate (GiB/s)", "{:.6f}", result.tx_gib_per_second()) +
      line("Rx Data rate (GiB/s)", "{:.6f}", result.rx_gib_per_second()) +
      line("IO rate (MIOP/s)", "{:.6f}", result.million_operations_per_second()) +
      line("Valid responses", "{}", total.valid) +
      line("Wire rate (GiB/s)", "{}",
           fmt::format("sent {:.6f}, received {:.6f}, with the headers of frames",
                       result.tx_wire_gib_per_second(), result.rx_wire_gib_per_second()));
  if (!result.verification.empty()) table += line("Verification", "{}", result.verification);
  if (result.udp) {
    table += line("Datagrams", "{}",
                  fmt::format("{} sent, {} answered, {} lost, {} duplicates, {} late, {} wrong, {} "
                              "sent again",
                              total.sent, total.answered, total.lost, total.duplicates,
                              total.late_answers, result.wrong(), total.sent_again));
  }
  if (result.unanswered > 0) table += line("Unanswered requests", "{}", result.unanswered);
  if (const auto errors = errors_of(result); !errors.empty()) table += line("Errors", "{}", errors);
  table += line("Mean in flight", "{}",
                fmt::format("{:.3f} (by Little's law {:.3f})", result.mean_in_flight(),
                            result.in_flight_by_littles_law()));
  table += latencies(total);
  const std::uint64_t ended = total.answered + result.unanswered;
  if (ended > total.service.count()) {
    table += line("Not in the latencies", "{} requests without a right response",
                  ended - total.service.count());
  }
  table += percentiles("Connect time (us)", total.connect);
  table += percentiles("Schedule lag (us)", total.lag);
  table += kinds_of(result);
  if (!result.verdict.text.empty()) table += line("Verdict", "{}", result.verdict.text);
  return table;
}

/// A run in one line, for a command of several.
inline std::string make_line(const RunResult& result) {
  const Interval& total = *result.total;
  const RunSetting& setting = result.setting;
  const auto& latency = total.response.count() != 0 ? total.response : total.service;
  std::string text = fmt::format("{:>6} in flight", setting.max_concurrent_messages);
  if (setting.rate) text += fmt::format("{:>12.1f}/s offered", *setting.rate);
  text += fmt::format(
      "{:>14.1f}/s valid   {} time p50 {:>9}  p99 {:>9}  p99.9 {:>9} us", result.valid_per_second(),
      total.response.count() != 0 ? "response" : "service",
      text_of(results::Statistic::p50, latency), text_of(results::Statistic::p99, latency),
      text_of(results::Statistic::p99_9, latency));
  if (const auto errors = errors_of(result); !errors.empty()) text += "   " + errors;
  if (setting.rate) text += fmt::format("   {}", name_of(result.verdict.code));
  return text + '\n';
}

}  // namespace offload::client
