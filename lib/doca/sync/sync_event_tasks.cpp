#include <tuple>

#include "doca/guard.hpp"
#include "doca/sync/sync_event.hpp"

using namespace offload::doca;  // NOLINT(google-build-using-namespace): the calls have no namespace
using offload::core::ErrorCode;
using offload::core::Status;
using offload::progress::Task;
using Operation = EventRequest::Operation;

Status EventTask::prepare() noexcept {
  const bool compares =
      request.operation == Operation::wait_equal || request.operation == Operation::wait_not_equal;
  if (compares && !request.fits()) return ErrorCode::invalid_value;
  if (request.operation == Operation::get && request.result == nullptr) {
    return ErrorCode::invalid_value;
  }
  library().operation = request.operation;
  library().argument = request.value;
  library().mask = request.mask;
  library().result_copy = request.result;
  return {};
}

namespace {

template <class DocaTask>
void end(Task& task, void* event) noexcept {
  auto& ended = *static_cast<DocaTask*>(task.user_data);
  static_cast<doca_sync_event*>(event)->task_ended(ended, to_doca(task.status()));
}

template <class DocaTask>
doca_error_t configure(const char* call, doca_sync_event* event,
                       typename EventTasks<DocaTask>::Callback completed,
                       typename EventTasks<DocaTask>::Callback failed,
                       std::uint32_t count) noexcept {
  if (event == nullptr || completed == nullptr || failed == nullptr || count == 0 ||
      count > kMostTasksOfContext) {
    return DOCA_ERROR_INVALID_VALUE;
  }
  if (event->is_started()) return DOCA_ERROR_BAD_STATE;
  if (const doca_error_t result = check_unused(*event); result != DOCA_SUCCESS) return result;
  return guarded(call, [&] {
    auto& tasks = std::get<EventTasks<DocaTask>>(event->kinds);
    tasks.set.configure(event->operations, count, {&end<DocaTask>, event});
    tasks.completed = completed;
    tasks.failed = failed;
  });
}

template <class DocaTask>
doca_error_t allocate(doca_sync_event* event, const EventRequest& request, doca_data user_data,
                      DocaTask** task) noexcept {
  if (event == nullptr || task == nullptr) return DOCA_ERROR_INVALID_VALUE;
  auto& tasks = std::get<EventTasks<DocaTask>>(event->kinds);
  if (event->state != DOCA_CTX_STATE_RUNNING || !tasks.set.is_configured()) {
    return DOCA_ERROR_BAD_STATE;
  }
  DocaTask* const allocated = tasks.set.allocate(*event, user_data);
  if (allocated == nullptr) return DOCA_ERROR_NO_MEMORY;
  allocated->request = request;
  *task = allocated;
  return DOCA_SUCCESS;
}

}  // namespace

doca_error_t doca_sync_event_task_get_set_conf(
    doca_sync_event* event, doca_sync_event_task_get_completion_cb_t completion_cb,
    doca_sync_event_task_get_completion_cb_t error_cb, uint32_t num_tasks) {
  return configure<doca_sync_event_task_get>(__func__, event, completion_cb, error_cb, num_tasks);
}

doca_error_t doca_sync_event_task_get_alloc_init(doca_sync_event* event, uint64_t* ret_val_ptr,
                                                 doca_data user_data,
                                                 doca_sync_event_task_get** task) {
  if (ret_val_ptr == nullptr) return DOCA_ERROR_INVALID_VALUE;
  return allocate(event, {.operation = Operation::get, .result = ret_val_ptr}, user_data, task);
}

doca_task* doca_sync_event_task_get_as_doca_task(doca_sync_event_task_get* task) {
  return task;
}

void doca_sync_event_task_get_set_ret_val_ptr(doca_sync_event_task_get* task,
                                              uint64_t* ret_val_ptr) {
  if (may_be_set(task, __func__)) task->request.result = ret_val_ptr;
}

uint64_t* doca_sync_event_task_get_get_ret_val_ptr(const doca_sync_event_task_get* task) {
  return task != nullptr ? task->request.result : nullptr;
}

doca_error_t doca_sync_event_task_notify_set_set_conf(
    doca_sync_event* event, doca_sync_event_task_notify_set_completion_cb_t completion_cb,
    doca_sync_event_task_notify_set_completion_cb_t error_cb, uint32_t num_tasks) {
  return configure<doca_sync_event_task_notify_set>(__func__, event, completion_cb, error_cb,
                                                    num_tasks);
}

doca_error_t doca_sync_event_task_notify_set_alloc_init(doca_sync_event* event, uint64_t set_val,
                                                        doca_data user_data,
                                                        doca_sync_event_task_notify_set** task) {
  return allocate(event, {.operation = Operation::set, .value = set_val}, user_data, task);
}

doca_task* doca_sync_event_task_notify_set_as_doca_task(doca_sync_event_task_notify_set* task) {
  return task;
}

void doca_sync_event_task_notify_set_set_set_val(doca_sync_event_task_notify_set* task,
                                                 uint64_t set_val) {
  if (may_be_set(task, __func__)) task->request.value = set_val;
}

uint64_t doca_sync_event_task_notify_set_get_set_val(const doca_sync_event_task_notify_set* task) {
  return task != nullptr ? task->request.value : 0;
}

doca_error_t doca_sync_event_task_notify_add_set_conf(
    doca_sync_event* event, doca_sync_event_task_notify_add_completion_cb_t completion_cb,
    doca_sync_event_task_notify_add_completion_cb_t error_cb, uint32_t num_tasks) {
  return configure<doca_sync_event_task_notify_add>(__func__, event, completion_cb, error_cb,
                                                    num_tasks);
}

doca_error_t doca_sync_event_task_notify_add_alloc_init(doca_sync_event* event, uint64_t inc_val,
                                                        uint64_t* fetched_val_ptr,
                                                        doca_data user_data,
                                                        doca_sync_event_task_notify_add** task) {
  return allocate(event, {.operation = Operation::add, .value = inc_val, .result = fetched_val_ptr},
                  user_data, task);
}

doca_task* doca_sync_event_task_notify_add_as_doca_task(doca_sync_event_task_notify_add* task) {
  return task;
}

void doca_sync_event_task_notify_add_set_inc_val(doca_sync_event_task_notify_add* task,
                                                 uint64_t inc_val) {
  if (may_be_set(task, __func__)) task->request.value = inc_val;
}

uint64_t doca_sync_event_task_notify_add_get_inc_val(const doca_sync_event_task_notify_add* task) {
  return task != nullptr ? task->request.value : 0;
}

void doca_sync_event_task_notify_add_set_fetched_val_ptr(doca_sync_event_task_notify_add* task,
                                                         uint64_t* fetched_val_ptr) {
  if (may_be_set(task, __func__)) task->request.result = fetched_val_ptr;
}

uint64_t* doca_sync_event_task_notify_add_get_fetched_val_ptr(
    const doca_sync_event_task_notify_add* task) {
  return task != nullptr ? task->request.result : nullptr;
}

doca_error_t doca_sync_event_task_wait_eq_set_conf(
    doca_sync_event* event, doca_sync_event_task_wait_eq_completion_cb_t completion_cb,
    doca_sync_event_task_wait_eq_completion_cb_t error_cb, uint32_t num_tasks) {
  return configure<doca_sync_event_task_wait_eq>(__func__, event, completion_cb, error_cb,
                                                 num_tasks);
}

doca_error_t doca_sync_event_task_wait_eq_alloc_init(doca_sync_event* event, uint64_t wait_val,
                                                     uint64_t mask, doca_data user_data,
                                                     doca_sync_event_task_wait_eq** task) {
  return allocate(event, {.operation = Operation::wait_equal, .value = wait_val, .mask = mask},
                  user_data, task);
}

doca_task* doca_sync_event_task_wait_eq_as_doca_task(doca_sync_event_task_wait_eq* task) {
  return task;
}

void doca_sync_event_task_wait_eq_set_wait_val(doca_sync_event_task_wait_eq* task,
                                               uint64_t wait_val) {
  if (may_be_set(task, __func__)) task->request.value = wait_val;
}

uint64_t doca_sync_event_task_wait_eq_get_wait_val(const doca_sync_event_task_wait_eq* task) {
  return task != nullptr ? task->request.value : 0;
}

void doca_sync_event_task_wait_eq_set_mask(doca_sync_event_task_wait_eq* task, uint64_t mask) {
  if (may_be_set(task, __func__)) task->request.mask = mask;
}

uint64_t doca_sync_event_task_wait_eq_get_mask(const doca_sync_event_task_wait_eq* task) {
  return task != nullptr ? task->request.mask : 0;
}

doca_error_t doca_sync_event_task_wait_neq_set_conf(
    doca_sync_event* event, doca_sync_event_task_wait_neq_completion_cb_t completion_cb,
    doca_sync_event_task_wait_neq_completion_cb_t error_cb, uint32_t num_tasks) {
  return configure<doca_sync_event_task_wait_neq>(__func__, event, completion_cb, error_cb,
                                                  num_tasks);
}

doca_error_t doca_sync_event_task_wait_neq_alloc_init(doca_sync_event* event, uint64_t wait_val,
                                                      uint64_t mask, doca_data user_data,
                                                      doca_sync_event_task_wait_neq** task) {
  return allocate(event, {.operation = Operation::wait_not_equal, .value = wait_val, .mask = mask},
                  user_data, task);
}

doca_task* doca_sync_event_task_wait_neq_as_doca_task(doca_sync_event_task_wait_neq* task) {
  return task;
}

void doca_sync_event_task_wait_neq_set_wait_val(doca_sync_event_task_wait_neq* task,
                                                uint64_t wait_val) {
  if (may_be_set(task, __func__)) task->request.value = wait_val;
}

uint64_t doca_sync_event_task_wait_neq_get_wait_val(const doca_sync_event_task_wait_neq* task) {
  return task != nullptr ? task->request.value : 0;
}

void doca_sync_event_task_wait_neq_set_mask(doca_sync_event_task_wait_neq* task, uint64_t mask) {
  if (may_be_set(task, __func__)) task->request.mask = mask;
}

uint64_t doca_sync_event_task_wait_neq_get_mask(const doca_sync_event_task_wait_neq* task) {
  return task != nullptr ? task->request.mask : 0;
}
