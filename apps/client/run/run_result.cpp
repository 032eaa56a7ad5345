#include "apps/client/run/run_result.hpp"

#include <algorithm>

namespace offload::client {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;
/// A server without a queue may take that long, however fast it usually is.
constexpr core::Duration kUsualResponse = std::chrono::milliseconds(50);

double per_second(double amount, core::Duration duration) noexcept {
  const double seconds = core::to_seconds(duration);
  return seconds > 0 ? amount / seconds : 0;
}

}  // namespace

double RunResult::tx_gib_per_second() const noexcept {
  return per_second(static_cast<double>(total->tx_bytes), duration) / kGiB;
}

double RunResult::rx_gib_per_second() const noexcept {
  return per_second(static_cast<double>(total->rx_bytes - total->rx_bytes_after_end), duration) /
         kGiB;
}

double RunResult::million_operations_per_second() const noexcept {
  return per_second(static_cast<double>(total->answered - total->answered_after_end), duration) /
         1e6;
}

double RunResult::valid_per_second() const noexcept {
  return per_second(static_cast<double>(total->valid - total->valid_after_end), duration);
}

double RunResult::mean_in_flight() const noexcept {
  return per_second(total->in_flight_ns / 1e9, total->end - total->begin);
}

std::uint64_t RunResult::unfinished() const noexcept {
  const core::Duration usual = std::max(2 * total->service.percentile(0.1), kUsualResponse);
  return total->unfinished - std::min(total->unfinished, total->unfinished_age.count_up_to(usual));
}

LoadSeen RunResult::load_seen(std::optional<double> offered,
                              core::Duration lag_tolerance) const noexcept {
  LoadSeen seen;
  seen.offered = offered;
  seen.achieved = valid_per_second();
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

double RunResult::in_flight_by_littles_law() const noexcept {
  const double waited_ns =
      static_cast<double>(total->service.count()) * total->service.mean().count();
  return per_second(waited_ns / 1e9, total->end - total->begin);
}

}  // namespace offload::client
