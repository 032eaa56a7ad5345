/// Sync events: a 64-bit counter that publishers set and add to, and subscribers read and wait for.
/// It starts at 0.
///
/// Its life: create, add a location of the publisher and one of the subscriber, start, stop,
/// destroy. It is started in one of two modes: by doca_sync_event_start() for the calls that return
/// when they are done, or as a context (doca_sync_event_as_ctx) for tasks. An event of an export
/// has its locations. The locations say who may be given an export; each side may do everything
/// with the event that it has. One thread at a time, apart from that of the other side.
///
/// Calls return DOCA_ERROR_INVALID_VALUE if an argument is NULL and DOCA_ERROR_BAD_STATE if the
/// state does not allow them. Those that ask a device return DOCA_ERROR_NOT_SUPPORTED for a no.
#ifndef DOCA_SYNC_EVENT_H_
#define DOCA_SYNC_EVENT_H_

#include <stddef.h>
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

struct doca_gpu;
struct doca_sync_event;
/// An event of a peer, for tasks of RDMA.
struct doca_sync_event_remote_net;

/// Creates a stopped event without locations.
doca_error_t doca_sync_event_create(struct doca_sync_event **event);
/// DOCA_ERROR_BAD_STATE if it is started, DOCA_ERROR_IN_USE while a graph has a node of it.
doca_error_t doca_sync_event_destroy(struct doca_sync_event *event);

/// These allow an event to be exported as the device can. They may be called several times.
/// DOCA_ERROR_BAD_STATE if the event is started, DOCA_ERROR_NOT_PERMITTED if it came of an export.
doca_error_t doca_sync_event_add_publisher_location_cpu(struct doca_sync_event *event,
                                                        struct doca_dev *dev);
doca_error_t doca_sync_event_add_publisher_location_remote_pci(struct doca_sync_event *event);
doca_error_t doca_sync_event_add_publisher_location_remote_net(struct doca_sync_event *event);
doca_error_t doca_sync_event_add_subscriber_location_cpu(struct doca_sync_event *event,
                                                         struct doca_dev *dev);
doca_error_t doca_sync_event_add_subscriber_location_remote_pci(struct doca_sync_event *event);
/// DOCA_ERROR_NOT_SUPPORTED: this library has no GPU.
doca_error_t doca_sync_event_add_publisher_location_gpu(struct doca_sync_event *event,
                                                        struct doca_gpu *gpu);
doca_error_t doca_sync_event_add_subscriber_location_gpu(struct doca_sync_event *event,
                                                         struct doca_gpu *gpu);

/// Starts the event for calls. DOCA_ERROR_BAD_STATE if it is started or a context, or lacks a
/// location.
doca_error_t doca_sync_event_start(struct doca_sync_event *event);
/// Stops an event that doca_sync_event_start() has started, and ends its exports to peers.
doca_error_t doca_sync_event_stop(struct doca_sync_event *event);
/// Makes the event a context, for good. NULL for NULL and for an event that is started for calls.
struct doca_ctx *doca_sync_event_as_ctx(struct doca_sync_event *event);

/// Describes a started event for the other side of PCI: a process of this machine that runs as the
/// same user, or as root, and sees this one's process id. The program transmits the bytes, which
/// are valid until the event is destroyed, and each call returns the same ones. The
/// memory stays with the events that processes have created from them. DOCA_ERROR_NOT_PERMITTED for
/// an event of an export, or if one of its locations is neither that of the CPU nor of the other
/// side of PCI, DOCA_ERROR_NOT_SUPPORTED for a device that is no host device.
doca_error_t doca_sync_event_export_to_remote_pci(struct doca_sync_event *event,
                                                  struct doca_dev *dev, const uint8_t **data,
                                                  size_t *sz);
/// Creates an event that is that of another process. The program starts it, and cannot configure
/// it. DOCA_ERROR_INVALID_VALUE for bytes that are no export, DOCA_ERROR_NOT_FOUND if the process
/// has ended or destroyed its event.
doca_error_t doca_sync_event_create_from_export(struct doca_dev *dev, const uint8_t *data,
                                                size_t sz, struct doca_sync_event **event);
/// Describes a started event for peers, who read it and write to it by queue pairs that are
/// connected to one of the RDMA device of a location of the CPU. The bytes are valid until the
/// event is stopped, and each call until then returns the same ones; peers must have ended their
/// tasks by then. DOCA_ERROR_NOT_PERMITTED for an event of an export, or without a publisher on the
/// network, DOCA_ERROR_NOT_SUPPORTED if no location has an RDMA device.
doca_error_t doca_sync_event_export_to_remote_net(struct doca_sync_event *event,
                                                  const uint8_t **data, size_t *sz);
/// Creates the peer's event of its bytes. DOCA_ERROR_INVALID_VALUE for bytes that are no export.
doca_error_t doca_sync_event_remote_net_create_from_export(
    struct doca_dev *dev, const uint8_t *data, size_t sz,
    struct doca_sync_event_remote_net **event);
/// No task with it may be in flight.
doca_error_t doca_sync_event_remote_net_destroy(struct doca_sync_event_remote_net *event);

/// Host devices export to the other side of PCI and create from such exports.
doca_error_t doca_sync_event_cap_is_export_to_remote_pci_supported(
    const struct doca_devinfo *devinfo);
doca_error_t doca_sync_event_cap_is_create_from_export_supported(
    const struct doca_devinfo *devinfo);
/// RDMA devices export to peers and create from such exports.
doca_error_t doca_sync_event_cap_is_export_to_remote_net_supported(
    const struct doca_devinfo *devinfo);
doca_error_t doca_sync_event_cap_remote_net_is_create_from_export_supported(
    const struct doca_devinfo *devinfo);
/// DOCA_ERROR_NOT_SUPPORTED for every device.
doca_error_t doca_sync_event_cap_is_export_to_gpu_supported(const struct doca_devinfo *devinfo);
/// Every device has the tasks, as the processor does them.
doca_error_t doca_sync_event_cap_task_get_is_supported(const struct doca_devinfo *devinfo);
doca_error_t doca_sync_event_cap_task_notify_set_is_supported(const struct doca_devinfo *devinfo);
doca_error_t doca_sync_event_cap_task_notify_add_is_supported(const struct doca_devinfo *devinfo);
doca_error_t doca_sync_event_cap_task_wait_eq_is_supported(const struct doca_devinfo *devinfo);
doca_error_t doca_sync_event_cap_task_wait_neq_is_supported(const struct doca_devinfo *devinfo);

/// These are for an event that doca_sync_event_start() has started.

/// Writes of the other side before it published `value` are visible after the call.
doca_error_t doca_sync_event_get(struct doca_sync_event *event, uint64_t *value);
doca_error_t doca_sync_event_update_set(struct doca_sync_event *event, uint64_t value);
/// `fetched`: the value before.
doca_error_t doca_sync_event_update_add(struct doca_sync_event *event, uint64_t value,
                                        uint64_t *fetched);
/// These wait, without a limit, until the bits of `mask` in the event are greater than, equal to or
/// other than `value`, and poll without a pause. Those with _yield offer the processor to others
/// after each look. DOCA_ERROR_INVALID_VALUE if `value` is compared for equality and has a bit
/// that `mask` does not have.
doca_error_t doca_sync_event_wait_gt(struct doca_sync_event *event, uint64_t value, uint64_t mask);
doca_error_t doca_sync_event_wait_gt_yield(struct doca_sync_event *event, uint64_t value,
                                           uint64_t mask);
doca_error_t doca_sync_event_wait_eq(struct doca_sync_event *event, uint64_t value, uint64_t mask);
doca_error_t doca_sync_event_wait_eq_yield(struct doca_sync_event *event, uint64_t value,
                                           uint64_t mask);
doca_error_t doca_sync_event_wait_neq(struct doca_sync_event *event, uint64_t value, uint64_t mask);
doca_error_t doca_sync_event_wait_neq_yield(struct doca_sync_event *event, uint64_t value,
                                            uint64_t mask);

/// The tasks, of an event that is a context. For each kind:
///
/// - _set_conf sets their number and callbacks, before the start. DOCA_ERROR_BAD_STATE if the
///   context is not idle, DOCA_ERROR_IN_USE while a graph has a node of it,
///   DOCA_ERROR_INVALID_VALUE for no tasks or more than 65536.
/// - _alloc_init takes a task. DOCA_ERROR_BAD_STATE if the context is not running or the kind was
///   not configured, DOCA_ERROR_NO_MEMORY if all tasks are allocated.
/// - _as_doca_task returns NULL for NULL.
/// - What sets a field must not be called while the task is in flight: it logs an error then and
///   does nothing else.

struct doca_sync_event_task_get;
struct doca_sync_event_task_notify_set;
struct doca_sync_event_task_notify_add;
struct doca_sync_event_task_wait_eq;
struct doca_sync_event_task_wait_neq;

/// Called when a task has ended, with its user data and that of the event's context.
typedef void (*doca_sync_event_task_get_completion_cb_t)(struct doca_sync_event_task_get *task,
                                                         union doca_data task_user_data,
                                                         union doca_data ctx_user_data);
typedef void (*doca_sync_event_task_notify_set_completion_cb_t)(
    struct doca_sync_event_task_notify_set *task, union doca_data task_user_data,
    union doca_data ctx_user_data);
typedef void (*doca_sync_event_task_notify_add_completion_cb_t)(
    struct doca_sync_event_task_notify_add *task, union doca_data task_user_data,
    union doca_data ctx_user_data);
typedef void (*doca_sync_event_task_wait_eq_completion_cb_t)(
    struct doca_sync_event_task_wait_eq *task, union doca_data task_user_data,
    union doca_data ctx_user_data);
typedef void (*doca_sync_event_task_wait_neq_completion_cb_t)(
    struct doca_sync_event_task_wait_neq *task, union doca_data task_user_data,
    union doca_data ctx_user_data);

/// A task that reads the event into `ret_val_ptr`.
doca_error_t doca_sync_event_task_get_set_conf(
    struct doca_sync_event *event, doca_sync_event_task_get_completion_cb_t completion_cb,
    doca_sync_event_task_get_completion_cb_t error_cb, uint32_t num_tasks);
doca_error_t doca_sync_event_task_get_alloc_init(struct doca_sync_event *event,
                                                 uint64_t *ret_val_ptr, union doca_data user_data,
                                                 struct doca_sync_event_task_get **task);
struct doca_task *doca_sync_event_task_get_as_doca_task(struct doca_sync_event_task_get *task);
void doca_sync_event_task_get_set_ret_val_ptr(struct doca_sync_event_task_get *task,
                                              uint64_t *ret_val_ptr);
uint64_t *doca_sync_event_task_get_get_ret_val_ptr(const struct doca_sync_event_task_get *task);

/// A task that sets the event.
doca_error_t doca_sync_event_task_notify_set_set_conf(
    struct doca_sync_event *event, doca_sync_event_task_notify_set_completion_cb_t completion_cb,
    doca_sync_event_task_notify_set_completion_cb_t error_cb, uint32_t num_tasks);
doca_error_t doca_sync_event_task_notify_set_alloc_init(
    struct doca_sync_event *event, uint64_t set_val, union doca_data user_data,
    struct doca_sync_event_task_notify_set **task);
struct doca_task *doca_sync_event_task_notify_set_as_doca_task(
    struct doca_sync_event_task_notify_set *task);
void doca_sync_event_task_notify_set_set_set_val(struct doca_sync_event_task_notify_set *task,
                                                 uint64_t set_val);
uint64_t doca_sync_event_task_notify_set_get_set_val(
    const struct doca_sync_event_task_notify_set *task);

/// A task that adds to the event. The value before goes to `fetched_val_ptr`, unless that is NULL.
doca_error_t doca_sync_event_task_notify_add_set_conf(
    struct doca_sync_event *event, doca_sync_event_task_notify_add_completion_cb_t completion_cb,
    doca_sync_event_task_notify_add_completion_cb_t error_cb, uint32_t num_tasks);
doca_error_t doca_sync_event_task_notify_add_alloc_init(
    struct doca_sync_event *event, uint64_t inc_val, uint64_t *fetched_val_ptr,
    union doca_data user_data, struct doca_sync_event_task_notify_add **task);
struct doca_task *doca_sync_event_task_notify_add_as_doca_task(
    struct doca_sync_event_task_notify_add *task);
void doca_sync_event_task_notify_add_set_inc_val(struct doca_sync_event_task_notify_add *task,
                                                 uint64_t inc_val);
uint64_t doca_sync_event_task_notify_add_get_inc_val(
    const struct doca_sync_event_task_notify_add *task);
void doca_sync_event_task_notify_add_set_fetched_val_ptr(
    struct doca_sync_event_task_notify_add *task, uint64_t *fetched_val_ptr);
uint64_t *doca_sync_event_task_notify_add_get_fetched_val_ptr(
    const struct doca_sync_event_task_notify_add *task);

/// A task that ends when the bits of `mask` in the event are `wait_val`. The submission of one
/// whose `wait_val` has a bit that `mask` does not have returns DOCA_ERROR_INVALID_VALUE.
doca_error_t doca_sync_event_task_wait_eq_set_conf(
    struct doca_sync_event *event, doca_sync_event_task_wait_eq_completion_cb_t completion_cb,
    doca_sync_event_task_wait_eq_completion_cb_t error_cb, uint32_t num_tasks);
doca_error_t doca_sync_event_task_wait_eq_alloc_init(struct doca_sync_event *event,
                                                     uint64_t wait_val, uint64_t mask,
                                                     union doca_data user_data,
                                                     struct doca_sync_event_task_wait_eq **task);
struct doca_task *doca_sync_event_task_wait_eq_as_doca_task(
    struct doca_sync_event_task_wait_eq *task);
void doca_sync_event_task_wait_eq_set_wait_val(struct doca_sync_event_task_wait_eq *task,
                                               uint64_t wait_val);
uint64_t doca_sync_event_task_wait_eq_get_wait_val(const struct doca_sync_event_task_wait_eq *task);
void doca_sync_event_task_wait_eq_set_mask(struct doca_sync_event_task_wait_eq *task,
                                           uint64_t mask);
uint64_t doca_sync_event_task_wait_eq_get_mask(const struct doca_sync_event_task_wait_eq *task);

/// A task that ends when the bits of `mask` in the event are not `wait_val`; else the same.
doca_error_t doca_sync_event_task_wait_neq_set_conf(
    struct doca_sync_event *event, doca_sync_event_task_wait_neq_completion_cb_t completion_cb,
    doca_sync_event_task_wait_neq_completion_cb_t error_cb, uint32_t num_tasks);
doca_error_t doca_sync_event_task_wait_neq_alloc_init(struct doca_sync_event *event,
                                                      uint64_t wait_val, uint64_t mask,
                                                      union doca_data user_data,
                                                      struct doca_sync_event_task_wait_neq **task);
struct doca_task *doca_sync_event_task_wait_neq_as_doca_task(
    struct doca_sync_event_task_wait_neq *task);
void doca_sync_event_task_wait_neq_set_wait_val(struct doca_sync_event_task_wait_neq *task,
                                                uint64_t wait_val);
uint64_t doca_sync_event_task_wait_neq_get_wait_val(
    const struct doca_sync_event_task_wait_neq *task);
void doca_sync_event_task_wait_neq_set_mask(struct doca_sync_event_task_wait_neq *task,
                                            uint64_t mask);
uint64_t doca_sync_event_task_wait_neq_get_mask(const struct doca_sync_event_task_wait_neq *task);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
