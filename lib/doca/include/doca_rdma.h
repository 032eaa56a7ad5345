/// A context for RDMA: messages, and reading and writing of a peer's memory, over connections to
/// peers.
///
/// Its life: create, configure, connect to a progress engine, start; then connect to peers, in one
/// of two ways. Either each side transmits the bytes of doca_rdma_export() to the other, by any
/// means, and calls doca_rdma_connect() with those it got. Or librdmacm does it: one side listens
/// to a port, and the other connects to its address. Received messages of all connections take the
/// receive tasks of the context in the order of their submission.
///
/// A task that fails, other than by a stop or a disconnection, stops its context. A connection
/// stays valid until the context is started again or destroyed, or, once it was disconnected or
/// rejected by a call and its tasks are freed, until the context makes another one. All calls
/// return DOCA_ERROR_INVALID_VALUE if an argument is NULL. Calls that configure return
/// DOCA_ERROR_BAD_STATE if the context is not idle; those that set tasks return DOCA_ERROR_IN_USE
/// while a graph has a node of it. One thread: that of the progress engine.
#ifndef DOCA_RDMA_H_
#define DOCA_RDMA_H_

#include <stddef.h>
#include <stdint.h>

#include "doca_buf.h"
#include "doca_ctx.h"
#include "doca_dev.h"
#include "doca_error.h"
#include "doca_pe.h"
#include "doca_sync_event.h"
#include "doca_types.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct doca_rdma;
struct doca_rdma_connection;
/// An address of a peer that listens.
struct doca_rdma_addr;
/// The context for kernels: doca_gpunetio_dev_rdma.cuh.
struct doca_gpu_dev_rdma;

/// DC is a transport of NVIDIA's cards, which is not supported.
enum doca_rdma_transport_type { DOCA_RDMA_TRANSPORT_TYPE_RC = 0, DOCA_RDMA_TRANSPORT_TYPE_DC = 1 };

/// The kind of message that a receive task has received.
enum doca_rdma_opcode {
  DOCA_RDMA_OPCODE_RECV_SEND = 0,
  DOCA_RDMA_OPCODE_RECV_SEND_WITH_IMM = 1,
  DOCA_RDMA_OPCODE_RECV_WRITE_WITH_IMM = 2
};

/// The notation of an address.
enum doca_rdma_addr_type {
  DOCA_RDMA_ADDR_TYPE_IPv4 = 0,
  DOCA_RDMA_ADDR_TYPE_IPv6 = 1,
  /// The GID of a RoCE device, in the notation of IPv6.
  DOCA_RDMA_ADDR_TYPE_GID = 2
};

/// DOCA_ERROR_NOT_SUPPORTED if it is no RDMA device; the device's errors if it cannot be opened.
doca_error_t doca_rdma_create(struct doca_dev *dev, struct doca_rdma **rdma);
/// DOCA_ERROR_BAD_STATE if it is not idle, DOCA_ERROR_IN_USE while a graph has a node of it.
doca_error_t doca_rdma_destroy(struct doca_rdma *rdma);
/// NULL for NULL.
struct doca_ctx *doca_rdma_as_ctx(struct doca_rdma *rdma);
/// Sets the handle for kernels, which use the context instead of tasks after
/// doca_ctx_set_datapath_on_gpu(). It is valid until the next start or the context's end.
/// DOCA_ERROR_BAD_STATE if the context was not started with a data path on a GPU.
doca_error_t doca_rdma_get_gpu_handle(struct doca_rdma *rdma, struct doca_gpu_dev_rdma **gpu_rdma);

/// Sets what peers may do to memory whose exports they have: flags of doca_access_flag, local ones
/// and those of RDMA. DOCA_ERROR_INVALID_VALUE for others. Default: nothing.
doca_error_t doca_rdma_set_permissions(struct doca_rdma *rdma, uint32_t permissions);
/// Sets the entry of the port's GID table that packets come from. DOCA_ERROR_INVALID_VALUE above
/// 255; the start of a connection fails if the port does not have it. Default: the entry that most
/// networks route, or over a connection that a peer requested the one that it arrived at.
doca_error_t doca_rdma_set_gid_index(struct doca_rdma *rdma, uint32_t gid_index);
/// Is accepted and does nothing: packets have a GRH wherever the peer has a GID.
doca_error_t doca_rdma_set_grh_enabled(struct doca_rdma *rdma, uint8_t grh_enabled);
/// DOCA_ERROR_NOT_SUPPORTED for DC.
doca_error_t doca_rdma_set_transport_type(struct doca_rdma *rdma,
                                          enum doca_rdma_transport_type transport_type);
/// Sets the most tasks other than receives that each connection has in flight, 1 to 32768. The
/// submission of more returns DOCA_ERROR_FULL. Default: 128.
doca_error_t doca_rdma_set_send_queue_size(struct doca_rdma *rdma, uint32_t send_queue_size);
/// Sets the most receive tasks that the context has in flight; else like the send queue's.
doca_error_t doca_rdma_set_recv_queue_size(struct doca_rdma *rdma, uint32_t recv_queue_size);
/// Sets the most connections at a time, 1 to 512. Default: 1.
doca_error_t doca_rdma_set_max_num_connections(struct doca_rdma *rdma,
                                               uint16_t max_num_connections);

/// Makes a connection and describes it for a peer's doca_rdma_connect(). The bytes are valid as
/// long as the connection. DOCA_ERROR_BAD_STATE if the context is not running, DOCA_ERROR_FULL if
/// it has as many connections as it may have.
doca_error_t doca_rdma_export(struct doca_rdma *rdma, const void **local_rdma_conn_details,
                              size_t *local_rdma_conn_details_size,
                              struct doca_rdma_connection **rdma_connection);
/// Connects it to the peer whose description this is. DOCA_ERROR_INVALID_VALUE for bytes that are
/// no description and for a connection of another context, DOCA_ERROR_BAD_STATE if it was not
/// exported or is connected.
doca_error_t doca_rdma_connect(struct doca_rdma *rdma, const void *remote_rdma_conn_details,
                               size_t remote_rdma_conn_details_size,
                               struct doca_rdma_connection *rdma_connection);
/// Callbacks of connections by librdmacm, which come from doca_pe_progress().
/// A peer wants to connect: doca_rdma_connection_accept() or _reject() answers, now or later.
typedef void (*doca_rdma_connection_request_cb_t)(struct doca_rdma_connection *rdma_connection,
                                                  union doca_data ctx_user_data);
/// The connection is established.
typedef void (*doca_rdma_connection_established_cb_t)(struct doca_rdma_connection *rdma_connection,
                                                      union doca_data connection_user_data,
                                                      union doca_data ctx_user_data);
/// It could not be established within 10 seconds; it must not be used after this call.
typedef void (*doca_rdma_connection_failure_cb_t)(struct doca_rdma_connection *rdma_connection,
                                                  union doca_data connection_user_data,
                                                  union doca_data ctx_user_data);
/// The peer has disconnected, or its process has ended; doca_rdma_connection_disconnect() gives the
/// connection back.
typedef void (*doca_rdma_connection_disconnection_cb_t)(
    struct doca_rdma_connection *rdma_connection, union doca_data connection_user_data,
    union doca_data ctx_user_data);

/// Sets the callbacks. `connection_request` may be NULL for a context that does not listen.
doca_error_t doca_rdma_set_connection_state_callbacks(
    struct doca_rdma *rdma, doca_rdma_connection_request_cb_t connection_request,
    doca_rdma_connection_established_cb_t connection_established,
    doca_rdma_connection_failure_cb_t connection_failure,
    doca_rdma_connection_disconnection_cb_t connection_disconnection);
/// Listens to a port at all addresses of the machine. Requests that arrive at another device, or
/// when the context has as many connections as it may have, are rejected. DOCA_ERROR_BAD_STATE if
/// the context is not running or has no callback for requests, DOCA_ERROR_ALREADY_EXIST if it
/// listens to the port, DOCA_ERROR_IN_USE if another one does.
doca_error_t doca_rdma_start_listen_to_port(struct doca_rdma *rdma, uint16_t port);
/// Its connections stay. DOCA_ERROR_NOT_FOUND if the context does not listen to the port.
doca_error_t doca_rdma_stop_listen_to_port(struct doca_rdma *rdma, uint16_t port);
/// Accepts a request. `private_data` of at most 11 bytes is sent to the peer, NULL for none.
/// DOCA_ERROR_BAD_STATE for a connection that is no request. After another error it is rejected.
doca_error_t doca_rdma_connection_accept(struct doca_rdma_connection *rdma_connection,
                                         void *private_data, uint8_t private_data_len);
/// Rejects a request, which must not be used after this call. DOCA_ERROR_BAD_STATE for a connection
/// that is no request.
doca_error_t doca_rdma_connection_reject(struct doca_rdma_connection *rdma_connection);
/// Disconnects, or gives a connection back that the peer has disconnected; it must not be used
/// after this call. Its tasks in flight fail, without stopping the context; so does a receive that a
/// message of it has begun to fill, with DOCA_ERROR_SHUTDOWN.
/// DOCA_ERROR_NOT_SUPPORTED for a connection that librdmacm did not make, DOCA_ERROR_BAD_STATE if
/// it was disconnected by a call.
doca_error_t doca_rdma_connection_disconnect(struct doca_rdma_connection *rdma_connection);
/// Makes the address of a peer: a number, not a name. DOCA_ERROR_INVALID_VALUE for another text.
doca_error_t doca_rdma_addr_create(enum doca_rdma_addr_type addr_type, const char *address,
                                   uint16_t port, struct doca_rdma_addr **addr);
doca_error_t doca_rdma_addr_destroy(struct doca_rdma_addr *addr);
/// Begins to connect to a peer that listens by this library. One of the callbacks for established
/// and failed connections is called, with `connection_user_data`. DOCA_ERROR_BAD_STATE if the
/// context is not running or has no callbacks, DOCA_ERROR_FULL if it has as many connections as it
/// may have.
doca_error_t doca_rdma_connect_to_addr(struct doca_rdma *rdma, struct doca_rdma_addr *addr,
                                       union doca_data connection_user_data);

/// Sets data that callbacks of the connection get, and returns it.
doca_error_t doca_rdma_connection_set_user_data(struct doca_rdma_connection *rdma_connection,
                                                union doca_data connection_user_data);
doca_error_t doca_rdma_connection_get_user_data(const struct doca_rdma_connection *rdma_connection,
                                                union doca_data *connection_user_data);

/// Receives messages.
struct doca_rdma_task_receive;
typedef void (*doca_rdma_task_receive_completion_cb_t)(struct doca_rdma_task_receive *task,
                                                       union doca_data task_user_data,
                                                       union doca_data ctx_user_data);

/// DOCA_SUCCESS if the device has these tasks, else DOCA_ERROR_NOT_SUPPORTED.
doca_error_t doca_rdma_cap_task_receive_is_supported(const struct doca_devinfo *devinfo);
/// Sets the number of tasks, 1 to 65536, and their callbacks.
doca_error_t doca_rdma_task_receive_set_conf(
    struct doca_rdma *rdma, doca_rdma_task_receive_completion_cb_t successful_task_completion_cb,
    doca_rdma_task_receive_completion_cb_t error_task_completion_cb, uint32_t num_tasks);
/// Takes a task. Its submission returns DOCA_ERROR_NOT_PERMITTED for memory without
/// DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, and DOCA_ERROR_INVALID_VALUE for an mmap without the device
/// and for a list of more than 4 buffers. `dst_buf`: messages are written behind its data; NULL for
/// messages without bytes and for the immediates of writes. DOCA_ERROR_BAD_STATE if the context is
/// not running or has no such tasks, DOCA_ERROR_NO_MEMORY if all are allocated.
doca_error_t doca_rdma_task_receive_allocate_init(struct doca_rdma *rdma, struct doca_buf *dst_buf,
                                                  union doca_data user_data,
                                                  struct doca_rdma_task_receive **task);
/// NULL for NULL.
struct doca_task *doca_rdma_task_receive_as_task(struct doca_rdma_task_receive *task);
/// Setters of tasks must not be called while the task is in flight: they log an error and do
/// nothing else.
void doca_rdma_task_receive_set_dst_buf(struct doca_rdma_task_receive *task,
                                        struct doca_buf *dst_buf);
struct doca_buf *doca_rdma_task_receive_get_dst_buf(const struct doca_rdma_task_receive *task);
/// The results of a task that succeeded. The length is that of the message, or of the peer's write.
enum doca_rdma_opcode doca_rdma_task_receive_get_result_opcode(
    const struct doca_rdma_task_receive *task);
uint32_t doca_rdma_task_receive_get_result_len(const struct doca_rdma_task_receive *task);
/// 0 without an immediate.
doca_be32_t doca_rdma_task_receive_get_result_immediate_data(
    const struct doca_rdma_task_receive *task);
const struct doca_rdma_connection *doca_rdma_task_receive_get_result_rdma_connection(
    const struct doca_rdma_task_receive *task);

/// Sends the data of a buffer, or of a list of at most 4, into the next receive of the peer. It
/// fails after some retries, within a second, if the peer has none.
struct doca_rdma_task_send;
typedef void (*doca_rdma_task_send_completion_cb_t)(struct doca_rdma_task_send *task,
                                                    union doca_data task_user_data,
                                                    union doca_data ctx_user_data);

/// DOCA_SUCCESS if the device has these tasks, else DOCA_ERROR_NOT_SUPPORTED.
doca_error_t doca_rdma_cap_task_send_is_supported(const struct doca_devinfo *devinfo);
/// Does the same as doca_rdma_task_receive_set_conf().
doca_error_t doca_rdma_task_send_set_conf(
    struct doca_rdma *rdma, doca_rdma_task_send_completion_cb_t successful_task_completion_cb,
    doca_rdma_task_send_completion_cb_t error_task_completion_cb, uint32_t num_tasks);
/// Takes a task for a connection. Errors: as doca_rdma_task_receive_allocate_init(), and
/// DOCA_ERROR_INVALID_VALUE for a connection of another context.
doca_error_t doca_rdma_task_send_allocate_init(struct doca_rdma *rdma,
                                               struct doca_rdma_connection *rdma_connection,
                                               const struct doca_buf *src_buf,
                                               union doca_data user_data,
                                               struct doca_rdma_task_send **task);
/// NULL for NULL.
struct doca_task *doca_rdma_task_send_as_task(struct doca_rdma_task_send *task);
void doca_rdma_task_send_set_src_buf(struct doca_rdma_task_send *task,
                                     const struct doca_buf *src_buf);
const struct doca_buf *doca_rdma_task_send_get_src_buf(const struct doca_rdma_task_send *task);

/// Does the same with an immediate, which arrives unchanged.
struct doca_rdma_task_send_imm;
typedef void (*doca_rdma_task_send_imm_completion_cb_t)(struct doca_rdma_task_send_imm *task,
                                                        union doca_data task_user_data,
                                                        union doca_data ctx_user_data);

/// DOCA_SUCCESS if the device has these tasks, else DOCA_ERROR_NOT_SUPPORTED.
doca_error_t doca_rdma_cap_task_send_imm_is_supported(const struct doca_devinfo *devinfo);
/// Does the same as doca_rdma_task_receive_set_conf().
doca_error_t doca_rdma_task_send_imm_set_conf(
    struct doca_rdma *rdma, doca_rdma_task_send_imm_completion_cb_t successful_task_completion_cb,
    doca_rdma_task_send_imm_completion_cb_t error_task_completion_cb, uint32_t num_tasks);
/// Takes a task for a connection. Errors: as doca_rdma_task_receive_allocate_init(), and
/// DOCA_ERROR_INVALID_VALUE for a connection of another context.
doca_error_t doca_rdma_task_send_imm_allocate_init(struct doca_rdma *rdma,
                                                   struct doca_rdma_connection *rdma_connection,
                                                   const struct doca_buf *src_buf,
                                                   doca_be32_t immediate_data,
                                                   union doca_data user_data,
                                                   struct doca_rdma_task_send_imm **task);
/// NULL for NULL.
struct doca_task *doca_rdma_task_send_imm_as_task(struct doca_rdma_task_send_imm *task);
void doca_rdma_task_send_imm_set_src_buf(struct doca_rdma_task_send_imm *task,
                                         const struct doca_buf *src_buf);
const struct doca_buf *doca_rdma_task_send_imm_get_src_buf(
    const struct doca_rdma_task_send_imm *task);
void doca_rdma_task_send_imm_set_immediate_data(struct doca_rdma_task_send_imm *task,
                                                doca_be32_t immediate_data);
doca_be32_t doca_rdma_task_send_imm_get_immediate_data(const struct doca_rdma_task_send_imm *task);

/// Reads the data of a buffer in memory that a peer exported behind the data of a buffer here, or
/// of a list of at most 4. Submissions return DOCA_ERROR_NOT_PERMITTED for memory without the right
/// to it, and DOCA_ERROR_INVALID_VALUE for buffers that are not in such memory or are too short.
struct doca_rdma_task_read;
typedef void (*doca_rdma_task_read_completion_cb_t)(struct doca_rdma_task_read *task,
                                                    union doca_data task_user_data,
                                                    union doca_data ctx_user_data);

/// DOCA_SUCCESS if the device has these tasks, else DOCA_ERROR_NOT_SUPPORTED.
doca_error_t doca_rdma_cap_task_read_is_supported(const struct doca_devinfo *devinfo);
/// Does the same as doca_rdma_task_receive_set_conf().
doca_error_t doca_rdma_task_read_set_conf(
    struct doca_rdma *rdma, doca_rdma_task_read_completion_cb_t successful_task_completion_cb,
    doca_rdma_task_read_completion_cb_t error_task_completion_cb, uint32_t num_tasks);
/// Takes a task for a connection. Errors: as doca_rdma_task_receive_allocate_init(), and
/// DOCA_ERROR_INVALID_VALUE for a connection of another context.
doca_error_t doca_rdma_task_read_allocate_init(struct doca_rdma *rdma,
                                               struct doca_rdma_connection *rdma_connection,
                                               const struct doca_buf *src_buf,
                                               struct doca_buf *dst_buf, union doca_data user_data,
                                               struct doca_rdma_task_read **task);
/// NULL for NULL.
struct doca_task *doca_rdma_task_read_as_task(struct doca_rdma_task_read *task);
void doca_rdma_task_read_set_src_buf(struct doca_rdma_task_read *task,
                                     const struct doca_buf *src_buf);
const struct doca_buf *doca_rdma_task_read_get_src_buf(const struct doca_rdma_task_read *task);
void doca_rdma_task_read_set_dst_buf(struct doca_rdma_task_read *task, struct doca_buf *dst_buf);
struct doca_buf *doca_rdma_task_read_get_dst_buf(const struct doca_rdma_task_read *task);

/// Writes the data of a buffer here, or of a list of at most 4, behind the data of a buffer in
/// memory that a peer exported. Errors: as of a read.
struct doca_rdma_task_write;
typedef void (*doca_rdma_task_write_completion_cb_t)(struct doca_rdma_task_write *task,
                                                     union doca_data task_user_data,
                                                     union doca_data ctx_user_data);

/// DOCA_SUCCESS if the device has these tasks, else DOCA_ERROR_NOT_SUPPORTED.
doca_error_t doca_rdma_cap_task_write_is_supported(const struct doca_devinfo *devinfo);
/// Does the same as doca_rdma_task_receive_set_conf().
doca_error_t doca_rdma_task_write_set_conf(
    struct doca_rdma *rdma, doca_rdma_task_write_completion_cb_t successful_task_completion_cb,
    doca_rdma_task_write_completion_cb_t error_task_completion_cb, uint32_t num_tasks);
/// Takes a task for a connection. Errors: as doca_rdma_task_receive_allocate_init(), and
/// DOCA_ERROR_INVALID_VALUE for a connection of another context.
doca_error_t doca_rdma_task_write_allocate_init(struct doca_rdma *rdma,
                                                struct doca_rdma_connection *rdma_connection,
                                                const struct doca_buf *src_buf,
                                                struct doca_buf *dst_buf, union doca_data user_data,
                                                struct doca_rdma_task_write **task);
/// NULL for NULL.
struct doca_task *doca_rdma_task_write_as_task(struct doca_rdma_task_write *task);
void doca_rdma_task_write_set_src_buf(struct doca_rdma_task_write *task,
                                      const struct doca_buf *src_buf);
const struct doca_buf *doca_rdma_task_write_get_src_buf(const struct doca_rdma_task_write *task);
void doca_rdma_task_write_set_dst_buf(struct doca_rdma_task_write *task, struct doca_buf *dst_buf);
struct doca_buf *doca_rdma_task_write_get_dst_buf(const struct doca_rdma_task_write *task);

/// Does the same with an immediate, which takes a receive of the peer and arrives unchanged.
struct doca_rdma_task_write_imm;
typedef void (*doca_rdma_task_write_imm_completion_cb_t)(struct doca_rdma_task_write_imm *task,
                                                         union doca_data task_user_data,
                                                         union doca_data ctx_user_data);

/// DOCA_SUCCESS if the device has these tasks, else DOCA_ERROR_NOT_SUPPORTED.
doca_error_t doca_rdma_cap_task_write_imm_is_supported(const struct doca_devinfo *devinfo);
/// Does the same as doca_rdma_task_receive_set_conf().
doca_error_t doca_rdma_task_write_imm_set_conf(
    struct doca_rdma *rdma, doca_rdma_task_write_imm_completion_cb_t successful_task_completion_cb,
    doca_rdma_task_write_imm_completion_cb_t error_task_completion_cb, uint32_t num_tasks);
/// Takes a task for a connection. Errors: as doca_rdma_task_receive_allocate_init(), and
/// DOCA_ERROR_INVALID_VALUE for a connection of another context.
doca_error_t doca_rdma_task_write_imm_allocate_init(
    struct doca_rdma *rdma, struct doca_rdma_connection *rdma_connection,
    const struct doca_buf *src_buf, struct doca_buf *dst_buf, doca_be32_t immediate_data,
    union doca_data user_data, struct doca_rdma_task_write_imm **task);
/// NULL for NULL.
struct doca_task *doca_rdma_task_write_imm_as_task(struct doca_rdma_task_write_imm *task);
void doca_rdma_task_write_imm_set_src_buf(struct doca_rdma_task_write_imm *task,
                                          const struct doca_buf *src_buf);
const struct doca_buf *doca_rdma_task_write_imm_get_src_buf(
    const struct doca_rdma_task_write_imm *task);
void doca_rdma_task_write_imm_set_dst_buf(struct doca_rdma_task_write_imm *task,
                                          struct doca_buf *dst_buf);
struct doca_buf *doca_rdma_task_write_imm_get_dst_buf(const struct doca_rdma_task_write_imm *task);
void doca_rdma_task_write_imm_set_immediate_data(struct doca_rdma_task_write_imm *task,
                                                 doca_be32_t immediate_data);
doca_be32_t doca_rdma_task_write_imm_get_immediate_data(
    const struct doca_rdma_task_write_imm *task);

/// Reads a peer's event (doca_sync_event.h) into 8 bytes behind the data of a buffer, or of a list
/// of at most 4. The event must stay while the task is in flight. Submissions return
/// DOCA_ERROR_INVALID_VALUE for a buffer that is too short, and other errors of a read.
struct doca_rdma_task_remote_net_sync_event_get;
typedef void (*doca_rdma_task_remote_net_sync_event_get_completion_cb_t)(
    struct doca_rdma_task_remote_net_sync_event_get *task, union doca_data task_user_data,
    union doca_data ctx_user_data);

/// DOCA_SUCCESS if the device has these tasks, else DOCA_ERROR_NOT_SUPPORTED.
doca_error_t doca_rdma_cap_task_remote_net_sync_event_get_is_supported(
    const struct doca_devinfo *devinfo);
/// Does the same as doca_rdma_task_receive_set_conf().
doca_error_t doca_rdma_task_remote_net_sync_event_get_set_conf(
    struct doca_rdma *rdma,
    doca_rdma_task_remote_net_sync_event_get_completion_cb_t successful_task_completion_cb,
    doca_rdma_task_remote_net_sync_event_get_completion_cb_t error_task_completion_cb,
    uint32_t num_tasks);
/// Takes a task for a connection. Errors: those of doca_rdma_task_read_allocate_init().
doca_error_t doca_rdma_task_remote_net_sync_event_get_allocate_init(
    struct doca_rdma *rdma, struct doca_rdma_connection *rdma_connection,
    const struct doca_sync_event_remote_net *event, struct doca_buf *dst_buf,
    union doca_data user_data, struct doca_rdma_task_remote_net_sync_event_get **task);
/// NULL for NULL.
struct doca_task *doca_rdma_task_remote_net_sync_event_get_as_task(
    struct doca_rdma_task_remote_net_sync_event_get *task);
void doca_rdma_task_remote_net_sync_event_get_set_dst_buf(
    struct doca_rdma_task_remote_net_sync_event_get *task, struct doca_buf *dst_buf);
struct doca_buf *doca_rdma_task_remote_net_sync_event_get_get_dst_buf(
    const struct doca_rdma_task_remote_net_sync_event_get *task);

/// Sets a peer's event to the data of a buffer, 8 bytes. Earlier writes of the connection are
/// visible to a thread that sees the value. Submissions return DOCA_ERROR_INVALID_VALUE for other
/// data, and other errors of a write.
struct doca_rdma_task_remote_net_sync_event_notify_set;
typedef void (*doca_rdma_task_remote_net_sync_event_notify_set_completion_cb_t)(
    struct doca_rdma_task_remote_net_sync_event_notify_set *task, union doca_data task_user_data,
    union doca_data ctx_user_data);

/// DOCA_SUCCESS if the device has these tasks, else DOCA_ERROR_NOT_SUPPORTED.
doca_error_t doca_rdma_cap_task_remote_net_sync_event_notify_set_is_supported(
    const struct doca_devinfo *devinfo);
/// Does the same as doca_rdma_task_receive_set_conf().
doca_error_t doca_rdma_task_remote_net_sync_event_notify_set_set_conf(
    struct doca_rdma *rdma,
    doca_rdma_task_remote_net_sync_event_notify_set_completion_cb_t successful_task_completion_cb,
    doca_rdma_task_remote_net_sync_event_notify_set_completion_cb_t error_task_completion_cb,
    uint32_t num_tasks);
/// Takes a task for a connection. Errors: those of doca_rdma_task_write_allocate_init().
doca_error_t doca_rdma_task_remote_net_sync_event_notify_set_allocate_init(
    struct doca_rdma *rdma, struct doca_rdma_connection *rdma_connection,
    const struct doca_sync_event_remote_net *event, const struct doca_buf *src_buf,
    union doca_data user_data, struct doca_rdma_task_remote_net_sync_event_notify_set **task);
/// NULL for NULL.
struct doca_task *doca_rdma_task_remote_net_sync_event_notify_set_as_task(
    struct doca_rdma_task_remote_net_sync_event_notify_set *task);
void doca_rdma_task_remote_net_sync_event_notify_set_set_src_buf(
    struct doca_rdma_task_remote_net_sync_event_notify_set *task, const struct doca_buf *src_buf);
const struct doca_buf *doca_rdma_task_remote_net_sync_event_notify_set_get_src_buf(
    const struct doca_rdma_task_remote_net_sync_event_notify_set *task);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
