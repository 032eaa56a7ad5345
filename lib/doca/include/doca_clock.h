/// Clocks of a device and of the host, and pairs of their times.
///
/// An RDMA device has the free-running clock that its driver reads; Soft-RoCE has none. A host
/// device stands in for a card: its clocks are those of the system. One thread at a time.
///
/// Calls return DOCA_ERROR_INVALID_VALUE if an argument is NULL.
#ifndef DOCA_CLOCK_H_
#define DOCA_CLOCK_H_

#include <stdint.h>
#include <time.h>

#include "doca_dev.h"
#include "doca_error.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/// The clocks. Those of the device: its free-running clock, which for a host device is
/// CLOCK_MONOTONIC_RAW; its real time, which for a host device is CLOCK_REALTIME and which an RDMA
/// device does not have here; the timer of its DPA processors, which no device has here.
#define DOCA_CLOCK_NIC_FREE_RUNNING (1 << 0)
#define DOCA_CLOCK_NIC_REAL_TIME (1 << 1)
#define DOCA_CLOCK_NIC_DPA_TIMER (1 << 8)
/// Those of the host: the counter of the processor (TSC, or CNTVCT_EL0), CLOCK_REALTIME,
/// CLOCK_MONOTONIC and CLOCK_MONOTONIC_RAW (clock_gettime(2)).
#define DOCA_CLOCK_HOST_COUNTER_CYCLES (1 << 16)
#define DOCA_CLOCK_HOST_REAL_TIME (1 << 17)
#define DOCA_CLOCK_HOST_MONOTONIC (1 << 18)
#define DOCA_CLOCK_HOST_MONOTONIC_RAW (1 << 19)

struct doca_clock;

/// A time: `counter` of DOCA_CLOCK_HOST_COUNTER_CYCLES, `ts` of all others.
union doca_clock_timespec_t {
  struct timespec ts;
  uint64_t counter;
};

/// These return DOCA_ERROR_NOT_SUPPORTED if the device does not have the clock.
doca_error_t doca_clock_cap_nic_free_running_is_supported(const struct doca_devinfo *devinfo);
doca_error_t doca_clock_cap_nic_real_time_is_supported(const struct doca_devinfo *devinfo);
doca_error_t doca_clock_cap_nic_dpa_timer_is_supported(const struct doca_devinfo *devinfo);

/// Opens the clocks of a device and of the host, also for a device without a clock.
doca_error_t doca_clock_create(const struct doca_dev *dev, struct doca_clock **clock);
doca_error_t doca_clock_destroy(struct doca_clock *clock);

/// Reads a clock. DOCA_ERROR_NOT_SUPPORTED for a clock that the device does not have, and for an
/// unknown one.
doca_error_t doca_clock_get_timestamp(const struct doca_clock *clock, uint64_t clock_type,
                                      union doca_clock_timespec_t *clock_ts);
/// Reads a clock of the device between two readings of another clock. `primary_clock_ts` is the
/// middle of the two, and `error_margin_nsecs` half of the time between them, in cycles for
/// DOCA_CLOCK_HOST_COUNTER_CYCLES. It makes several attempts and returns the one with the least margin.
/// DOCA_ERROR_INVALID_VALUE if `nic_clock_type` is a clock of the host; else as
/// doca_clock_get_timestamp().
doca_error_t doca_clock_get_crosstimestamp(const struct doca_clock *clock,
                                           uint64_t primary_clock_type, uint64_t nic_clock_type,
                                           union doca_clock_timespec_t *primary_clock_ts,
                                           union doca_clock_timespec_t *nic_clock_ts,
                                           uint64_t *error_margin_nsecs);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
