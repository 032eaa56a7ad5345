/// Verbs: contexts, protection domains, completion queues and queue pairs of an RDMA device.
///
/// An object is made from an attribute object, which the program fills and may destroy afterwards.
/// Data is posted and polled by doca_verbs_bridge.h. libibverbs makes the queues; those with an
/// external UAR are made by the card's own commands (devx), and the library posts to their rings
/// itself. A queue pair with a UAR needs completion queues with a UAR, and one without needs them
/// without.
///
/// One thread at a time uses a completion queue and the queue pairs that complete into it.
///
/// All calls return DOCA_ERROR_INVALID_VALUE if a pointer is NULL, and all that destroy an object
/// return DOCA_ERROR_IN_USE while another object uses it.
#ifndef DOCA_VERBS_H_
#define DOCA_VERBS_H_

#include <stdint.h>

#include "doca_dev.h"
#include "doca_error.h"
#include "doca_types.h"
#include "doca_uar.h"
#include "doca_umem.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct doca_verbs_context;
struct doca_verbs_pd;
struct doca_verbs_cq;
struct doca_verbs_qp;
struct doca_verbs_cq_attr;
struct doca_verbs_qp_init_attr;
struct doca_verbs_qp_attr;
struct doca_verbs_ah_attr;
struct doca_verbs_device_attr;

/// An address of a port in the order of the network.
struct doca_verbs_gid {
  uint8_t raw[DOCA_GID_BYTE_LENGTH];
};

enum doca_verbs_context_create_flags { DOCA_VERBS_CONTEXT_CREATE_FLAGS_NONE = 0 };

/// The kind of a peer's address.
enum doca_verbs_addr_type {
  DOCA_VERBS_ADDR_TYPE_IPv4 = 0,       ///< RoCE, by a GID
  DOCA_VERBS_ADDR_TYPE_IPv6 = 1,       ///< RoCE, by a GID
  DOCA_VERBS_ADDR_TYPE_IB_NO_GRH = 2,  ///< InfiniBand, by a LID
};

/// Bytes of an entry of a completion queue.
enum doca_verbs_cq_entry_size { DOCA_VERBS_CQ_ENTRY_SIZE_64 = 64 };

enum doca_verbs_qp_type {
  DOCA_VERBS_QP_TYPE_RC = 0,  ///< a reliable connection
};

enum doca_verbs_qp_state {
  DOCA_VERBS_QP_STATE_RST = 0,
  DOCA_VERBS_QP_STATE_INIT = 1,
  DOCA_VERBS_QP_STATE_RTR = 2,  ///< ready to receive
  DOCA_VERBS_QP_STATE_RTS = 3,  ///< ready to send
  DOCA_VERBS_QP_STATE_ERR = 4,
};

/// The atomic operations that a peer may do.
enum doca_verbs_qp_atomic_mode {
  DOCA_VERBS_QP_ATOMIC_MODE_NONE = 0,
  DOCA_VERBS_QP_ATOMIC_MODE_IB_SPEC = 1,  ///< on 8 bytes
};

/// The place from which a card reads how many entries were posted.
enum doca_verbs_qp_send_dbr_mode {
  DOCA_VERBS_QP_SEND_DBR_MODE_DBR_VALID = 0,   ///< a record in memory
  DOCA_VERBS_QP_SEND_DBR_MODE_NO_DBR_EXT = 1,  ///< the doorbell; with an external data path
};

/// The longest packet on a path, bytes of data.
enum doca_mtu_size {
  DOCA_MTU_SIZE_256_BYTES = 0,
  DOCA_MTU_SIZE_512_BYTES = 1,
  DOCA_MTU_SIZE_1K_BYTES = 2,
  DOCA_MTU_SIZE_2K_BYTES = 3,
  DOCA_MTU_SIZE_4K_BYTES = 4,
};

/// The attributes that doca_verbs_qp_modify() changes; they are combined.
enum doca_verbs_qp_attr_mask {
  DOCA_VERBS_QP_ATTR_NEXT_STATE = 1 << 0,
  DOCA_VERBS_QP_ATTR_ALLOW_REMOTE_WRITE = 1 << 1,
  DOCA_VERBS_QP_ATTR_ALLOW_REMOTE_READ = 1 << 2,
  DOCA_VERBS_QP_ATTR_PKEY_INDEX = 1 << 3,
  DOCA_VERBS_QP_ATTR_PORT_NUM = 1 << 4,
  DOCA_VERBS_QP_ATTR_RQ_PSN = 1 << 5,
  DOCA_VERBS_QP_ATTR_DEST_QP_NUM = 1 << 6,
  DOCA_VERBS_QP_ATTR_MIN_RNR_TIMER = 1 << 7,
  DOCA_VERBS_QP_ATTR_PATH_MTU = 1 << 8,
  DOCA_VERBS_QP_ATTR_AH_ATTR = 1 << 9,
  DOCA_VERBS_QP_ATTR_SQ_PSN = 1 << 10,
  DOCA_VERBS_QP_ATTR_ACK_TIMEOUT = 1 << 11,
  DOCA_VERBS_QP_ATTR_RETRY_CNT = 1 << 12,
  DOCA_VERBS_QP_ATTR_RNR_RETRY = 1 << 13,
  DOCA_VERBS_QP_ATTR_ATOMIC_MODE = 1 << 14,
  DOCA_VERBS_QP_ATTR_MAX_QP_RD_ATOMIC = 1 << 15,
  DOCA_VERBS_QP_ATTR_MAX_DEST_RD_ATOMIC = 1 << 16,
};

/// Opens an RDMA device. `flags`: DOCA_VERBS_CONTEXT_CREATE_FLAGS_NONE, or
/// DOCA_ERROR_INVALID_VALUE. DOCA_ERROR_NOT_SUPPORTED for a host device.
doca_error_t doca_verbs_context_create(struct doca_devinfo* devinfo, uint32_t flags,
                                       struct doca_verbs_context** verbs_context);
doca_error_t doca_verbs_context_destroy(struct doca_verbs_context* verbs_context);

/// Queries the limits and abilities of the device. doca_verbs_device_attr_free() frees them.
doca_error_t doca_verbs_query_device(struct doca_verbs_context* verbs_context,
                                     struct doca_verbs_device_attr** verbs_device_attr);
doca_error_t doca_verbs_device_attr_free(struct doca_verbs_device_attr* verbs_device_attr);
/// Return how many reads and atomics of a queue pair can be outstanding, as their target and as
/// their source; 0 for NULL.
uint32_t doca_verbs_device_attr_get_max_qp_rd_atom(
    const struct doca_verbs_device_attr* verbs_device_attr);
uint32_t doca_verbs_device_attr_get_max_qp_init_rd_atom(
    const struct doca_verbs_device_attr* verbs_device_attr);
/// DOCA_SUCCESS if received data can be in a completion, else DOCA_ERROR_NOT_SUPPORTED; here always
/// that.
doca_error_t doca_verbs_device_attr_get_is_cqe_inline_supported(
    const struct doca_verbs_device_attr* verbs_device_attr);
/// DOCA_SUCCESS if queue pairs can have that mode, else DOCA_ERROR_NOT_SUPPORTED.
doca_error_t doca_verbs_device_attr_get_is_send_dbr_mode_supported(
    const struct doca_verbs_device_attr* verbs_device_attr,
    enum doca_verbs_qp_send_dbr_mode send_dbr_mode);

doca_error_t doca_verbs_pd_create(struct doca_verbs_context* verbs_context,
                                  struct doca_verbs_pd** verbs_pd);
doca_error_t doca_verbs_pd_destroy(struct doca_verbs_pd* verbs_pd);
/// Makes an open device whose protection domain is this one. doca_dev_close() closes it, before the
/// domain is destroyed. DOCA_ERROR_NOT_FOUND if the device has gone.
doca_error_t doca_verbs_pd_as_doca_dev(struct doca_verbs_pd* verbs_pd, struct doca_dev** dev);

/// The attributes of a completion queue. The setters of attribute objects return
/// DOCA_ERROR_INVALID_VALUE for values that no device allows.
doca_error_t doca_verbs_cq_attr_create(struct doca_verbs_cq_attr** cq_attr);
doca_error_t doca_verbs_cq_attr_destroy(struct doca_verbs_cq_attr* cq_attr);
/// Sets how many completions it holds at least.
doca_error_t doca_verbs_cq_attr_set_cq_size(struct doca_verbs_cq_attr* cq_attr, uint32_t cq_size);
doca_error_t doca_verbs_cq_attr_set_entry_size(struct doca_verbs_cq_attr* cq_attr,
                                               enum doca_verbs_cq_entry_size entry_size);
/// With 1, the program or its kernels post and poll instead of the library: the card's own commands
/// make the queue, in an external UMEM. So for queue pairs, whose queues have it too.
doca_error_t doca_verbs_cq_attr_set_external_datapath_en(struct doca_verbs_cq_attr* cq_attr,
                                                         uint8_t external_datapath_en);
doca_error_t doca_verbs_cq_attr_set_external_uar(struct doca_verbs_cq_attr* cq_attr,
                                                 struct doca_uar* external_uar);

/// Sets the memory of a queue with an external data path, from a byte of the UMEM on: a page of the
/// card (4096 bytes). It has the completions, of 64 bytes each, which the program has marked as
/// invalid, and behind them 8 bytes for the record of the consumer.
doca_error_t doca_verbs_cq_attr_set_external_umem(struct doca_verbs_cq_attr* cq_attr,
                                                  struct doca_umem* external_umem,
                                                  uint64_t external_umem_offset);
/// With 1, the card does not look whether there is room for a completion; with an external data
/// path.
doca_error_t doca_verbs_cq_attr_set_cq_overrun(struct doca_verbs_cq_attr* cq_attr, uint8_t overrun);

/// DOCA_ERROR_INVALID_VALUE without a size, or with a UAR of another context. With an external data
/// path also without a UMEM of the context that has room, and for a size that is no power of two;
/// DOCA_ERROR_NOT_SUPPORTED if the device is no mlx5 card. Without one, the memory and the overrun
/// of the attributes have no effect.
doca_error_t doca_verbs_cq_create(struct doca_verbs_context* verbs_context,
                                  struct doca_verbs_cq_attr* cq_attr,
                                  struct doca_verbs_cq** verbs_cq);
doca_error_t doca_verbs_cq_destroy(struct doca_verbs_cq* verbs_cq);
/// Returns the card's number of the queue; 0 for NULL, and if libibverbs made it.
uint32_t doca_verbs_cq_get_cqn(const struct doca_verbs_cq* verbs_cq);

/// The attributes of a peer's address. All are 0 at first.
doca_error_t doca_verbs_ah_attr_create(struct doca_verbs_context* verbs_context,
                                       struct doca_verbs_ah_attr** ah_attr);
doca_error_t doca_verbs_ah_attr_destroy(struct doca_verbs_ah_attr* ah_attr);
doca_error_t doca_verbs_ah_attr_set_addr_type(struct doca_verbs_ah_attr* ah_attr,
                                              enum doca_verbs_addr_type addr_type);
doca_error_t doca_verbs_ah_attr_set_gid(struct doca_verbs_ah_attr* ah_attr,
                                        struct doca_verbs_gid gid);
doca_error_t doca_verbs_ah_attr_set_dlid(struct doca_verbs_ah_attr* ah_attr, uint32_t dlid);
/// Sets the index of the own address in the port's table of GIDs.
doca_error_t doca_verbs_ah_attr_set_sgid_index(struct doca_verbs_ah_attr* ah_attr,
                                               uint8_t sgid_index);
doca_error_t doca_verbs_ah_attr_set_hop_limit(struct doca_verbs_ah_attr* ah_attr,
                                              uint8_t hop_limit);
doca_error_t doca_verbs_ah_attr_set_traffic_class(struct doca_verbs_ah_attr* ah_attr,
                                                  uint8_t traffic_class);

/// The attributes of a new queue pair. A queue whose size is not set has no entries, and needs no
/// completion queue.
doca_error_t doca_verbs_qp_init_attr_create(struct doca_verbs_qp_init_attr** qp_init_attr);
doca_error_t doca_verbs_qp_init_attr_destroy(struct doca_verbs_qp_init_attr* qp_init_attr);
doca_error_t doca_verbs_qp_init_attr_set_pd(struct doca_verbs_qp_init_attr* qp_init_attr,
                                            struct doca_verbs_pd* pd);
doca_error_t doca_verbs_qp_init_attr_set_send_cq(struct doca_verbs_qp_init_attr* qp_init_attr,
                                                 struct doca_verbs_cq* send_cq);
doca_error_t doca_verbs_qp_init_attr_set_receive_cq(struct doca_verbs_qp_init_attr* qp_init_attr,
                                                    struct doca_verbs_cq* receive_cq);
/// Set the number of outstanding work requests.
doca_error_t doca_verbs_qp_init_attr_set_sq_wr(struct doca_verbs_qp_init_attr* qp_init_attr,
                                               uint32_t sq_wr);
doca_error_t doca_verbs_qp_init_attr_set_rq_wr(struct doca_verbs_qp_init_attr* qp_init_attr,
                                               uint32_t rq_wr);
/// Set the number of buffers of a work request; 1 at first.
doca_error_t doca_verbs_qp_init_attr_set_send_max_sges(struct doca_verbs_qp_init_attr* qp_init_attr,
                                                       uint32_t send_max_sges);
/// With an external UAR, a receive has one buffer, or the creation returns
/// DOCA_ERROR_NOT_SUPPORTED.
doca_error_t doca_verbs_qp_init_attr_set_receive_max_sges(
    struct doca_verbs_qp_init_attr* qp_init_attr, uint32_t receive_max_sges);
/// With an external UAR, more than 0 bytes make the creation return DOCA_ERROR_NOT_SUPPORTED.
doca_error_t doca_verbs_qp_init_attr_set_max_inline_data(
    struct doca_verbs_qp_init_attr* qp_init_attr, uint32_t max_inline_data);
doca_error_t doca_verbs_qp_init_attr_set_qp_type(struct doca_verbs_qp_init_attr* qp_init_attr,
                                                 uint32_t qp_type);
/// With 1, each send makes a completion, not only those that ask for it.
doca_error_t doca_verbs_qp_init_attr_set_sq_sig_all(struct doca_verbs_qp_init_attr* qp_init_attr,
                                                    uint8_t sq_sig_all);
doca_error_t doca_verbs_qp_init_attr_set_external_datapath_en(
    struct doca_verbs_qp_init_attr* qp_init_attr, uint8_t external_datapath_en);
doca_error_t doca_verbs_qp_init_attr_set_external_uar(struct doca_verbs_qp_init_attr* qp_init_attr,
                                                      struct doca_uar* external_uar);

/// Set the memory of a queue pair with an external data path, from a byte of a UMEM on: the receives,
/// of 16 bytes each, then the sends, of 64 bytes each; and 8 bytes for the records of receives and
/// sends, which are 0.
doca_error_t doca_verbs_qp_init_attr_set_external_umem(struct doca_verbs_qp_init_attr* qp_init_attr,
                                                       struct doca_umem* external_umem,
                                                       uint64_t external_umem_offset);
doca_error_t doca_verbs_qp_init_attr_set_external_dbr_umem(
    struct doca_verbs_qp_init_attr* qp_init_attr, struct doca_umem* external_umem,
    uint64_t external_umem_offset);
/// With 1, the creation returns DOCA_ERROR_NOT_SUPPORTED: received data is not put into completions.
doca_error_t doca_verbs_qp_init_attr_set_cqe_inline(struct doca_verbs_qp_init_attr* qp_init_attr,
                                                    uint8_t cqe_inline);
/// With 1, its entries may wait for completions of other queues; with an external data path or UAR
/// they may wherever the card can, and the creation returns DOCA_ERROR_NOT_SUPPORTED if it cannot.
doca_error_t doca_verbs_qp_init_attr_set_core_direct_master(
    struct doca_verbs_qp_init_attr* qp_init_attr, uint8_t core_direct_master);
doca_error_t doca_verbs_qp_init_attr_set_send_dbr_mode(
    struct doca_verbs_qp_init_attr* qp_init_attr, enum doca_verbs_qp_send_dbr_mode send_dbr_mode);

/// DOCA_ERROR_INVALID_VALUE without a protection domain, or a completion queue for a queue that has
/// entries, and if objects are of different contexts or were not made in the same way: by
/// libibverbs, with a UAR, or with an external data path. With that it needs a UAR and both UMEMs,
/// its sizes are powers of two, with at least 4 receives, and its entries have one buffer.
doca_error_t doca_verbs_qp_create(struct doca_verbs_context* verbs_context,
                                  struct doca_verbs_qp_init_attr* qp_init_attr,
                                  struct doca_verbs_qp** verbs_qp);
/// DOCA_ERROR_IN_USE while it is exported to a GPU.
doca_error_t doca_verbs_qp_destroy(struct doca_verbs_qp* verbs_qp);
/// Returns its number, which peers connect to; 0 for NULL.
uint32_t doca_verbs_qp_get_qpn(const struct doca_verbs_qp* verbs_qp);

/// Attributes to be changed. All are 0 at first, but the port is 1.
doca_error_t doca_verbs_qp_attr_create(struct doca_verbs_qp_attr** qp_attr);
doca_error_t doca_verbs_qp_attr_destroy(struct doca_verbs_qp_attr* qp_attr);
doca_error_t doca_verbs_qp_attr_set_next_state(struct doca_verbs_qp_attr* qp_attr,
                                               enum doca_verbs_qp_state next_state);
doca_error_t doca_verbs_qp_attr_set_path_mtu(struct doca_verbs_qp_attr* qp_attr,
                                             enum doca_mtu_size path_mtu);
/// Packet sequence numbers and numbers of queue pairs have 24 bits.
doca_error_t doca_verbs_qp_attr_set_rq_psn(struct doca_verbs_qp_attr* qp_attr, uint32_t rq_psn);
doca_error_t doca_verbs_qp_attr_set_sq_psn(struct doca_verbs_qp_attr* qp_attr, uint32_t sq_psn);
doca_error_t doca_verbs_qp_attr_set_dest_qp_num(struct doca_verbs_qp_attr* qp_attr,
                                                uint32_t dest_qp_num);
doca_error_t doca_verbs_qp_attr_set_allow_remote_write(struct doca_verbs_qp_attr* qp_attr,
                                                       uint8_t allow_remote_write);
doca_error_t doca_verbs_qp_attr_set_allow_remote_read(struct doca_verbs_qp_attr* qp_attr,
                                                      uint8_t allow_remote_read);
doca_error_t doca_verbs_qp_attr_set_port_num(struct doca_verbs_qp_attr* qp_attr, uint16_t port_num);
/// Codes of 5 bits, as InfiniBand has them.
doca_error_t doca_verbs_qp_attr_set_ack_timeout(struct doca_verbs_qp_attr* qp_attr,
                                                uint16_t ack_timeout);
doca_error_t doca_verbs_qp_attr_set_min_rnr_timer(struct doca_verbs_qp_attr* qp_attr,
                                                  uint16_t min_rnr_timer);
/// At most 7, which for RNR, and on some devices for both, has no end.
doca_error_t doca_verbs_qp_attr_set_retry_cnt(struct doca_verbs_qp_attr* qp_attr,
                                              uint16_t retry_cnt);
doca_error_t doca_verbs_qp_attr_set_rnr_retry(struct doca_verbs_qp_attr* qp_attr,
                                              uint16_t rnr_retry);
/// Its IB_SPEC lets the peer do atomic operations.
doca_error_t doca_verbs_qp_attr_set_atomic_mode(struct doca_verbs_qp_attr* qp_attr,
                                                enum doca_verbs_qp_atomic_mode atomic_mode);
/// Set how many reads and atomics are outstanding, as their source and as their target; 1 where the
/// mask does not name them.
doca_error_t doca_verbs_qp_attr_set_max_rd_atomic(struct doca_verbs_qp_attr* qp_attr,
                                                  uint8_t max_rd_atomic);
doca_error_t doca_verbs_qp_attr_set_max_dest_rd_atomic(struct doca_verbs_qp_attr* qp_attr,
                                                       uint8_t max_dest_rd_atomic);
/// Copies the address: later changes of `ah_attr` have no effect.
doca_error_t doca_verbs_qp_attr_set_ah_attr(struct doca_verbs_qp_attr* qp_attr,
                                            struct doca_verbs_ah_attr* ah_attr);

/// Changes the attributes that `attr_mask` names, of doca_verbs_qp_attr_mask. A new state needs:
/// INIT the port; RTR the peer's number and address, the MTU, the timer and the sequence number;
/// RTS the sequence number, the timeout and both retries. INIT also takes the rights and the atomic
/// mode, RTR and RTS the outstanding reads; further attributes of the mask have no effect.
/// DOCA_ERROR_INVALID_VALUE if one is missing or without a next state, DOCA_ERROR_BAD_STATE if the
/// state does not follow the present one, DOCA_ERROR_NOT_SUPPORTED for RST with an external UAR.
doca_error_t doca_verbs_qp_modify(struct doca_verbs_qp* verbs_qp,
                                  struct doca_verbs_qp_attr* qp_attr, int attr_mask);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
