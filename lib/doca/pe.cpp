#include "doca/pe.hpp"

#include <cstddef>
#include <utility>

#include "core/log.hpp"
#include "doca/guard.hpp"

using namespace offload::doca;  // NOLINT(google-build-using-namespace): the calls have no namespace
using offload::core::Duration;

void doca_pe::connect(doca_ctx& ctx) {
  stopping.reserve(contexts.size() + 1);
  contexts.reserve(contexts.size() + 1);
  ctx.context().connect(engine);
  contexts.push_back(&ctx);
  ctx.pe = this;
}

offload::core::Status doca_task::submit(bool flush) noexcept {
  return submit_to<offload::progress::Context>(*this, flush);
}

bool doca_pe::settle() noexcept {
  bool worked = false;
  // By index: a callback may stop further contexts.
  for (std::size_t i = 0; i < stopping.size();) {
    doca_ctx* const ctx = stopping[i];
    worked = ctx->report_ended() || worked;
    if (!ctx->can_be_idle()) {
      ++i;
      continue;
    }
    stopping.erase(stopping.begin() + static_cast<std::ptrdiff_t>(i));
    ctx->change_state(DOCA_CTX_STATE_IDLE);  // which may destroy it
    worked = true;
  }
  return worked;
}

namespace offload::doca {

doca_error_t submit(doca_task* task, bool flush) noexcept {
  if (task == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (task->task == nullptr || task->in_flight()) return DOCA_ERROR_BAD_STATE;
  if (task->ctx->state != DOCA_CTX_STATE_RUNNING) return DOCA_ERROR_BAD_STATE;
  const core::Status status = task->submit(flush);
  if (!status.ok()) return to_doca(status);
  task->status = DOCA_SUCCESS;
  return DOCA_SUCCESS;
}

}  // namespace offload::doca

doca_error_t doca_pe_create(doca_pe** pe) {
  if (pe == nullptr) return DOCA_ERROR_INVALID_VALUE;
  return guarded(__func__, [&] { *pe = new doca_pe; });
}

doca_error_t doca_pe_destroy(doca_pe* pe) {
  if (pe == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (pe->in_turn) return DOCA_ERROR_NOT_PERMITTED;
  if (!pe->contexts.empty() || pe->graphs != 0) return DOCA_ERROR_IN_USE;
  delete pe;
  return DOCA_SUCCESS;
}

doca_error_t doca_pe_connect_ctx(doca_pe* pe, doca_ctx* ctx) {
  if (any_null(pe, ctx)) return DOCA_ERROR_INVALID_VALUE;
  if (ctx->pe != nullptr) return DOCA_ERROR_BAD_STATE;
  return guarded(__func__, [&] { pe->connect(*ctx); });
}

uint8_t doca_pe_progress(doca_pe* pe) {
  if (pe == nullptr || pe->in_turn) return 0;
  bool worked = false;
  pe->in_turn = true;
  static_cast<void>(guarded(__func__, [&] { worked = pe->engine.progress(); }));
  if (!pe->stopping.empty()) worked = pe->settle() || worked;
  pe->in_turn = false;
  return worked ? 1 : 0;
}

doca_error_t doca_pe_get_num_inflight_tasks(const doca_pe* pe, size_t* num_inflight_tasks) {
  if (any_null(pe, num_inflight_tasks)) return DOCA_ERROR_INVALID_VALUE;
  *num_inflight_tasks = 0;
  for (const doca_ctx* ctx : pe->contexts) *num_inflight_tasks += ctx->in_flight();
  return DOCA_SUCCESS;
}

doca_error_t doca_pe_get_notification_handle(const doca_pe* pe, doca_event_handle_t* handle) {
  if (any_null(pe, handle)) return DOCA_ERROR_INVALID_VALUE;
  *handle = pe->engine.fd();
  return DOCA_SUCCESS;
}

doca_error_t doca_pe_request_notification(doca_pe* pe) {
  if (pe == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (pe->in_turn) return DOCA_ERROR_NOT_PERMITTED;
  return guarded(__func__, [&] {
    pe->is_armed = true;
    // A limit means that something has to be polled.
    if (pe->engine.arm() != Duration::max() || !pe->stopping.empty()) pe->engine.notify();
  });
}

doca_error_t doca_pe_clear_notification(doca_pe* pe, doca_event_handle_t handle) {
  static_cast<void>(handle);
  if (pe == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (pe->in_turn) return DOCA_ERROR_NOT_PERMITTED;
  if (!std::exchange(pe->is_armed, false)) return DOCA_SUCCESS;
  return guarded(__func__, [&] { pe->engine.disarm(); });
}

doca_error_t doca_task_submit(doca_task* task) {
  return submit(task, true);
}

doca_error_t doca_task_submit_ex(doca_task* task, uint32_t flags) {
  constexpr std::uint32_t kFlags =
      DOCA_TASK_SUBMIT_FLAG_FLUSH | DOCA_TASK_SUBMIT_FLAG_OPTIMIZE_REPORTS;
  if ((flags & ~kFlags) != 0) return DOCA_ERROR_INVALID_VALUE;
  return submit(task, (flags & DOCA_TASK_SUBMIT_FLAG_FLUSH) != 0);
}

doca_error_t doca_task_try_submit(doca_task* task) {
  return submit(task, true);
}

void doca_task_free(doca_task* task) {
  if (task == nullptr) return;
  if (task->task == nullptr || task->in_flight()) {
    offload::core::log_error("doca_task_free: the task is {}",
                             task->task == nullptr ? "free already" : "in flight");
    return;
  }
  task->let_go();
  task->release();
  task->task = nullptr;
}

doca_error_t doca_task_get_status(const doca_task* task) {
  return task != nullptr ? task->status : DOCA_ERROR_INVALID_VALUE;
}

doca_ctx* doca_task_get_ctx(const doca_task* task) {
  return task != nullptr ? task->ctx : nullptr;
}

void doca_task_set_user_data(doca_task* task, doca_data user_data) {
  if (task != nullptr) task->user_data = user_data;
}

doca_data doca_task_get_user_data(const doca_task* task) {
  return task != nullptr ? task->user_data : doca_data{};
}
