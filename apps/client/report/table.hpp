#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "apps/client/options.hpp"
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
  return line(name, "{}",
              fmt::format("p50 {}, p99 {}, max {}", text_of(results::Statistic::p50, histogram),
                          text_of(results::Statistic::p99, histogram),
                          text_of(results::Statistic::max, histogram)));
}

/// The requests that ended without a latency.
inline std::uint64_t untimed(const RunResult& result) {
  const std::uint64_t ended = result.total->answered + result.unanswered;
  return ended - std::min(ended, result.total->service.count());
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
  if (const std::uint64_t count = untimed(result); count != 0) {
    table += line("Not in the latencies", "{} requests without a right response", count);
  }
  table += percentiles("Connect time (us)", total.connect);
  table += percentiles("Schedule lag (us)", total.lag);
  table += kinds_of(result);
  if (!result.verdict.text.empty()) table += line("Verdict", "{}", result.verdict.text);
  return table;
}

/// A run in one line, for a command of several; with the percentile that is searched for, if any.
inline std::string make_line(const RunResult& result,
                             const std::optional<Search>& search = std::nullopt) {
  const Interval& total = *result.total;
  const RunSetting& setting = result.setting;
  const auto& latency = total.response.count() != 0 ? total.response : total.service;
  std::string text = fmt::format("{:>6} in flight", setting.max_concurrent_messages);
  if (setting.rate) text += fmt::format("{:>12.1f}/s offered", *setting.rate);
  text += fmt::format("{:>14.1f}/s valid   {} time ", result.valid_per_second(),
                      total.response.count() != 0 ? "response" : "service");
  const auto add = [&](const std::string& name, const std::string& figure) {
    text += fmt::format("{} {:>9}  ", name, figure);
  };
  add("p50", text_of(results::Statistic::p50, latency));
  if (search && search->percentile != "p50") {
    add(search->percentile,
        has_percentile(latency, search->quantile)
            ? fmt::format("{:.3f}", core::to_micros(latency.percentile(search->quantile)))
            : "-");
  } else if (!search) {
    add("p99", text_of(results::Statistic::p99, latency));
    add("p99.9", text_of(results::Statistic::p99_9, latency));
  }
  text.replace(text.size() - 2, 2, " us");
  if (const std::uint64_t count = untimed(result); count != 0) {
    text += fmt::format(" without {} requests", count);
  }
  if (const auto errors = errors_of(result); !errors.empty()) text += "   " + errors;
  if (setting.rate) text += fmt::format("   {}", name_of(result.verdict.code));
  return text + '\n';
}

}  // namespace offload::client
