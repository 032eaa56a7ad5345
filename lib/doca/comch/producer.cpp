#include <cstdint>
#include <memory>
#include <optional>

#include "doca/buf.hpp"
#include "doca/comch/comch.hpp"
#include "doca/comch/data_contexts.hpp"
#include "doca/comch/gpu_queues.hpp"
#include "doca/guard.hpp"
#include "doca/include/doca_comch_producer.h"
#include "doca/task_set.hpp"

using namespace offload::doca;  // NOLINT(google-build-using-namespace): the calls have no namespace
using offload::core::ErrorCode;
using offload::core::Status;
using offload::memory::BufferRef;
using offload::progress::Task;

struct doca_comch_producer_task_send final : doca_task {
  Status prepare() noexcept override;
  Status submit(bool flush) noexcept override { return submit_to<ProducerContext>(*this, flush); }
  void let_go() noexcept override;
  void call_back() noexcept override;
  void release() noexcept override;

  [[nodiscard]] DataTask& data() const noexcept { return static_cast<DataTask&>(*task); }
  [[nodiscard]] doca_comch_producer& producer() const noexcept;

  const doca_buf* buf = nullptr;
  std::uint32_t consumer = 0;
};

/// A ProducerContext with its tasks.
struct doca_comch_producer final : doca_ctx {
  explicit doca_comch_producer(ComchConnection& connection)
      : producer(connection.shared_from_this(), &doca_comch_producer::lost, this) {}
  ~doca_comch_producer() override { tasks.clear(); }

  offload::progress::Context& context() noexcept override { return producer; }
  [[nodiscard]] bool is_configured() const noexcept override { return tasks.is_configured(); }
  [[nodiscard]] bool has_all_tasks() const noexcept override { return tasks.has_all(); }
  bool set_gpu(doca_gpu& to) override {
    gpu.emplace(to);
    return true;
  }
  void configure() override {
    if (!gpu) return;
    sender = std::make_unique<GpuSender>(*gpu->get(), tasks.size());
    producer.set_sender(sender.get());
  }

  static void ended(Task& task, void* producer) noexcept;
  static void lost(void* producer) noexcept {
    auto& self = *static_cast<doca_comch_producer*>(producer);
    if (self.state == DOCA_CTX_STATE_RUNNING) self.stop();
  }

  TaskSet<doca_comch_producer_task_send, DataTask> tasks;
  std::optional<GpuUse> gpu;          ///< of the data path; none: tasks
  std::unique_ptr<GpuSender> sender;  ///< of the last start; it outlives the context's stop
  ProducerContext producer;
  doca_comch_producer_task_send_completion_cb_t completed = nullptr;
  doca_comch_producer_task_send_completion_cb_t failed = nullptr;
};

doca_comch_producer& doca_comch_producer_task_send::producer() const noexcept {
  return static_cast<doca_comch_producer&>(*ctx);
}

Status doca_comch_producer_task_send::prepare() noexcept {
  let_go();
  data().consumer = consumer;
  if (buf == nullptr) return {};
  // The const_cast is safe: a message is only read.
  auto* const buffer = buffer_of(const_cast<doca_buf*>(buf));
  if (buffer == nullptr || !buffer->all_in_host()) return ErrorCode::invalid_value;
  data().buffer = BufferRef::share(*buffer);
  buffer->hold();
  return {};
}

void doca_comch_producer_task_send::let_go() noexcept {
  if (data().buffer) data().buffer->unhold();
  data().let_go();
}

void doca_comch_producer_task_send::call_back() noexcept {
  const auto call = status == DOCA_SUCCESS ? producer().completed : producer().failed;
  call(this, user_data, ctx->user_data);
}

void doca_comch_producer_task_send::release() noexcept {
  producer().tasks.release(*this);
}

void doca_comch_producer::ended(Task& task, void* producer) noexcept {
  auto& own = *static_cast<doca_comch_producer_task_send*>(task.user_data);
  own.let_go();  // first, as the callback may return the buffer
  static_cast<doca_comch_producer*>(producer)->task_ended(own, to_doca(task.status()));
}

doca_error_t doca_comch_producer_cap_is_supported(const doca_devinfo* devinfo) {
  return doca_comch_cap_client_is_supported(devinfo);
}

doca_error_t doca_comch_producer_cap_get_max_num_tasks(const doca_devinfo* devinfo,
                                                       uint32_t* max_num_tasks) {
  return get_capability(devinfo, kMostTasksOfContext, max_num_tasks);
}

doca_error_t doca_comch_producer_cap_get_max_buf_size(const doca_devinfo* devinfo,
                                                      uint32_t* max_buf_size) {
  return get_capability(devinfo, kMostMessageData, max_buf_size);
}

doca_error_t doca_comch_producer_cap_get_max_buf_list_len(const doca_devinfo* devinfo,
                                                          uint32_t* max_buf_list_len) {
  return get_capability(devinfo, kMostSentBuffers, max_buf_list_len);
}

doca_error_t doca_comch_producer_create(doca_comch_connection* comch_connection,
                                        doca_comch_producer** producer) {
  if (any_null(comch_connection, producer)) return DOCA_ERROR_INVALID_VALUE;
  return guarded(__func__,
                 [&] { *producer = new doca_comch_producer(*connection_of(comch_connection)); });
}

doca_error_t doca_comch_producer_destroy(doca_comch_producer* producer) {
  if (producer == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (const doca_error_t result = check_unused(*producer); result != DOCA_SUCCESS) return result;
  delete producer;
  return DOCA_SUCCESS;
}

doca_ctx* doca_comch_producer_as_ctx(doca_comch_producer* producer) {
  return producer;
}

doca_error_t doca_comch_producer_get_gpu_handle(const doca_comch_producer* producer,
                                                doca_comch_gpu_producer** gpu_producer) {
  if (any_null(producer, gpu_producer)) return DOCA_ERROR_INVALID_VALUE;
  if (!producer->sender) return DOCA_ERROR_BAD_STATE;
  *gpu_producer = static_cast<doca_comch_gpu_producer*>(producer->sender->handle());
  return DOCA_SUCCESS;
}

doca_error_t doca_comch_producer_get_id(const doca_comch_producer* producer, uint32_t* id) {
  if (any_null(producer, id)) return DOCA_ERROR_INVALID_VALUE;
  *id = producer->producer.id();
  return DOCA_SUCCESS;
}

doca_error_t doca_comch_producer_task_send_set_conf(
    doca_comch_producer* producer, doca_comch_producer_task_send_completion_cb_t task_completion_cb,
    doca_comch_producer_task_send_completion_cb_t task_error_cb, uint32_t num_send_tasks) {
  if (producer == nullptr || task_completion_cb == nullptr || task_error_cb == nullptr ||
      num_send_tasks == 0 || num_send_tasks > kMostTasksOfContext) {
    return DOCA_ERROR_INVALID_VALUE;
  }
  if (const doca_error_t result = check_unused(*producer); result != DOCA_SUCCESS) return result;
  return guarded(__func__, [&] {
    producer->tasks.configure(producer->producer, num_send_tasks,
                              {&doca_comch_producer::ended, producer});
    producer->completed = task_completion_cb;
    producer->failed = task_error_cb;
  });
}

doca_error_t doca_comch_producer_task_send_alloc_init(doca_comch_producer* producer,
                                                      const doca_buf* buf, uint8_t* imm_data,
                                                      uint32_t imm_data_len, uint32_t consumer_id,
                                                      doca_comch_producer_task_send** task) {
  if (any_null(producer, task) || imm_data_len > kMostImmediate ||
      (imm_data == nullptr) != (imm_data_len == 0) || (buf == nullptr && imm_data == nullptr)) {
    return DOCA_ERROR_INVALID_VALUE;
  }
  if (producer->state != DOCA_CTX_STATE_RUNNING) return DOCA_ERROR_BAD_STATE;
  if (producer->gpu) return DOCA_ERROR_NOT_SUPPORTED;
  auto* const allocated = producer->tasks.allocate(*producer, {});
  if (allocated == nullptr) return DOCA_ERROR_NO_MEMORY;
  allocated->data().immediate = {reinterpret_cast<const std::byte*>(imm_data), imm_data_len};
  allocated->buf = buf;
  allocated->consumer = consumer_id;
  *task = allocated;
  return DOCA_SUCCESS;
}

doca_task* doca_comch_producer_task_send_as_task(doca_comch_producer_task_send* task) {
  return task;
}

void doca_comch_producer_task_send_set_buf(doca_comch_producer_task_send* task,
                                           const doca_buf* buf) {
  if (may_be_set(task, __func__)) task->buf = buf;
}

void doca_comch_producer_task_send_set_consumer_id(doca_comch_producer_task_send* task,
                                                   uint32_t consumer_id) {
  if (may_be_set(task, __func__)) task->consumer = consumer_id;
}

const doca_buf* doca_comch_producer_task_send_get_buf(const doca_comch_producer_task_send* task) {
  return task != nullptr ? task->buf : nullptr;
}

uint32_t doca_comch_producer_task_send_get_consumer_id(const doca_comch_producer_task_send* task) {
  return task != nullptr ? task->consumer : 0;
}
