/// Send queues of Ethernet frames: contexts of a device that has a network interface.
///
/// A program sends by tasks (doca_eth_txq_cpu_data_path.h) or in kernels
/// (doca_eth_txq_gpu_data_path.h). Frames go to the interface's AF_XDP
/// sockets, with the conditions of doca_eth_rxq.h. An interface has 8 send queues, each with 1024
/// frames in flight.
///
/// All calls return DOCA_ERROR_INVALID_VALUE if a pointer is NULL. One thread: that of the
/// context's progress engine.
#ifndef DOCA_ETH_TXQ_H_
#define DOCA_ETH_TXQ_H_

#include <stdint.h>

#include "doca_ctx.h"
#include "doca_dev.h"
#include "doca_error.h"
#include "doca_types.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct doca_eth_txq;

enum doca_eth_txq_type {
  DOCA_ETH_TXQ_TYPE_REGULAR = 0  ///< the only one
};

/// The processor whose code sends.
enum doca_eth_txq_data_path_type {
  DOCA_ETH_TXQ_DATA_PATH_TYPE_CPU = 0,
  DOCA_ETH_TXQ_DATA_PATH_TYPE_GPU = 1,
  DOCA_ETH_TXQ_DATA_PATH_TYPE_DPA = 2  ///< not supported
};

/// The part that lets a frame wait until its time.
enum doca_eth_wait_on_time_type {
  DOCA_ETH_WAIT_ON_TIME_TYPE_NONE = 0,
  DOCA_ETH_WAIT_ON_TIME_TYPE_NATIVE = 1,
  DOCA_ETH_WAIT_ON_TIME_TYPE_DPDK = 2
};

/// The most entries of a queue, for lists of at most `max_list_len` buffers.
/// DOCA_ERROR_INVALID_VALUE for lists of more than 32, DOCA_ERROR_NOT_SUPPORTED for a
/// `max_lso_header_size` that is not 0: nothing cuts frames into segments. Also
/// DOCA_ERROR_NOT_SUPPORTED if the device has no network interface, or the library is built without
/// the extension packets; so below.
doca_error_t doca_eth_txq_cap_get_max_burst_size(const struct doca_devinfo *devinfo,
                                                 uint32_t max_list_len,
                                                 uint32_t max_lso_header_size,
                                                 uint32_t *max_burst_size);
/// DOCA_SUCCESS for DOCA_ETH_TXQ_TYPE_REGULAR with the CPU or a GPU, else DOCA_ERROR_NOT_SUPPORTED.
doca_error_t doca_eth_txq_cap_is_type_supported(
    const struct doca_devinfo *devinfo, enum doca_eth_txq_type type,
    enum doca_eth_txq_data_path_type data_path_type);

/// Sets it to DOCA_ETH_WAIT_ON_TIME_TYPE_NATIVE: the library's thread keeps a kernel's frame until
/// its time.
doca_error_t doca_eth_txq_cap_get_wait_on_time_offload_supported(
    const struct doca_devinfo *devinfo, enum doca_eth_wait_on_time_type *wait_on_time_mode);

/// `max_burst_size`: entries of the queue; for tasks it is checked only. For kernels it is rounded
/// up to a power of two. DOCA_ERROR_INVALID_VALUE for 0 or
/// more than the device's most. The start returns the errors of doca_eth_rxq_create(), and
/// DOCA_ERROR_FULL if all send queues of the interface are in use.
doca_error_t doca_eth_txq_create(struct doca_dev *dev, uint32_t max_burst_size,
                                 struct doca_eth_txq **eth_txq);
/// DOCA_ERROR_BAD_STATE if it is not idle, DOCA_ERROR_IN_USE while a graph has a node of it.
doca_error_t doca_eth_txq_destroy(struct doca_eth_txq *eth_txq);
/// NULL for NULL.
struct doca_ctx *doca_eth_txq_as_doca_ctx(struct doca_eth_txq *eth_txq);

// DOCA_ERROR_BAD_STATE if the context is not idle, for all of these.

/// DOCA_ERROR_NOT_SUPPORTED for another type.
doca_error_t doca_eth_txq_set_type(struct doca_eth_txq *eth_txq, enum doca_eth_txq_type type);
/// Lets the library write the checksum of the IPv4 header, or the program.
doca_error_t doca_eth_txq_set_l3_chksum_offload(struct doca_eth_txq *eth_txq,
                                                uint8_t enable_l3_chksum);
/// The same for that of UDP and TCP, in a frame whose IP header is right.
doca_error_t doca_eth_txq_set_l4_chksum_offload(struct doca_eth_txq *eth_txq,
                                                uint8_t enable_l4_chksum);

/// Lets frames of a kernel have a time.
doca_error_t doca_eth_txq_set_wait_on_time_offload(struct doca_eth_txq *eth_txq);
/// Returns the number by which a kernel names a time, nanoseconds of CLOCK_REALTIME: the same.
/// DOCA_ERROR_NOT_SUPPORTED without doca_eth_txq_set_wait_on_time_offload(). Any state.
doca_error_t doca_eth_txq_calculate_timestamp(const struct doca_eth_txq *eth_txq,
                                              uint64_t timestamp_ns,
                                              uint64_t *wait_on_time_value);

/// Takes the number of a queue, which has no effect: frames that are sent are not steered.
/// DOCA_ERROR_BAD_STATE if the context is not running, or has a number.
doca_error_t doca_eth_txq_apply_queue_id(struct doca_eth_txq *eth_txq, uint16_t queue_id);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
