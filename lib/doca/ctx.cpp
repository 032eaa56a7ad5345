#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "core/log.hpp"
#include "doca/guard.hpp"
#include "doca/include/doca_ctx.h"
#include "doca/pe.hpp"

using namespace offload::doca;  // NOLINT(google-build-using-namespace): the calls have no namespace
using offload::progress::Context;

doca_ctx::~doca_ctx() {
  if (pe != nullptr) std::erase(pe->contexts, this);
}

void doca_ctx::connect_alone() {
  own_engine_ = std::make_shared<doca_pe>();
  own_engine_->connect(*this);
}

bool doca_ctx::idles_alone(doca_ctx& ctx) noexcept {
  constexpr auto kLongest = std::chrono::seconds(30);  // it takes some milliseconds
  // The program's callback may destroy the context, but not its engine.
  const std::shared_ptr<doca_pe> engine = ctx.own_engine_;
  if (!engine || engine->in_turn) return false;
  const auto deadline = std::chrono::steady_clock::now() + kLongest;
  while (!engine->contexts.empty() && ctx.state != DOCA_CTX_STATE_IDLE) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    if (doca_pe_progress(engine.get()) == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  return true;
}

void doca_ctx::change_state(doca_ctx_states to) noexcept {
  const doca_ctx_states from = std::exchange(state, to);
  if (to == DOCA_CTX_STATE_IDLE) became_idle();
  if (state_callback != nullptr) state_callback(user_data, this, from, to);
}

bool doca_ctx::start() {
  configure();
  context().set_state_callback(follow_start, this);
  context().start();
  // Read before the program's callback, which may stop the context and destroy it.
  const bool is_running = context().state() == Context::State::running;
  change_state(is_running ? DOCA_CTX_STATE_RUNNING : DOCA_CTX_STATE_STARTING);
  return is_running;
}

/// Follows a start that took turns of the engine.
void doca_ctx::follow_start(Context&, Context::State from, Context::State to, void* ctx) {
  auto& self = *static_cast<doca_ctx*>(ctx);
  if (self.state != DOCA_CTX_STATE_STARTING || from != Context::State::starting) return;
  if (to == Context::State::running) self.change_state(DOCA_CTX_STATE_RUNNING);
  if (to != Context::State::idle) return;
  self.change_state(DOCA_CTX_STATE_STOPPING);
  self.pe->stopping.push_back(&self);  // there is room; the end of the turn makes it idle
}

void doca_ctx::task_ended_otherwise(doca_task& task, doca_error_t status, bool may_stop) noexcept {
  task.status = status;
  // The context is in its stop(), which may be a call of the program: the callback has to wait.
  if (state == DOCA_CTX_STATE_STOPPING) {
    task.has_ended = true;
    task.next_ended = nullptr;
    (last_ended_ != nullptr ? last_ended_->next_ended : first_ended_) = &task;
    last_ended_ = &task;
    ++ended_;
    return;
  }
  if (status != DOCA_SUCCESS && may_stop && stops_on_failure()) stop();
  task.call_back();
}

bool doca_ctx::stop() noexcept {
  change_state(DOCA_CTX_STATE_STOPPING);
  const Context::State own = context().state();
  if (own == Context::State::running || own == Context::State::starting) context().stop();
  if (!pe->in_turn && can_be_idle()) {
    change_state(DOCA_CTX_STATE_IDLE);
    return true;
  }
  pe->stopping.push_back(this);  // there is room
  if (pe->is_armed) pe->engine.notify();
  return false;
}

bool doca_ctx::report_ended() noexcept {
  const bool had_any = first_ended_ != nullptr;
  while (doca_task* const task = first_ended_) {
    first_ended_ = task->next_ended;
    if (first_ended_ == nullptr) last_ended_ = nullptr;
    --ended_;
    task->has_ended = false;
    task->call_back();
  }
  return had_any;
}

bool doca_ctx::can_be_idle() noexcept {
  return context().state() == Context::State::idle && ended_ == 0 && has_all_tasks();
}

std::size_t doca_ctx::in_flight() const noexcept {
  return const_cast<doca_ctx*>(this)->submitted() + ended_;
}

doca_error_t doca_ctx_start(doca_ctx* ctx) {
  if (ctx == nullptr) return DOCA_ERROR_INVALID_VALUE;
  const bool connects = ctx->pe == nullptr && ctx->runs_alone();
  if (ctx->state != DOCA_CTX_STATE_IDLE || (ctx->pe == nullptr && !connects) ||
      !ctx->is_configured()) {
    return DOCA_ERROR_BAD_STATE;
  }
  bool is_running = false;
  const doca_error_t result = guarded(__func__, [&] {
    if (connects) ctx->connect_alone();
    is_running = ctx->start();
  });
  return result == DOCA_SUCCESS && !is_running ? DOCA_ERROR_IN_PROGRESS : result;
}

doca_error_t doca_ctx_stop(doca_ctx* ctx) {
  if (ctx == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (ctx->pe == nullptr) return DOCA_ERROR_NOT_CONNECTED;
  if (ctx->state == DOCA_CTX_STATE_IDLE) return DOCA_SUCCESS;
  if (ctx->state == DOCA_CTX_STATE_STOPPING) return DOCA_ERROR_IN_PROGRESS;
  if (ctx->stop()) return DOCA_SUCCESS;
  return doca_ctx::idles_alone(*ctx) ? DOCA_SUCCESS : DOCA_ERROR_IN_PROGRESS;
}

doca_error_t doca_ctx_get_state(const doca_ctx* ctx, doca_ctx_states* state) {
  if (any_null(ctx, state)) return DOCA_ERROR_INVALID_VALUE;
  *state = ctx->state;
  return DOCA_SUCCESS;
}

doca_error_t doca_ctx_get_num_inflight_tasks(const doca_ctx* ctx, size_t* num_inflight_tasks) {
  if (any_null(ctx, num_inflight_tasks)) return DOCA_ERROR_INVALID_VALUE;
  *num_inflight_tasks = ctx->in_flight();
  return DOCA_SUCCESS;
}

doca_error_t doca_ctx_get_event_driven_supported(const doca_ctx* ctx,
                                                 uint8_t* event_driven_supported) {
  if (any_null(ctx, event_driven_supported)) return DOCA_ERROR_INVALID_VALUE;
  *event_driven_supported = 1;
  return DOCA_SUCCESS;
}

doca_error_t doca_ctx_set_user_data(doca_ctx* ctx, doca_data user_data) {
  if (ctx == nullptr) return DOCA_ERROR_INVALID_VALUE;
  ctx->user_data = user_data;
  return DOCA_SUCCESS;
}

doca_error_t doca_ctx_get_user_data(const doca_ctx* ctx, doca_data* user_data) {
  if (any_null(ctx, user_data)) return DOCA_ERROR_INVALID_VALUE;
  *user_data = ctx->user_data;
  return DOCA_SUCCESS;
}

doca_error_t doca_ctx_set_state_changed_cb(doca_ctx* ctx,
                                           doca_ctx_state_changed_callback_t callback) {
  if (ctx == nullptr || callback == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (ctx->state != DOCA_CTX_STATE_IDLE) return DOCA_ERROR_BAD_STATE;
  ctx->state_callback = callback;
  return DOCA_SUCCESS;
}

doca_error_t doca_ctx_set_datapath_on_gpu(doca_ctx* ctx, doca_gpu* gpu_dev) {
  if (any_null(ctx, gpu_dev)) return DOCA_ERROR_INVALID_VALUE;
  if (const doca_error_t result = check_unused(*ctx); result != DOCA_SUCCESS) return result;
  return ctx->set_gpu(*gpu_dev) ? DOCA_SUCCESS : DOCA_ERROR_NOT_SUPPORTED;
}

void doca_ctx_flush_tasks(doca_ctx* ctx) {
  if (ctx != nullptr) ctx->flush();
}
