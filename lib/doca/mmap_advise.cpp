#include <limits>

#include "core/cpu.hpp"
#include "core/intrusive_list.hpp"
#include "doca/buf.hpp"
#include "doca/device.hpp"
#include "doca/guard.hpp"
#include "doca/include/doca_mmap_advise.h"
#include "doca/task_set.hpp"
#include "progress/context.hpp"

using namespace offload::doca;  // NOLINT(google-build-using-namespace): the calls have no namespace
using offload::core::Status;
using offload::memory::BufferRef;
using offload::progress::Context;
using offload::progress::Task;

namespace {

class FenceContext;

/// A task that ends after a fence.
class FenceTask final : public Task, public offload::core::ListNode<FenceTask> {
 public:
  using ContextType = FenceContext;
};

/// A context whose turns are fences: caches are coherent, so that what remains of an invalidation
/// is that later reads are not made before it.
class FenceContext final : public Context {
 public:
  FenceContext() : Context("mmap advise") {}

 private:
  Status on_submit(Task& task) noexcept override {
    tasks_.push_back(static_cast<FenceTask&>(task));
    return {};
  }
  Step on_stop() noexcept override {
    while (tasks_.pop_front() != nullptr) continue;
    return Step::done;
  }
  bool on_poll(std::size_t most) override {
    if (tasks_.empty()) return false;
    offload::core::full_fence();
    for (; most != 0; --most) {
      FenceTask* const task = tasks_.pop_front();
      if (task == nullptr) break;
      complete(*task, {});
    }
    return true;
  }

  offload::core::IntrusiveList<FenceTask> tasks_;
};

}  // namespace

struct doca_mmap_advise_task_invalidate_cache final : doca_task {
  Status prepare() noexcept override;
  void let_go() noexcept override;
  void call_back() noexcept override;
  void release() noexcept override;

  [[nodiscard]] doca_mmap_advise& advise() const noexcept;

  doca_buf* buf = nullptr;
  BufferRef held;
};

/// A FenceContext with its pool of tasks.
struct doca_mmap_advise final : doca_ctx {
  explicit doca_mmap_advise(doca_dev& dev) : device(dev) {}

  Context& context() noexcept override { return fences; }
  [[nodiscard]] bool is_configured() const noexcept override { return tasks.is_configured(); }
  [[nodiscard]] bool has_all_tasks() const noexcept override { return tasks.has_all(); }

  static void fenced(Task& task, void* advise) noexcept;

  DeviceUse device;
  FenceContext fences;
  TaskSet<doca_mmap_advise_task_invalidate_cache, FenceTask> tasks;
  doca_mmap_advise_task_invalidate_cache_completion_cb_t completed = nullptr;
  doca_mmap_advise_task_invalidate_cache_completion_cb_t failed = nullptr;
};

doca_mmap_advise& doca_mmap_advise_task_invalidate_cache::advise() const noexcept {
  return static_cast<doca_mmap_advise&>(*ctx);
}

Status doca_mmap_advise_task_invalidate_cache::prepare() noexcept {
  auto* const buffer = buffer_of(buf);
  if (buffer == nullptr) return offload::core::ErrorCode::invalid_value;
  let_go();
  held = BufferRef::share(*buffer);
  buffer->hold();
  return {};
}

void doca_mmap_advise_task_invalidate_cache::let_go() noexcept {
  if (held) held->unhold();
  held.reset();
}

void doca_mmap_advise_task_invalidate_cache::call_back() noexcept {
  const auto call = status == DOCA_SUCCESS ? advise().completed : advise().failed;
  call(this, user_data, ctx->user_data);
}

void doca_mmap_advise_task_invalidate_cache::release() noexcept {
  advise().tasks.release(*this);
}

void doca_mmap_advise::fenced(Task& task, void* advise) noexcept {
  auto& ended = *static_cast<doca_mmap_advise_task_invalidate_cache*>(task.user_data);
  ended.let_go();  // first, as the callback may return the buffer
  static_cast<doca_mmap_advise*>(advise)->task_ended(ended, to_doca(task.status()));
}

doca_error_t doca_mmap_advise_cap_task_cache_invalidate_is_supported(const doca_devinfo* devinfo) {
  if (devinfo == nullptr) return DOCA_ERROR_INVALID_VALUE;
  const bool is_host = devinfo->device.kind == offload::device::Kind::host;
  return is_host ? DOCA_SUCCESS : DOCA_ERROR_NOT_SUPPORTED;
}

doca_error_t doca_mmap_advise_task_cache_invalidate_get_max_buf_size(const doca_devinfo* devinfo,
                                                                     uint64_t* buf_size) {
  if (any_null(devinfo, buf_size)) return DOCA_ERROR_INVALID_VALUE;
  const doca_error_t result = doca_mmap_advise_cap_task_cache_invalidate_is_supported(devinfo);
  if (result == DOCA_SUCCESS) *buf_size = std::numeric_limits<std::int64_t>::max();
  return result;
}

doca_error_t doca_mmap_advise_create(doca_dev* dev, doca_mmap_advise** mmap_advise) {
  if (any_null(dev, mmap_advise)) return DOCA_ERROR_INVALID_VALUE;
  const doca_error_t result = doca_mmap_advise_cap_task_cache_invalidate_is_supported(&dev->info);
  if (result != DOCA_SUCCESS) return result;
  return guarded(__func__, [&] { *mmap_advise = new doca_mmap_advise(*dev); });
}

doca_error_t doca_mmap_advise_destroy(doca_mmap_advise* mmap_advise) {
  if (mmap_advise == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (const doca_error_t result = check_unused(*mmap_advise); result != DOCA_SUCCESS) return result;
  delete mmap_advise;
  return DOCA_SUCCESS;
}

doca_ctx* doca_mmap_advise_as_ctx(doca_mmap_advise* mmap_advise) {
  return mmap_advise;
}

doca_error_t doca_mmap_advise_task_invalidate_cache_set_conf(
    doca_mmap_advise* mmap_advise,
    doca_mmap_advise_task_invalidate_cache_completion_cb_t completion_cb,
    doca_mmap_advise_task_invalidate_cache_completion_cb_t error_cb, uint32_t num_tasks) {
  if (mmap_advise == nullptr || completion_cb == nullptr || error_cb == nullptr || num_tasks == 0 ||
      num_tasks > kMostTasksOfContext) {
    return DOCA_ERROR_INVALID_VALUE;
  }
  if (const doca_error_t result = check_unused(*mmap_advise); result != DOCA_SUCCESS) return result;
  return guarded(__func__, [&] {
    mmap_advise->tasks.configure(mmap_advise->fences, num_tasks,
                                 {&doca_mmap_advise::fenced, mmap_advise});
    mmap_advise->completed = completion_cb;
    mmap_advise->failed = error_cb;
  });
}

doca_error_t doca_mmap_advise_task_invalidate_cache_alloc_init(
    doca_mmap_advise* mmap_advise, doca_buf* buf, doca_data user_data,
    doca_mmap_advise_task_invalidate_cache** task) {
  if (any_null(mmap_advise, buf, task)) return DOCA_ERROR_INVALID_VALUE;
  if (mmap_advise->state != DOCA_CTX_STATE_RUNNING) return DOCA_ERROR_BAD_STATE;
  auto* const allocated = mmap_advise->tasks.allocate(*mmap_advise, user_data);
  if (allocated == nullptr) return DOCA_ERROR_NO_MEMORY;
  allocated->buf = buf;
  *task = allocated;
  return DOCA_SUCCESS;
}

doca_task* doca_mmap_advise_task_invalidate_cache_as_doca_task(
    doca_mmap_advise_task_invalidate_cache* task) {
  return task;
}

void doca_mmap_advise_task_invalidate_cache_set_buf(doca_mmap_advise_task_invalidate_cache* task,
                                                    doca_buf* buf) {
  if (may_be_set(task, __func__)) task->buf = buf;
}

doca_buf* doca_mmap_advise_task_invalidate_cache_get_buf(
    const doca_mmap_advise_task_invalidate_cache* task) {
  return task != nullptr ? task->buf : nullptr;
}
