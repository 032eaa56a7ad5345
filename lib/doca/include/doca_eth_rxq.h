/// Receive queues of Ethernet frames: contexts of a device that has a network interface.
///
/// A program receives by tasks (doca_eth_rxq_cpu_data_path.h) or in kernels
/// (doca_eth_rxq_gpu_data_path.h). Frames come from the interface's
/// AF_XDP sockets: this needs root or CAP_NET_RAW, CAP_BPF and CAP_NET_ADMIN, and an interface with
/// one hardware queue (ethtool -L IF combined 1). The environment variable OFFLOAD_DOCA_ETH_RULES
/// says which frames a queue gets, as rules with semicolons between them: "udp dport 4000 to 0;
/// icmp to 1". A rule holds while its queue has a running context; other frames go to the kernel's
/// stack. An interface has 8 queues, whose contexts may be of several threads. Another process
/// cannot use the interface by AF_XDP meanwhile.
///
/// All calls return DOCA_ERROR_INVALID_VALUE if a pointer is NULL. One thread: that of the
/// context's progress engine.
#ifndef DOCA_ETH_RXQ_H_
#define DOCA_ETH_RXQ_H_

#include <stdint.h>

#include "doca_ctx.h"
#include "doca_dev.h"
#include "doca_error.h"
#include "doca_mmap.h"
#include "doca_types.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct doca_eth_rxq;

/// The memory that received frames are written to.
enum doca_eth_rxq_type {
  DOCA_ETH_RXQ_TYPE_CYCLIC = 0,           ///< one buffer for a kernel, again and again
  DOCA_ETH_RXQ_TYPE_MANAGED_MEMPOOL = 1,  ///< buffers of the library: not supported
  DOCA_ETH_RXQ_TYPE_REGULAR = 2           ///< the buffers of tasks: the default
};

/// The processor whose code receives.
enum doca_eth_rxq_data_path_type {
  DOCA_ETH_RXQ_DATA_PATH_TYPE_CPU = 0,
  DOCA_ETH_RXQ_DATA_PATH_TYPE_GPU = 1,
  DOCA_ETH_RXQ_DATA_PATH_TYPE_DPA = 2  ///< not supported
};

/// The most entries of a queue. DOCA_ERROR_NOT_SUPPORTED if the device has no network interface, or
/// the library is built without the extension packets; so below.
doca_error_t doca_eth_rxq_cap_get_max_burst_size(const struct doca_devinfo *devinfo,
                                                 uint32_t *max_burst_size);
/// The longest frame, bytes.
doca_error_t doca_eth_rxq_cap_get_max_packet_size(const struct doca_devinfo *devinfo,
                                                  uint32_t *max_packet_size);
/// DOCA_SUCCESS for DOCA_ETH_RXQ_TYPE_REGULAR with the CPU and DOCA_ETH_RXQ_TYPE_CYCLIC with a GPU,
/// else DOCA_ERROR_NOT_SUPPORTED.
doca_error_t doca_eth_rxq_cap_is_type_supported(
    const struct doca_devinfo *devinfo, enum doca_eth_rxq_type type,
    enum doca_eth_rxq_data_path_type data_path_type);

/// `max_burst_size`: entries of the queue. `max_packet_size`: of a frame, bytes. For tasks both are
/// checked only: 1024 frames wait for all queues of an interface, and a frame has the room of its
/// buffer. For kernels longer frames are dropped.
/// DOCA_ERROR_INVALID_VALUE for 0 or more than the device's most. The start returns
/// DOCA_ERROR_NOT_FOUND if there is no such interface, DOCA_ERROR_NOT_PERMITTED without the
/// privileges, DOCA_ERROR_IN_USE if another process has it, DOCA_ERROR_NOT_SUPPORTED if it has
/// several hardware queues, DOCA_ERROR_INVALID_VALUE for a malformed OFFLOAD_DOCA_ETH_RULES.
doca_error_t doca_eth_rxq_create(struct doca_dev *dev, uint32_t max_burst_size,
                                 uint32_t max_packet_size, struct doca_eth_rxq **eth_rxq);
/// DOCA_ERROR_BAD_STATE if it is not idle, DOCA_ERROR_IN_USE while a graph has a node of it.
doca_error_t doca_eth_rxq_destroy(struct doca_eth_rxq *eth_rxq);
/// NULL for NULL.
struct doca_ctx *doca_eth_rxq_as_doca_ctx(struct doca_eth_rxq *eth_rxq);

// DOCA_ERROR_BAD_STATE if the context is not idle, for all of these.

/// DOCA_ERROR_NOT_SUPPORTED for DOCA_ETH_RXQ_TYPE_MANAGED_MEMPOOL.
doca_error_t doca_eth_rxq_set_type(struct doca_eth_rxq *eth_rxq, enum doca_eth_rxq_type type);
/// The numbers of metadata that a frame has. Nothing sets them here: each is 0.
/// DOCA_ERROR_INVALID_VALUE for more than 8.
doca_error_t doca_eth_rxq_set_metadata_num(struct doca_eth_rxq *eth_rxq, uint8_t metadata_num);
/// Gives frames a hash of their addresses and ports, which the library computes, or none.
doca_error_t doca_eth_rxq_set_rx_hash(struct doca_eth_rxq *eth_rxq, uint8_t enable_rx_hash);
/// Gives frames the time of their receipt, or none: nanoseconds of CLOCK_REALTIME at which the
/// library has taken the frame.
doca_error_t doca_eth_rxq_set_timestamp(struct doca_eth_rxq *eth_rxq, uint8_t enable_timestamp);

/// Sets the memory that a kernel's frames are written to: `length` bytes from `offset` on of a
/// started mmap, which cannot be stopped while the context runs. It has a place of
/// `max_packet_size` bytes, rounded up to 64, for each frame: their number is the largest power of
/// two that fits. DOCA_ERROR_INVALID_VALUE if no place fits, or the mmap has not these bytes.
doca_error_t doca_eth_rxq_set_pkt_buf(struct doca_eth_rxq *eth_rxq, struct doca_mmap *mmap,
                                      uint64_t offset, uint32_t length);
/// Sets the bytes that doca_eth_rxq_set_pkt_buf() needs for `max_burst_size` places: of the type
/// DOCA_ETH_RXQ_TYPE_CYCLIC; DOCA_ERROR_NOT_SUPPORTED for others. `rate`,
/// `pkt_max_process_time`, `log_max_lro_pkt_sz`, `head_size` and `tail_size` have no effect.
/// DOCA_ERROR_INVALID_VALUE for a size of 0, or for more than a device's most.
doca_error_t doca_eth_rxq_estimate_packet_buf_size(enum doca_eth_rxq_type type, uint32_t rate,
                                                   uint32_t pkt_max_process_time,
                                                   uint32_t max_packet_size,
                                                   uint32_t max_burst_size,
                                                   uint8_t log_max_lro_pkt_sz, uint16_t head_size,
                                                   uint16_t tail_size, uint32_t *buf_size);

/// Receives the frames whose rules name this queue, 0 to 7, from now on until the stop.
/// DOCA_ERROR_BAD_STATE if the context is not running, or has a queue; DOCA_ERROR_IN_USE if another
/// context of the interface has the queue, DOCA_ERROR_INVALID_VALUE if there is none.
doca_error_t doca_eth_rxq_apply_queue_id(struct doca_eth_rxq *eth_rxq, uint16_t queue_id);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
