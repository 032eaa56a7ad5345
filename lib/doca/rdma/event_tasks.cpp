#include "doca/rdma/rdma.hpp"
#include "doca/sync/remote_net.hpp"

using namespace offload::doca;  // NOLINT(google-build-using-namespace): the calls have no namespace
using offload::core::ErrorCode;
using offload::core::Status;

namespace {

/// The bytes of an event.
constexpr std::size_t kWord = sizeof(std::uint64_t);

}  // namespace

Status doca_rdma_task_remote_net_sync_event_get::take() noexcept {
  if (!hold(destination_held, destination)) return ErrorCode::invalid_value;
  own().from = event->event;
  own().length = kWord;
  own().destination = destination_held.get();
  return {};
}

Status doca_rdma_task_remote_net_sync_event_notify_set::take() noexcept {
  if (!hold(source_held, source)) return ErrorCode::invalid_value;
  if (source_held.get()->total_length() != kWord) return ErrorCode::invalid_value;
  own().source = source_held.get();
  own().to = event->event;
  own().immediate.reset();
  return {};
}

doca_error_t doca_rdma_cap_task_remote_net_sync_event_get_is_supported(
    const doca_devinfo* devinfo) {
  return doca_rdma_cap_task_read_is_supported(devinfo);
}

doca_error_t doca_rdma_task_remote_net_sync_event_get_set_conf(
    doca_rdma* rdma,
    doca_rdma_task_remote_net_sync_event_get_completion_cb_t successful_task_completion_cb,
    doca_rdma_task_remote_net_sync_event_get_completion_cb_t error_task_completion_cb,
    uint32_t num_tasks) {
  return configure_tasks<doca_rdma_task_remote_net_sync_event_get>(
      __func__, rdma, successful_task_completion_cb, error_task_completion_cb, num_tasks);
}

doca_error_t doca_rdma_task_remote_net_sync_event_get_allocate_init(
    doca_rdma* rdma, doca_rdma_connection* rdma_connection, const doca_sync_event_remote_net* event,
    doca_buf* dst_buf, doca_data user_data, doca_rdma_task_remote_net_sync_event_get** task) {
  if (any_null(event, dst_buf)) return DOCA_ERROR_INVALID_VALUE;
  const doca_error_t result =
      allocate_task(rdma, rdma_connection, nullptr, dst_buf, user_data, task);
  if (result == DOCA_SUCCESS) (*task)->event = event;
  return result;
}

doca_task* doca_rdma_task_remote_net_sync_event_get_as_task(
    doca_rdma_task_remote_net_sync_event_get* task) {
  return task;
}

void doca_rdma_task_remote_net_sync_event_get_set_dst_buf(
    doca_rdma_task_remote_net_sync_event_get* task, doca_buf* dst_buf) {
  if (may_be_set(task, __func__)) task->destination = dst_buf;
}

doca_buf* doca_rdma_task_remote_net_sync_event_get_get_dst_buf(
    const doca_rdma_task_remote_net_sync_event_get* task) {
  return task != nullptr ? task->destination : nullptr;
}

doca_error_t doca_rdma_cap_task_remote_net_sync_event_notify_set_is_supported(
    const doca_devinfo* devinfo) {
  return doca_rdma_cap_task_write_is_supported(devinfo);
}

doca_error_t doca_rdma_task_remote_net_sync_event_notify_set_set_conf(
    doca_rdma* rdma,
    doca_rdma_task_remote_net_sync_event_notify_set_completion_cb_t successful_task_completion_cb,
    doca_rdma_task_remote_net_sync_event_notify_set_completion_cb_t error_task_completion_cb,
    uint32_t num_tasks) {
  return configure_tasks<doca_rdma_task_remote_net_sync_event_notify_set>(
      __func__, rdma, successful_task_completion_cb, error_task_completion_cb, num_tasks);
}

doca_error_t doca_rdma_task_remote_net_sync_event_notify_set_allocate_init(
    doca_rdma* rdma, doca_rdma_connection* rdma_connection, const doca_sync_event_remote_net* event,
    const doca_buf* src_buf, doca_data user_data,
    doca_rdma_task_remote_net_sync_event_notify_set** task) {
  if (any_null(event, src_buf)) return DOCA_ERROR_INVALID_VALUE;
  const doca_error_t result =
      allocate_task(rdma, rdma_connection, src_buf, nullptr, user_data, task);
  if (result == DOCA_SUCCESS) (*task)->event = event;
  return result;
}

doca_task* doca_rdma_task_remote_net_sync_event_notify_set_as_task(
    doca_rdma_task_remote_net_sync_event_notify_set* task) {
  return task;
}

void doca_rdma_task_remote_net_sync_event_notify_set_set_src_buf(
    doca_rdma_task_remote_net_sync_event_notify_set* task, const doca_buf* src_buf) {
  if (may_be_set(task, __func__)) task->source = src_buf;
}

const doca_buf* doca_rdma_task_remote_net_sync_event_notify_set_get_src_buf(
    const doca_rdma_task_remote_net_sync_event_notify_set* task) {
  return task != nullptr ? task->source : nullptr;
}
