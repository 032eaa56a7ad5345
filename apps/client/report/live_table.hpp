#pragma once

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>

#include "apps/client/run/time_line.hpp"
#include "core/clock.hpp"

namespace offload::client {

inline constexpr std::uint64_t kLinesOfLegend = 20;

/// A table on standard error that grows by a line each second of a run, if that is a terminal. One
/// thread.
class LiveTable {
 public:
  /// `quiet`: not even on a terminal.
  explicit LiveTable(bool quiet) : on_(!quiet && ::isatty(STDERR_FILENO) != 0) {}

  /// A run begins. `length`: of its sending, warm-up included, if it is known. `open_loop`: shows
  /// the response time, else the service time.
  void begin(std::optional<core::Duration> length, bool open_loop) {
    length_ = length;
    open_loop_ = open_loop;
    lines_ = 0;
  }
  void show(const results::RunInterval& second) {
    if (!on_) return;
    if (lines_++ % kLinesOfLegend == 0) {
      const auto* const time = open_loop_ ? "response" : "service";
      fmt::print(stderr, "{:>8} {:>14} {:>12} {:>16} {:>12} {:>10} {:>8}\n", "time s",
                 "responses/s", "in flight", fmt::format("{} p50 us", time), "p99 us", "errors",
                 "left s");
    }
    const auto& latency = open_loop_ ? *second.response_time_us : second.service_time_us;
    const double end = second.start_s + second.length_s;
    const double rate =
        second.length_s > 0 ? static_cast<double>(second.operations) / second.length_s : 0;
    const std::string left =
        length_ ? fmt::format("{:.0f}", std::max(core::to_seconds(*length_) - end, 0.0)) : "-";
    const auto text = [&](results::Statistic statistic, double us) {
      return latency.has(statistic) ? fmt::format("{:.1f}", us) : std::string("-");
    };
    fmt::print(stderr, "{:>8.1f} {:>14.0f} {:>12.1f} {:>16} {:>12} {:>10} {:>8}\n", end, rate,
               *second.in_flight, text(results::Statistic::p50, latency.p50),
               text(results::Statistic::p99, latency.p99), second.errors, left);
  }

 private:
  bool on_;
  bool open_loop_ = false;
  std::optional<core::Duration> length_;
  std::uint64_t lines_ = 0;
};

}  // namespace offload::client
