#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/client/load/interval.hpp"
#include "apps/client/run/time_line.hpp"
#include "apps/client/run/verdict.hpp"
#include "core/clock.hpp"
#include "protocol/datagram.hpp"

namespace offload::client {

inline constexpr double kGiB = 1024.0 * 1024 * 1024;

/// A server without a queue may take that long, however fast it usually is.
inline constexpr core::Duration kUsualResponse = std::chrono::milliseconds(50);

inline double per_second(double amount, core::Duration duration) noexcept {
  const double seconds = core::to_seconds(duration);
  return seconds > 0 ? amount / seconds : 0;
}

/// Returns whether a latency lies beyond a percentile, so that it says something.
inline bool has_percentile(const metrics::LatencyHistogram& histogram, double quantile) noexcept {
  return static_cast<double>(histogram.count()) * (1 - quantile) > 1 - 1e-9;
}

/// The settings in which the runs of one command may differ.
struct RunSetting {
  std::optional<double> rate;  ///< requests a second; none: a closed loop, or a schedule
  std::uint32_t max_concurrent_messages = 0;
};

/// The outcome of a kind of requests in a load of several.
struct KindResult {
  std::string name;
  std::uint16_t port = 0;
  double share = 1;            ///< of the rate, and about that of the connections
  std::optional<double> rate;  ///< requests a second; none: a closed loop
  std::uint64_t connections = 0;
  std::unique_ptr<Interval> total = std::make_unique<Interval>();
};

/// The outcome of a run. Where it says nothing else, without the warm-up.
struct RunResult {
  RunSetting setting;
  double started_at_unix_s = 0;
  /// The time that rates refer to: that of sending after the warm-up; for a number of requests,
  /// until the last response.
  core::Duration duration{};
  std::uint64_t unanswered = 0;  ///< requests sent and not answered, those of the warm-up included
  std::unique_ptr<Interval> total = std::make_unique<Interval>();
  std::vector<results::RunInterval> seconds;  ///< with response times in any loop
  std::vector<KindResult> kinds;              ///< empty if there is one kind
  LoadVerdict verdict;
  double busy = 0;                  ///< of the busiest load thread, 0 to 1
  std::vector<std::string> faults;  ///< the first of each thread
  std::string verification;         ///< how responses were checked; empty: unknown
  bool udp = false;
  bool interrupted = false;  ///< by SIGINT or SIGTERM

  // Return rates over the duration, of data within it; 0 if it is 0. A data rate counts the
  // payloads of requests and responses, a wire rate also what frames them.
  [[nodiscard]] double tx_gib_per_second() const noexcept {
    return gib_per_second(without_headers(total->tx_bytes, total->sent + total->sent_again));
  }
  [[nodiscard]] double rx_gib_per_second() const noexcept {
    const std::uint64_t frames =
        total->answered - total->answered_after_end + total->duplicates + total->late_answers;
    const std::uint64_t bytes =
        without_headers(total->rx_bytes - total->rx_bytes_after_end, frames);
    return gib_per_second(bytes - std::min(bytes, total->rx_error_bytes));
  }
  [[nodiscard]] double tx_wire_gib_per_second() const noexcept {
    return gib_per_second(total->tx_bytes);
  }
  [[nodiscard]] double rx_wire_gib_per_second() const noexcept {
    return gib_per_second(total->rx_bytes - total->rx_bytes_after_end);
  }
  [[nodiscard]] double million_operations_per_second() const noexcept {
    return per_second(static_cast<double>(total->answered - total->answered_after_end), duration) /
           1e6;
  }
  [[nodiscard]] double valid_per_second() const noexcept {
    return per_second(static_cast<double>(total->valid - total->valid_after_end), duration);
  }

  /// The mean number of requests in flight: as counted while they were, and as Little's law has it
  /// from the number of responses and their service time. They agree unless requests were lost or
  /// mixed up.
  [[nodiscard]] double mean_in_flight() const noexcept {
    return per_second(total->in_flight_ns / 1e9, total->end - total->begin);
  }
  [[nodiscard]] double in_flight_by_littles_law() const noexcept {
    const double waited_ns =
        static_cast<double>(total->service.count()) * total->service.mean().count();
    return per_second(waited_ns / 1e9, total->end - total->begin);
  }

  /// Requests of an open loop that had no response when the last one became due, although they had
  /// time for one: 50 ms, or twice the p10 of the service time if that is longer.
  [[nodiscard]] std::uint64_t unfinished() const noexcept {
    const core::Duration usual = std::max(2 * total->service.percentile(0.1), kUsualResponse);
    return total->unfinished -
           std::min(total->unfinished, total->unfinished_age.count_up_to(usual));
  }
  /// Returns the figures for the verdict. `offered`: requests a second; none: a closed loop.
  [[nodiscard]] LoadSeen load_seen(std::optional<double> offered,
                                   core::Duration lag_tolerance) const noexcept {
    LoadSeen seen;
    seen.offered = offered;
    seen.achieved = valid_per_second();
    seen.timed = total->service.count();
    seen.due = total->due;
    seen.noticed_late = total->noticed_late;
    seen.held_back = total->held_back;
    seen.never_sent = total->never_sent;
    seen.unfinished = unfinished();
    seen.lag_p99 = total->lag.percentile(0.99);
    seen.tolerance = lag_tolerance;
    seen.busy = busy;
    return seen;
  }

  /// Responses with other bytes than expected, and what is no response.
  [[nodiscard]] std::uint64_t wrong() const noexcept {
    return total->errors.of(ErrorKind::mismatch) + total->errors.of(ErrorKind::bad_frame);
  }
  [[nodiscard]] bool has_errors() const noexcept {
    return !faults.empty() || total->errors.total() != 0;
  }

 private:
  [[nodiscard]] double gib_per_second(std::uint64_t bytes) const noexcept {
    return per_second(static_cast<double>(bytes), duration) / kGiB;
  }
  /// The payloads in `bytes` of `frames` frames; 0 if a run ended within the first frame.
  [[nodiscard]] std::uint64_t without_headers(std::uint64_t bytes,
                                              std::uint64_t frames) const noexcept {
    const std::uint64_t headers =
        frames * (udp ? protocol::kDatagramHeaderSize : protocol::kFrameHeaderSize);
    return bytes - std::min(bytes, headers);
  }
};

}  // namespace offload::client
