#include "apps/client/run/run_result.hpp"

namespace offload::client {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

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

double RunResult::in_flight_by_littles_law() const noexcept {
  const double waited_ns =
      static_cast<double>(total->service.count()) * total->service.mean().count();
  return per_second(waited_ns / 1e9, total->end - total->begin);
}

}  // namespace offload::client
