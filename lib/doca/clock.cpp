#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <optional>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "core/error.hpp"
#include "doca/device.hpp"
#include "doca/guard.hpp"
#include "doca/include/doca_clock.h"
#include "doca/rdma/rdma_device.hpp"
#include "rdma/verbs/device_clock.hpp"

using namespace offload::doca;  // NOLINT(google-build-using-namespace): the calls have no namespace
using offload::core::Error;
using offload::core::ErrorCode;
using offload::rdma::DeviceClock;

/// The clocks of a device, which for a host device are the system's.
struct doca_clock {
  /// The const_cast is safe: the program does not see the count of users and the open RDMA device.
  explicit doca_clock(const doca_dev& dev) : device(const_cast<doca_dev&>(dev)) {
    if (!dev.is_rdma()) return;
    try {
      card.emplace(device.get()->rdma().device);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::not_supported) throw;  // the host's clocks are there
    }
  }

  DeviceUse device;
  std::optional<DeviceClock> card;
};

namespace {

constexpr std::uint64_t kClocksOfDevice =
    DOCA_CLOCK_NIC_FREE_RUNNING | DOCA_CLOCK_NIC_REAL_TIME | DOCA_CLOCK_NIC_DPA_TIMER;
constexpr std::int64_t kBillion = 1'000'000'000;
/// Readings of a pair, of which the closest counts: an interrupt may come between two of them.
constexpr int kAttempts = 8;

std::int64_t host_clock(clockid_t clock) {
  timespec now{};
  offload::core::check_errno(::clock_gettime(clock, &now), "clock_gettime");
  return now.tv_sec * kBillion + now.tv_nsec;
}

std::int64_t host_counter() noexcept {
#if defined(__x86_64__)
  return static_cast<std::int64_t>(__rdtsc());
#elif defined(__aarch64__)
  std::int64_t counter = 0;
  asm volatile("isb; mrs %0, cntvct_el0" : "=r"(counter) : : "memory");
  return counter;
#endif
}

/// Reads a clock, in nanoseconds or, of the counter, in cycles. Throws Error.
std::int64_t read_clock(const doca_clock& clock, std::uint64_t type) {
  const bool is_host = !clock.device.get()->is_rdma();
  switch (type) {
    case DOCA_CLOCK_NIC_FREE_RUNNING:
      if (clock.card) return clock.card->now().count();
      if (is_host) return host_clock(CLOCK_MONOTONIC_RAW);
      break;
    case DOCA_CLOCK_NIC_REAL_TIME:
      if (is_host) return host_clock(CLOCK_REALTIME);
      break;
    case DOCA_CLOCK_HOST_COUNTER_CYCLES: return host_counter();
    case DOCA_CLOCK_HOST_REAL_TIME: return host_clock(CLOCK_REALTIME);
    case DOCA_CLOCK_HOST_MONOTONIC: return host_clock(CLOCK_MONOTONIC);
    case DOCA_CLOCK_HOST_MONOTONIC_RAW: return host_clock(CLOCK_MONOTONIC_RAW);
    default: break;
  }
  throw Error(ErrorCode::not_supported, "the device does not have the clock");
}

doca_clock_timespec_t to_doca_time(std::int64_t time, std::uint64_t type) noexcept {
  doca_clock_timespec_t result{};
  if (type == DOCA_CLOCK_HOST_COUNTER_CYCLES) {
    result.counter = static_cast<std::uint64_t>(time);
  } else {
    result.ts = {time / kBillion, time % kBillion};
  }
  return result;
}

/// Two clocks at one moment.
struct ClockPair {
  std::int64_t primary = 0;
  std::int64_t device = 0;
  std::int64_t margin = 0;
};

ClockPair read_pair(const doca_clock& clock, std::uint64_t primary, std::uint64_t of_device) {
  const std::int64_t before = read_clock(clock, primary);
  const std::int64_t device = read_clock(clock, of_device);
  const std::int64_t spent = std::max<std::int64_t>(read_clock(clock, primary) - before, 0);
  return {before + spent / 2, device, (spent + 1) / 2};
}

}  // namespace

doca_error_t doca_clock_cap_nic_free_running_is_supported(const doca_devinfo* devinfo) {
  if (devinfo == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (devinfo->device.kind != offload::device::Kind::rdma) return DOCA_SUCCESS;
  return guarded(__func__, [&] {
    const offload::rdma::DeviceContext context(devinfo->device);
    static_cast<void>(DeviceClock(context));
  });
}

doca_error_t doca_clock_cap_nic_real_time_is_supported(const doca_devinfo* devinfo) {
  if (devinfo == nullptr) return DOCA_ERROR_INVALID_VALUE;
  const bool is_rdma = devinfo->device.kind == offload::device::Kind::rdma;
  return is_rdma ? DOCA_ERROR_NOT_SUPPORTED : DOCA_SUCCESS;
}

doca_error_t doca_clock_cap_nic_dpa_timer_is_supported(const doca_devinfo* devinfo) {
  return devinfo == nullptr ? DOCA_ERROR_INVALID_VALUE : DOCA_ERROR_NOT_SUPPORTED;
}

doca_error_t doca_clock_create(const doca_dev* dev, doca_clock** clock) {
  if (any_null(dev, clock)) return DOCA_ERROR_INVALID_VALUE;
  return guarded(__func__, [&] { *clock = new doca_clock(*dev); });
}

doca_error_t doca_clock_destroy(doca_clock* clock) {
  if (clock == nullptr) return DOCA_ERROR_INVALID_VALUE;
  delete clock;
  return DOCA_SUCCESS;
}

doca_error_t doca_clock_get_timestamp(const doca_clock* clock, uint64_t clock_type,
                                      doca_clock_timespec_t* clock_ts) {
  if (any_null(clock, clock_ts)) return DOCA_ERROR_INVALID_VALUE;
  return guarded(__func__,
                 [&] { *clock_ts = to_doca_time(read_clock(*clock, clock_type), clock_type); });
}

doca_error_t doca_clock_get_crosstimestamp(const doca_clock* clock, uint64_t primary_clock_type,
                                           uint64_t nic_clock_type,
                                           doca_clock_timespec_t* primary_clock_ts,
                                           doca_clock_timespec_t* nic_clock_ts,
                                           uint64_t* error_margin_nsecs) {
  if (any_null(clock, primary_clock_ts, nic_clock_ts, error_margin_nsecs) ||
      (nic_clock_type & kClocksOfDevice) == 0) {
    return DOCA_ERROR_INVALID_VALUE;
  }
  return guarded(__func__, [&] {
    ClockPair best = read_pair(*clock, primary_clock_type, nic_clock_type);
    for (int attempt = 1; attempt < kAttempts; ++attempt) {
      const ClockPair next = read_pair(*clock, primary_clock_type, nic_clock_type);
      if (next.margin < best.margin) best = next;
    }
    *primary_clock_ts = to_doca_time(best.primary, primary_clock_type);
    *nic_clock_ts = to_doca_time(best.device, nic_clock_type);
    *error_margin_nsecs = static_cast<std::uint64_t>(best.margin);
  });
}
