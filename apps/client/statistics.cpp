#include "apps/client/statistics.hpp"

#include <algorithm>

namespace offload::client {
namespace {

double per_second(std::uint64_t amount, core::Duration duration) noexcept {
  const double seconds = core::to_seconds(duration);
  return seconds > 0 ? static_cast<double>(amount) / seconds : 0;
}

constexpr double kGiB = 1024.0 * 1024 * 1024;

}  // namespace

void Statistics::add(const LoadResult& result, core::TimePoint start) {
  duration = std::max(duration, result.last_response - start);
  operations += result.answered;
  valid += result.valid;
  unanswered += result.sent - result.answered;
  tx_bytes += result.tx_bytes;
  rx_bytes += result.rx_bytes;
  latency.merge(result.latency);
}

double Statistics::tx_gib_per_second() const noexcept {
  return per_second(tx_bytes, duration) / kGiB;
}

double Statistics::rx_gib_per_second() const noexcept {
  return per_second(rx_bytes, duration) / kGiB;
}

double Statistics::million_operations_per_second() const noexcept {
  return per_second(operations, duration) / 1e6;
}

}  // namespace offload::client
