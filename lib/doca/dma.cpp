#include <limits>
#include <memory>
#include <optional>

#include "device/device.hpp"
#include "doca/buf.hpp"
#include "doca/device.hpp"
#include "doca/gpu/copies.hpp"
#include "doca/guard.hpp"
#include "doca/include/doca_dma.h"
#include "doca/include/doca_gpunetio_dev_dma.cuh"
#include "doca/task_set.hpp"
#include "tasks/copy/memory_copy_context.hpp"

using namespace offload::doca;  // NOLINT(google-build-using-namespace): the calls have no namespace
using offload::copy::CopyTask;
using offload::copy::MemoryCopyContext;
using offload::core::Status;
using offload::memory::BufferRef;
using offload::progress::Task;

struct doca_dma_task_memcpy final : doca_task {
  Status prepare() noexcept override;
  void let_go() noexcept override;
  void call_back() noexcept override;
  void release() noexcept override;

  [[nodiscard]] CopyTask* copy() const noexcept { return static_cast<CopyTask*>(task); }
  [[nodiscard]] doca_dma& dma() const noexcept;

  const doca_buf* source = nullptr;
  doca_buf* destination = nullptr;
};

/// A copy::MemoryCopyContext with its pool of tasks.
struct doca_dma final : doca_ctx {
  explicit doca_dma(doca_dev& dev) : device(dev) {}

  offload::progress::Context& context() noexcept override { return copies; }
  [[nodiscard]] bool is_configured() const noexcept override {
    return tasks.is_configured() || gpu.has_value();
  }
  [[nodiscard]] bool has_all_tasks() const noexcept override { return tasks.has_all(); }
  bool set_gpu(doca_gpu& to) override {
    gpu.emplace(to);
    return true;
  }
  [[nodiscard]] bool runs_alone() const noexcept override { return gpu.has_value(); }
  void configure() override {
    if (gpu) of_kernels = std::make_unique<GpuCopies>(*gpu->get());
  }
  void became_idle() noexcept override {
    if (of_kernels) of_kernels->end();
  }

  static void copied(Task& task, void* dma) noexcept;

  DeviceUse device;
  std::optional<GpuUse> gpu;              ///< of the data path; none: tasks
  std::unique_ptr<GpuCopies> of_kernels;  ///< of the last start, whose handle a kernel may have
  MemoryCopyContext copies{"dma", copy_gpu_bytes};
  TaskSet<doca_dma_task_memcpy, CopyTask> tasks;
  doca_dma_task_memcpy_completion_cb_t completed = nullptr;
  doca_dma_task_memcpy_completion_cb_t failed = nullptr;
};

doca_dma& doca_dma_task_memcpy::dma() const noexcept {
  return static_cast<doca_dma&>(*ctx);
}

Status doca_dma_task_memcpy::prepare() noexcept {
  // The const_cast is safe: a source is only read.
  auto* const from = buffer_of(const_cast<doca_buf*>(source));
  auto* const to = buffer_of(destination);
  if (any_null(from, to)) return offload::core::ErrorCode::invalid_value;
  let_go();
  copy()->source = BufferRef::share(*from);
  copy()->destination = BufferRef::share(*to);
  from->hold();
  to->hold();
  return {};
}

void doca_dma_task_memcpy::let_go() noexcept {
  for (const BufferRef* held : {&copy()->source, &copy()->destination}) {
    if (*held) (*held)->unhold();
  }
  copy()->let_go();
}

void doca_dma_task_memcpy::call_back() noexcept {
  const auto call = status == DOCA_SUCCESS ? dma().completed : dma().failed;
  call(this, user_data, ctx->user_data);
}

void doca_dma_task_memcpy::release() noexcept {
  dma().tasks.release(*this);
}

void doca_dma::copied(Task& task, void* dma) noexcept {
  auto& self = *static_cast<doca_dma*>(dma);
  auto& ended = *static_cast<doca_dma_task_memcpy*>(task.user_data);
  doca_error_t status = to_doca(task.status());
  // A card's copy engine refuses to copy nothing, and programs are written for that.
  if (status == DOCA_SUCCESS && ended.copy()->source->total_length() == 0) {
    status = DOCA_ERROR_IO_FAILED;
  }
  ended.let_go();  // first, as the callback may return the buffers
  self.task_ended(ended, status);
}

doca_error_t doca_dma_cap_task_memcpy_is_supported(const doca_devinfo* devinfo) {
  if (devinfo == nullptr) return DOCA_ERROR_INVALID_VALUE;
  // A GPU copies too, but by another context.
  bool supported = devinfo->device.kind == offload::device::Kind::host;
  const doca_error_t result = guarded(__func__, [&] {
    supported = supported &&
                offload::device::supports(devinfo->device, offload::device::Capability::copies);
  });
  if (result != DOCA_SUCCESS) return result;
  return supported ? DOCA_SUCCESS : DOCA_ERROR_NOT_SUPPORTED;
}

doca_error_t doca_dma_cap_task_memcpy_get_max_buf_size(const doca_devinfo* devinfo,
                                                       uint64_t* buf_size) {
  if (any_null(devinfo, buf_size)) return DOCA_ERROR_INVALID_VALUE;
  const doca_error_t result = doca_dma_cap_task_memcpy_is_supported(devinfo);
  if (result == DOCA_SUCCESS) *buf_size = std::numeric_limits<std::int64_t>::max();
  return result;
}

doca_error_t doca_dma_cap_task_memcpy_get_max_buf_list_len(const doca_devinfo* devinfo,
                                                           uint32_t* max_buf_list_len) {
  if (any_null(devinfo, max_buf_list_len)) return DOCA_ERROR_INVALID_VALUE;
  const doca_error_t result = doca_dma_cap_task_memcpy_is_supported(devinfo);
  if (result == DOCA_SUCCESS) *max_buf_list_len = MemoryCopyContext::kMostElements;
  return result;
}

doca_error_t doca_dma_cap_get_max_num_tasks(doca_dma* dma, uint32_t* max_num_tasks) {
  if (any_null(dma, max_num_tasks)) return DOCA_ERROR_INVALID_VALUE;
  *max_num_tasks = kMostTasksOfContext;
  return DOCA_SUCCESS;
}

doca_error_t doca_dma_create(doca_dev* dev, doca_dma** dma) {
  if (any_null(dev, dma)) return DOCA_ERROR_INVALID_VALUE;
  const doca_error_t result = doca_dma_cap_task_memcpy_is_supported(&dev->info);
  if (result != DOCA_SUCCESS) return result;
  return guarded(__func__, [&] { *dma = new doca_dma(*dev); });
}

doca_error_t doca_dma_destroy(doca_dma* dma) {
  if (dma == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (const doca_error_t result = check_unused(*dma); result != DOCA_SUCCESS) return result;
  delete dma;
  return DOCA_SUCCESS;
}

doca_ctx* doca_dma_as_ctx(doca_dma* dma) {
  return dma;
}

doca_error_t doca_dma_get_gpu_handle(doca_dma* dma, doca_gpu_dma** gpu_dma) {
  if (any_null(dma, gpu_dma)) return DOCA_ERROR_INVALID_VALUE;
  if (!dma->of_kernels) return DOCA_ERROR_BAD_STATE;
  *gpu_dma = static_cast<doca_gpu_dma*>(dma->of_kernels->handle());
  return DOCA_SUCCESS;
}

doca_error_t doca_dma_task_memcpy_set_conf(doca_dma* dma,
                                           doca_dma_task_memcpy_completion_cb_t completed,
                                           doca_dma_task_memcpy_completion_cb_t failed,
                                           uint32_t num_memcpy_tasks) {
  if (dma == nullptr || completed == nullptr || failed == nullptr || num_memcpy_tasks == 0 ||
      num_memcpy_tasks > kMostTasksOfContext) {
    return DOCA_ERROR_INVALID_VALUE;
  }
  if (const doca_error_t result = check_unused(*dma); result != DOCA_SUCCESS) return result;
  return guarded(__func__, [&] {
    dma->tasks.configure(dma->copies, num_memcpy_tasks, {&doca_dma::copied, dma});
    dma->completed = completed;
    dma->failed = failed;
  });
}

doca_error_t doca_dma_task_memcpy_alloc_init(doca_dma* dma, const doca_buf* src, doca_buf* dst,
                                             doca_data user_data, doca_dma_task_memcpy** task) {
  if (any_null(dma, src, dst, task)) return DOCA_ERROR_INVALID_VALUE;
  if (dma->state != DOCA_CTX_STATE_RUNNING) return DOCA_ERROR_BAD_STATE;
  if (dma->gpu) return DOCA_ERROR_NOT_SUPPORTED;
  doca_dma_task_memcpy* const allocated = dma->tasks.allocate(*dma, user_data);
  if (allocated == nullptr) return DOCA_ERROR_NO_MEMORY;
  allocated->source = src;
  allocated->destination = dst;
  *task = allocated;
  return DOCA_SUCCESS;
}

doca_task* doca_dma_task_memcpy_as_task(doca_dma_task_memcpy* task) {
  return task;
}

void doca_dma_task_memcpy_set_src(doca_dma_task_memcpy* task, const doca_buf* src) {
  if (may_be_set(task, __func__)) task->source = src;
}

void doca_dma_task_memcpy_set_dst(doca_dma_task_memcpy* task, doca_buf* dst) {
  if (may_be_set(task, __func__)) task->destination = dst;
}

const doca_buf* doca_dma_task_memcpy_get_src(const doca_dma_task_memcpy* task) {
  return task != nullptr ? task->source : nullptr;
}

doca_buf* doca_dma_task_memcpy_get_dst(const doca_dma_task_memcpy* task) {
  return task != nullptr ? task->destination : nullptr;
}
