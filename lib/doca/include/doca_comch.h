/// The control channel between a DPU and its host: a server on the DPU, clients on the host, and
/// messages on a connection of the two, both ways.
///
/// Here server and client are processes of one machine, or of two that a network connects: the
/// environment variable OFFLOAD_DOCA_COMCH gives a host's function its address, as
/// "b1:00.0=tcp:HOST:PORT" or "b1:00.0=unix:PATH", separated by commas. Without it, server and
/// client of one user find each other by the function's address and the server's name. Over a
/// network both need the same key, whose file OFFLOAD_DOCA_COMCH_KEY_FILE names.
///
/// Callbacks of tasks and of events are called from doca_pe_progress() only. All calls return
/// DOCA_ERROR_INVALID_VALUE if an argument is NULL. Calls that set something before the start return
/// DOCA_ERROR_BAD_STATE if the context is not idle; those that set tasks return DOCA_ERROR_IN_USE
/// while a graph has a node of it. One thread: that of the progress engine.
#ifndef DOCA_COMCH_H_
#define DOCA_COMCH_H_

#include <stdint.h>

#include "doca_ctx.h"
#include "doca_dev.h"
#include "doca_error.h"
#include "doca_pe.h"
#include "doca_types.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct doca_comch_server;
struct doca_comch_client;
/// A connection of a client and a server, on either side. It is valid until the callback of its
/// disconnection has returned, or its context is idle.
struct doca_comch_connection;
/// Sends a message, which the submission copies.
struct doca_comch_task_send;

struct doca_comch_event_msg_recv;
struct doca_comch_event_connection_status_changed;
struct doca_comch_event_consumer;

typedef void (*doca_comch_task_send_completion_cb_t)(struct doca_comch_task_send *task,
                                                     union doca_data task_user_data,
                                                     union doca_data ctx_user_data);
/// The message is valid during the call.
typedef void (*doca_comch_event_msg_recv_cb_t)(struct doca_comch_event_msg_recv *event,
                                               uint8_t *recv_buffer, uint32_t msg_len,
                                               struct doca_comch_connection *comch_connection);
/// `change_success` is 1: a client that cannot connect is refused without an event.
typedef void (*doca_comch_event_connection_status_changed_cb_t)(
    struct doca_comch_event_connection_status_changed *event,
    struct doca_comch_connection *comch_connection, uint8_t change_success);
/// `id`: the peer's consumer, for doca_comch_producer_task_send_alloc_init().
typedef void (*doca_comch_event_consumer_cb_t)(struct doca_comch_event_consumer *event,
                                               struct doca_comch_connection *comch_connection,
                                               uint32_t id);

/// DOCA_SUCCESS if the device can have servers: it is a host device with representors. Else
/// DOCA_ERROR_NOT_SUPPORTED, as below.
doca_error_t doca_comch_cap_server_is_supported(const struct doca_devinfo *devinfo);
/// DOCA_SUCCESS for a host device.
doca_error_t doca_comch_cap_client_is_supported(const struct doca_devinfo *devinfo);
/// The longest name of a server, with the byte that ends it.
doca_error_t doca_comch_cap_get_max_name_len(const struct doca_devinfo *devinfo,
                                             uint32_t *max_name_len);
/// The most bytes of a message.
doca_error_t doca_comch_cap_get_max_msg_size(const struct doca_devinfo *devinfo, uint32_t *size);
/// The most messages of a receive queue.
doca_error_t doca_comch_cap_get_max_recv_queue_size(const struct doca_devinfo *devinfo,
                                                    uint32_t *size);
/// The most send tasks of a context.
doca_error_t doca_comch_cap_get_max_send_tasks(const struct doca_devinfo *devinfo,
                                               uint32_t *num_tasks);
/// The most clients of a server.
doca_error_t doca_comch_cap_get_max_clients(const struct doca_devinfo *devinfo, uint32_t *num);

/// `repr`: the host's function whose clients may connect, a representor of `dev`.
/// DOCA_ERROR_NOT_SUPPORTED if the device can have no server, DOCA_ERROR_INVALID_VALUE for a
/// representor of another device and for a name that is empty or too long.
///
/// The start of a server returns DOCA_ERROR_IN_USE if another one is at its address. It needs the
/// configuration of send tasks and callbacks for messages and connections. A stop ends all
/// connections, without events; messages that were sent before still arrive. A send that fails, as
/// its client has disconnected, does not stop the server.
doca_error_t doca_comch_server_create(struct doca_dev *dev, struct doca_dev_rep *repr,
                                      const char *name, struct doca_comch_server **comch_server);
/// DOCA_ERROR_BAD_STATE if it is not idle, DOCA_ERROR_IN_USE while a consumer or producer of one of
/// its connections exists, or a graph has a node of it.
doca_error_t doca_comch_server_destroy(struct doca_comch_server *comch_server);
/// NULL for NULL.
struct doca_ctx *doca_comch_server_as_ctx(struct doca_comch_server *comch_server);
/// The shorter length of server and client is that of their connection. DOCA_ERROR_INVALID_VALUE for 0 and
/// for more than the most.
doca_error_t doca_comch_server_set_max_msg_size(struct doca_comch_server *comch_server,
                                                uint32_t size);
doca_error_t doca_comch_server_get_max_msg_size(const struct doca_comch_server *comch_server,
                                                uint32_t *size);
/// The messages that a peer may send before this side takes them; more wait at the sender.
doca_error_t doca_comch_server_set_recv_queue_size(struct doca_comch_server *comch_server,
                                                   uint32_t size);
doca_error_t doca_comch_server_get_recv_queue_size(const struct doca_comch_server *comch_server,
                                                   uint32_t *size);
doca_error_t doca_comch_server_task_send_set_conf(
    struct doca_comch_server *comch_server,
    doca_comch_task_send_completion_cb_t task_completion_cb,
    doca_comch_task_send_completion_cb_t task_error_cb, uint32_t num_send_tasks);
/// Takes a task, whose message waits for room in the peer's receive queue.
/// DOCA_ERROR_BAD_STATE if the context is not running, DOCA_ERROR_NO_MEMORY if all tasks are
/// allocated, DOCA_ERROR_INVALID_VALUE for a connection of another context or a message that is too
/// long.
doca_error_t doca_comch_server_task_send_alloc_init(struct doca_comch_server *comch_server,
                                                    struct doca_comch_connection *peer,
                                                    const void *msg, uint32_t len,
                                                    struct doca_comch_task_send **task);
doca_error_t doca_comch_server_event_msg_recv_register(
    struct doca_comch_server *comch_server, doca_comch_event_msg_recv_cb_t recv_event_cb);
doca_error_t doca_comch_server_event_connection_status_changed_register(
    struct doca_comch_server *comch_server,
    doca_comch_event_connection_status_changed_cb_t connect_event_cb,
    doca_comch_event_connection_status_changed_cb_t disconnect_event_cb);
/// The callbacks for consumers of peers that are new, and that have stopped.
doca_error_t doca_comch_server_event_consumer_register(
    struct doca_comch_server *comch_server, doca_comch_event_consumer_cb_t new_consumer_event_cb,
    doca_comch_event_consumer_cb_t expired_consumer_event_cb);
/// Ends a connection, without an event. DOCA_ERROR_INVALID_VALUE if it belongs to another context or
/// has ended.
doca_error_t doca_comch_server_disconnect(struct doca_comch_server *comch_server,
                                          struct doca_comch_connection *connection);
/// The server of a connection; NULL for NULL and for a client's.
struct doca_comch_server *doca_comch_server_get_server_ctx(
    const struct doca_comch_connection *connection);

/// Errors as those of doca_comch_server_create(). The start of a client returns
/// DOCA_ERROR_IN_PROGRESS: it is starting until it is connected. If there is no server, or the
/// server is lost, it stops.
doca_error_t doca_comch_client_create(struct doca_dev *dev, const char *name,
                                      struct doca_comch_client **comch_client);
doca_error_t doca_comch_client_destroy(struct doca_comch_client *comch_client);
struct doca_ctx *doca_comch_client_as_ctx(struct doca_comch_client *comch_client);
doca_error_t doca_comch_client_set_max_msg_size(struct doca_comch_client *comch_client,
                                                uint32_t size);
doca_error_t doca_comch_client_get_max_msg_size(const struct doca_comch_client *comch_client,
                                                uint32_t *size);
doca_error_t doca_comch_client_set_recv_queue_size(struct doca_comch_client *comch_client,
                                                   uint32_t size);
doca_error_t doca_comch_client_get_recv_queue_size(const struct doca_comch_client *comch_client,
                                                   uint32_t *size);
doca_error_t doca_comch_client_task_send_set_conf(
    struct doca_comch_client *comch_client,
    doca_comch_task_send_completion_cb_t task_completion_cb,
    doca_comch_task_send_completion_cb_t task_error_cb, uint32_t num_send_tasks);
doca_error_t doca_comch_client_task_send_alloc_init(struct doca_comch_client *comch_client,
                                                    struct doca_comch_connection *peer,
                                                    const void *msg, uint32_t len,
                                                    struct doca_comch_task_send **task);
doca_error_t doca_comch_client_event_msg_recv_register(
    struct doca_comch_client *comch_client, doca_comch_event_msg_recv_cb_t recv_event_cb);
doca_error_t doca_comch_client_event_consumer_register(
    struct doca_comch_client *comch_client, doca_comch_event_consumer_cb_t new_consumer_event_cb,
    doca_comch_event_consumer_cb_t expired_consumer_event_cb);
/// DOCA_ERROR_BAD_STATE if the client is not running.
doca_error_t doca_comch_client_get_connection(const struct doca_comch_client *comch_client,
                                              struct doca_comch_connection **connection);
/// The client of a connection; NULL for NULL and for a server's.
struct doca_comch_client *doca_comch_client_get_client_ctx(
    const struct doca_comch_connection *connection);

/// NULL for NULL.
struct doca_task *doca_comch_task_send_as_task(struct doca_comch_task_send *task);
doca_error_t doca_comch_connection_set_user_data(struct doca_comch_connection *connection,
                                                 union doca_data user_data);
union doca_data doca_comch_connection_get_user_data(const struct doca_comch_connection *connection);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
