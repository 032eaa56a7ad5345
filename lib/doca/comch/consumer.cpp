#include <cstdint>
#include <memory>
#include <optional>

#include "core/error.hpp"
#include "doca/buf.hpp"
#include "doca/comch/comch.hpp"
#include "doca/comch/data_contexts.hpp"
#include "doca/comch/gpu_queues.hpp"
#include "doca/guard.hpp"
#include "doca/include/doca_comch_consumer.h"
#include "doca/mmap.hpp"
#include "doca/task_set.hpp"

using namespace offload::doca;  // NOLINT(google-build-using-namespace): the calls have no namespace
using offload::core::ErrorCode;
using offload::core::Status;
using offload::memory::BufferRef;
using offload::progress::Task;

struct doca_comch_consumer_task_post_recv final : doca_task {
  Status prepare() noexcept override;
  Status submit(bool flush) noexcept override { return submit_to<ConsumerContext>(*this, flush); }
  void let_go() noexcept override;
  void call_back() noexcept override;
  void release() noexcept override;

  [[nodiscard]] PostedReceive& receive() const noexcept {
    return static_cast<PostedReceive&>(*task);
  }
  [[nodiscard]] doca_comch_consumer& consumer() const noexcept;

  doca_buf* buf = nullptr;
};

/// A ConsumerContext with its tasks.
struct doca_comch_consumer final : doca_ctx {
  doca_comch_consumer(ComchConnection& connection, doca_mmap& mmap)
      : consumer(connection.shared_from_this(), &doca_comch_consumer::lost, this), memory(mmap) {}
  ~doca_comch_consumer() override { tasks.clear(); }

  offload::progress::Context& context() noexcept override { return consumer; }
  [[nodiscard]] bool is_configured() const noexcept override { return tasks.is_configured(); }
  [[nodiscard]] bool has_all_tasks() const noexcept override { return tasks.has_all(); }
  bool set_gpu(doca_gpu& to) override {
    gpu.emplace(to);
    return true;
  }
  void configure() override {
    if (!gpu) return;
    if (memory->key == 0) {
      throw offload::core::Error(ErrorCode::bad_state, "the consumer's mmap is stopped");
    }
    receiver = std::make_unique<GpuReceiver>(*gpu->get(), tasks.size(), memory->key);
    consumer.set_receiver(receiver.get());
  }

  static void ended(Task& task, void* consumer) noexcept;
  static void lost(void* consumer) noexcept {
    auto& self = *static_cast<doca_comch_consumer*>(consumer);
    if (self.state == DOCA_CTX_STATE_RUNNING) self.stop();
  }

  TaskSet<doca_comch_consumer_task_post_recv, PostedReceive> tasks;
  std::optional<GpuUse> gpu;              ///< of the data path; none: tasks
  std::unique_ptr<GpuReceiver> receiver;  ///< of the last start; it outlives the context's stop
  ConsumerContext consumer;
  MmapUse memory;
  std::uint32_t immediate_length = 0;
  doca_comch_consumer_task_post_recv_completion_cb_t completed = nullptr;
  doca_comch_consumer_task_post_recv_completion_cb_t failed = nullptr;
};

doca_comch_consumer& doca_comch_consumer_task_post_recv::consumer() const noexcept {
  return static_cast<doca_comch_consumer&>(*ctx);
}

Status doca_comch_consumer_task_post_recv::prepare() noexcept {
  let_go();
  receive().immediate_length = 0;
  receive().producer = 0;
  if (buf == nullptr) return {};
  auto* const buffer = buffer_of(buf);
  const auto& region = consumer().memory->region;
  if (buffer == nullptr || !region || &buffer->region() != &*region || !buffer->all_in_host()) {
    return ErrorCode::invalid_value;
  }
  if (buffer->next() != nullptr) return ErrorCode::not_supported;
  receive().buffer = BufferRef::share(*buffer);
  buffer->hold();
  return {};
}

void doca_comch_consumer_task_post_recv::let_go() noexcept {
  if (receive().buffer) receive().buffer->unhold();
  receive().let_go();
}

void doca_comch_consumer_task_post_recv::call_back() noexcept {
  const auto call = status == DOCA_SUCCESS ? consumer().completed : consumer().failed;
  call(this, user_data, ctx->user_data);
}

void doca_comch_consumer_task_post_recv::release() noexcept {
  consumer().tasks.release(*this);
}

void doca_comch_consumer::ended(Task& task, void* consumer) noexcept {
  auto& own = *static_cast<doca_comch_consumer_task_post_recv*>(task.user_data);
  own.let_go();  // first, as the callback may return the buffer
  static_cast<doca_comch_consumer*>(consumer)->task_ended(own, to_doca(task.status()));
}

doca_error_t doca_comch_consumer_cap_is_supported(const doca_devinfo* devinfo) {
  return doca_comch_cap_client_is_supported(devinfo);
}

doca_error_t doca_comch_consumer_cap_get_max_num_tasks(const doca_devinfo* devinfo,
                                                       uint32_t* max_num_tasks) {
  return get_capability(devinfo, kMostTasksOfContext, max_num_tasks);
}

doca_error_t doca_comch_consumer_cap_get_max_buf_size(const doca_devinfo* devinfo,
                                                      uint32_t* max_buf_size) {
  return get_capability(devinfo, kMostMessageData, max_buf_size);
}

doca_error_t doca_comch_consumer_cap_get_max_imm_data_len(const doca_devinfo* devinfo,
                                                          uint32_t* imm_data_len) {
  return get_capability(devinfo, kMostImmediate, imm_data_len);
}

doca_error_t doca_comch_consumer_create(doca_comch_connection* comch_connection,
                                        doca_mmap* buf_mmap, doca_comch_consumer** consumer) {
  if (any_null(comch_connection, buf_mmap, consumer)) return DOCA_ERROR_INVALID_VALUE;
  if (!buf_mmap->region || (buf_mmap->access & DOCA_ACCESS_FLAG_PCI_READ_WRITE) == 0) {
    return DOCA_ERROR_NOT_PERMITTED;
  }
  return guarded(__func__, [&] {
    *consumer = new doca_comch_consumer(*connection_of(comch_connection), *buf_mmap);
  });
}

doca_error_t doca_comch_consumer_destroy(doca_comch_consumer* consumer) {
  if (consumer == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (const doca_error_t result = check_unused(*consumer); result != DOCA_SUCCESS) return result;
  delete consumer;
  return DOCA_SUCCESS;
}

doca_ctx* doca_comch_consumer_as_ctx(doca_comch_consumer* consumer) {
  return consumer;
}

doca_error_t doca_comch_consumer_get_gpu_handle(const doca_comch_consumer* consumer,
                                                doca_comch_gpu_consumer** gpu_consumer) {
  if (any_null(consumer, gpu_consumer)) return DOCA_ERROR_INVALID_VALUE;
  if (!consumer->receiver) return DOCA_ERROR_BAD_STATE;
  *gpu_consumer = static_cast<doca_comch_gpu_consumer*>(consumer->receiver->handle());
  return DOCA_SUCCESS;
}

doca_error_t doca_comch_consumer_get_id(const doca_comch_consumer* consumer, uint32_t* id) {
  if (any_null(consumer, id)) return DOCA_ERROR_INVALID_VALUE;
  if (consumer->consumer.id() == 0) return DOCA_ERROR_BAD_STATE;
  *id = consumer->consumer.id();
  return DOCA_SUCCESS;
}

doca_error_t doca_comch_consumer_set_imm_data_len(doca_comch_consumer* consumer,
                                                  uint32_t imm_data_len) {
  if (consumer == nullptr || imm_data_len > kMostImmediate) return DOCA_ERROR_INVALID_VALUE;
  if (consumer->state != DOCA_CTX_STATE_IDLE) return DOCA_ERROR_BAD_STATE;
  consumer->immediate_length = imm_data_len;
  return DOCA_SUCCESS;
}

doca_error_t doca_comch_consumer_get_imm_data_len(const doca_comch_consumer* consumer,
                                                  uint32_t* imm_data_len) {
  if (any_null(consumer, imm_data_len)) return DOCA_ERROR_INVALID_VALUE;
  *imm_data_len = consumer->immediate_length;
  return DOCA_SUCCESS;
}

doca_error_t doca_comch_consumer_task_post_recv_set_conf(
    doca_comch_consumer* consumer,
    doca_comch_consumer_task_post_recv_completion_cb_t task_completion_cb,
    doca_comch_consumer_task_post_recv_completion_cb_t task_error_cb,
    uint32_t num_post_recv_tasks) {
  if (consumer == nullptr || task_completion_cb == nullptr || task_error_cb == nullptr ||
      num_post_recv_tasks == 0 || num_post_recv_tasks > kMostTasksOfContext) {
    return DOCA_ERROR_INVALID_VALUE;
  }
  if (const doca_error_t result = check_unused(*consumer); result != DOCA_SUCCESS) return result;
  return guarded(__func__, [&] {
    consumer->tasks.configure(consumer->consumer, num_post_recv_tasks,
                              {&doca_comch_consumer::ended, consumer});
    consumer->completed = task_completion_cb;
    consumer->failed = task_error_cb;
  });
}

doca_error_t doca_comch_consumer_task_post_recv_alloc_init(
    doca_comch_consumer* consumer, doca_buf* buf, doca_comch_consumer_task_post_recv** task) {
  if (any_null(consumer, task)) return DOCA_ERROR_INVALID_VALUE;
  if (consumer->state != DOCA_CTX_STATE_RUNNING) return DOCA_ERROR_BAD_STATE;
  if (consumer->gpu) return DOCA_ERROR_NOT_SUPPORTED;
  auto* const allocated = consumer->tasks.allocate(*consumer, {});
  if (allocated == nullptr) return DOCA_ERROR_NO_MEMORY;
  allocated->buf = buf;
  *task = allocated;
  return DOCA_SUCCESS;
}

doca_task* doca_comch_consumer_task_post_recv_as_task(doca_comch_consumer_task_post_recv* task) {
  return task;
}

void doca_comch_consumer_task_post_recv_set_buf(doca_comch_consumer_task_post_recv* task,
                                                doca_buf* buf) {
  if (may_be_set(task, __func__)) task->buf = buf;
}

doca_buf* doca_comch_consumer_task_post_recv_get_buf(
    const doca_comch_consumer_task_post_recv* task) {
  return task != nullptr ? task->buf : nullptr;
}

const uint8_t* doca_comch_consumer_task_post_recv_get_imm_data(
    const doca_comch_consumer_task_post_recv* task) {
  if (task == nullptr || task->task == nullptr) return nullptr;
  return reinterpret_cast<const uint8_t*>(task->receive().immediate.data());
}

uint32_t doca_comch_consumer_task_post_recv_get_imm_data_len(
    const doca_comch_consumer_task_post_recv* task) {
  return task != nullptr && task->task != nullptr ? task->receive().immediate_length : 0;
}

uint32_t doca_comch_consumer_task_post_recv_get_producer_id(
    const doca_comch_consumer_task_post_recv* task) {
  return task != nullptr && task->task != nullptr ? task->receive().producer : 0;
}
