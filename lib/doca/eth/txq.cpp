#include <bit>
#include <memory>
#include <optional>

#include "core/error.hpp"
#include "doca/buf.hpp"
#include "doca/eth/contexts.hpp"
#include "doca/eth/eth.hpp"
#include "doca/eth/gpu_queues.hpp"
#include "doca/guard.hpp"
#include "doca/include/doca_eth_txq_cpu_data_path.h"
#include "doca/include/doca_eth_txq_gpu_data_path.h"
#include "doca/task_set.hpp"

using namespace offload::doca;  // NOLINT(google-build-using-namespace): the calls have no namespace
using offload::core::ErrorCode;
using offload::core::Status;
using offload::memory::BufferRef;
using offload::progress::Task;

struct doca_eth_txq_task_send final : doca_task {
  Status prepare() noexcept override;
  void let_go() noexcept override;
  void call_back() noexcept override;
  void release() noexcept override;

  [[nodiscard]] EthSendTask& send() const noexcept { return static_cast<EthSendTask&>(*task); }
  [[nodiscard]] doca_eth_txq& txq() const noexcept;

  doca_buf* packet = nullptr;
};

/// An EthSendContext with its tasks.
struct doca_eth_txq final : doca_ctx {
  doca_eth_txq(doca_dev& dev, std::uint32_t max_burst_size)
      : device(dev), sender(dev.info.interface), burst(max_burst_size) {}
  ~doca_eth_txq() override { tasks.clear(); }

  offload::progress::Context& context() noexcept override { return sender; }
  [[nodiscard]] bool is_configured() const noexcept override {
    return gpu || tasks.is_configured();
  }
  [[nodiscard]] bool runs_alone() const noexcept override { return gpu.has_value(); }
  bool set_gpu(doca_gpu& to) override {
    gpu.emplace(to);
    return true;
  }
  [[nodiscard]] bool has_all_tasks() const noexcept override { return tasks.has_all(); }
  void configure() override {
    sender.set_checksums(writes_ip_checksum, writes_transport_checksum);
    has_queue_id = false;
    if (!gpu) return;
    of_kernel = std::make_unique<GpuEthSender>(
        *gpu->get(), GpuEthSender::Options{std::bit_ceil(burst), may_wait, writes_ip_checksum,
                                           writes_transport_checksum});
    sender.set_sender(of_kernel.get());
  }

  static void ended(Task& task, void* txq) noexcept;

  DeviceUse device;
  TaskSet<doca_eth_txq_task_send, EthSendTask> tasks;
  std::optional<GpuUse> gpu;                ///< of the data path; none: tasks
  std::unique_ptr<GpuEthSender> of_kernel;  ///< of the last start; it outlives the stop
  EthSendContext sender;
  std::uint32_t burst;
  bool may_wait = false;
  bool has_proxy = false;  ///< the program has a thread for it
  bool writes_ip_checksum = false;
  bool writes_transport_checksum = false;
  bool has_queue_id = false;  ///< since the start
  doca_eth_txq_task_send_completion_cb_t completed = nullptr;
  doca_eth_txq_task_send_completion_cb_t failed = nullptr;
};

namespace {

/// Sets a member of an idle queue.
doca_error_t set(doca_eth_txq* txq, bool doca_eth_txq::*member, bool value) noexcept {
  if (txq == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (txq->state != DOCA_CTX_STATE_IDLE) return DOCA_ERROR_BAD_STATE;
  txq->*member = value;
  return DOCA_SUCCESS;
}

}  // namespace

doca_eth_txq& doca_eth_txq_task_send::txq() const noexcept {
  return static_cast<doca_eth_txq&>(*ctx);
}

Status doca_eth_txq_task_send::prepare() noexcept {
  auto* const buffer = buffer_of(packet);
  if (buffer == nullptr) return ErrorCode::invalid_value;
  let_go();
  send().buffer = BufferRef::share(*buffer);
  buffer->hold();
  return {};
}

void doca_eth_txq_task_send::let_go() noexcept {
  if (send().buffer) send().buffer->unhold();
  send().let_go();
}

void doca_eth_txq_task_send::call_back() noexcept {
  const auto call = status == DOCA_SUCCESS ? txq().completed : txq().failed;
  call(this, user_data, ctx->user_data);
}

void doca_eth_txq_task_send::release() noexcept {
  txq().tasks.release(*this);
}

void doca_eth_txq::ended(Task& task, void* txq) noexcept {
  auto& own = *static_cast<doca_eth_txq_task_send*>(task.user_data);
  own.let_go();  // first, as the callback may return the buffer
  static_cast<doca_eth_txq*>(txq)->task_ended(own, to_doca(task.status()));
}

doca_error_t doca_eth_txq_cap_get_max_burst_size(const doca_devinfo* devinfo, uint32_t max_list_len,
                                                 uint32_t max_lso_header_size,
                                                 uint32_t* max_burst_size) {
  if (any_null(devinfo, max_burst_size) || max_list_len > kMostFrameBuffers) {
    return DOCA_ERROR_INVALID_VALUE;
  }
  if (!has_eth(*devinfo) || max_lso_header_size != 0) return DOCA_ERROR_NOT_SUPPORTED;
  *max_burst_size = kMostBurst;
  return DOCA_SUCCESS;
}

doca_error_t doca_eth_txq_cap_is_type_supported(const doca_devinfo* devinfo, doca_eth_txq_type type,
                                                doca_eth_txq_data_path_type data_path_type) {
  if (devinfo == nullptr) return DOCA_ERROR_INVALID_VALUE;
  const bool is_supported =
      type == DOCA_ETH_TXQ_TYPE_REGULAR && (data_path_type == DOCA_ETH_TXQ_DATA_PATH_TYPE_CPU ||
                                            data_path_type == DOCA_ETH_TXQ_DATA_PATH_TYPE_GPU);
  return has_eth(*devinfo) && is_supported ? DOCA_SUCCESS : DOCA_ERROR_NOT_SUPPORTED;
}

doca_error_t doca_eth_txq_cap_get_wait_on_time_offload_supported(
    const doca_devinfo* devinfo, doca_eth_wait_on_time_type* wait_on_time_mode) {
  if (any_null(devinfo, wait_on_time_mode)) return DOCA_ERROR_INVALID_VALUE;
  if (!has_eth(*devinfo)) return DOCA_ERROR_NOT_SUPPORTED;
  *wait_on_time_mode = DOCA_ETH_WAIT_ON_TIME_TYPE_NATIVE;
  return DOCA_SUCCESS;
}

doca_error_t doca_eth_txq_create(doca_dev* dev, uint32_t max_burst_size, doca_eth_txq** eth_txq) {
  if (any_null(dev, eth_txq)) return DOCA_ERROR_INVALID_VALUE;
  if (!has_eth(dev->info)) return DOCA_ERROR_NOT_SUPPORTED;
  if (max_burst_size == 0 || max_burst_size > kMostBurst) return DOCA_ERROR_INVALID_VALUE;
  return guarded(__func__, [&] { *eth_txq = new doca_eth_txq(*dev, max_burst_size); });
}

doca_error_t doca_eth_txq_destroy(doca_eth_txq* eth_txq) {
  if (eth_txq == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (const doca_error_t result = check_unused(*eth_txq); result != DOCA_SUCCESS) return result;
  delete eth_txq;
  return DOCA_SUCCESS;
}

doca_ctx* doca_eth_txq_as_doca_ctx(doca_eth_txq* eth_txq) {
  return eth_txq;
}

doca_error_t doca_eth_txq_set_type(doca_eth_txq* eth_txq, doca_eth_txq_type type) {
  if (eth_txq == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (type != DOCA_ETH_TXQ_TYPE_REGULAR) return DOCA_ERROR_NOT_SUPPORTED;
  return eth_txq->state == DOCA_CTX_STATE_IDLE ? DOCA_SUCCESS : DOCA_ERROR_BAD_STATE;
}

doca_error_t doca_eth_txq_set_l3_chksum_offload(doca_eth_txq* eth_txq, uint8_t enable_l3_chksum) {
  return set(eth_txq, &doca_eth_txq::writes_ip_checksum, enable_l3_chksum != 0);
}

doca_error_t doca_eth_txq_set_l4_chksum_offload(doca_eth_txq* eth_txq, uint8_t enable_l4_chksum) {
  return set(eth_txq, &doca_eth_txq::writes_transport_checksum, enable_l4_chksum != 0);
}

doca_error_t doca_eth_txq_set_wait_on_time_offload(doca_eth_txq* eth_txq) {
  return set(eth_txq, &doca_eth_txq::may_wait, true);
}

doca_error_t doca_eth_txq_calculate_timestamp(const doca_eth_txq* eth_txq, uint64_t timestamp_ns,
                                              uint64_t* wait_on_time_value) {
  if (any_null(eth_txq, wait_on_time_value)) return DOCA_ERROR_INVALID_VALUE;
  if (!eth_txq->may_wait) return DOCA_ERROR_NOT_SUPPORTED;
  *wait_on_time_value = timestamp_ns;
  return DOCA_SUCCESS;
}

doca_error_t doca_eth_txq_get_gpu_handle(const doca_eth_txq* eth_txq,
                                         doca_gpu_eth_txq** eth_txq_gpu) {
  if (any_null(eth_txq, eth_txq_gpu)) return DOCA_ERROR_INVALID_VALUE;
  if (!eth_txq->of_kernel) return DOCA_ERROR_BAD_STATE;
  *eth_txq_gpu = static_cast<doca_gpu_eth_txq*>(eth_txq->of_kernel->handle());
  return DOCA_SUCCESS;
}

doca_error_t doca_eth_txq_gpu_set_completion_on_gpu(doca_eth_txq* eth_txq) {
  if (eth_txq == nullptr) return DOCA_ERROR_INVALID_VALUE;
  return eth_txq->state == DOCA_CTX_STATE_IDLE ? DOCA_SUCCESS : DOCA_ERROR_BAD_STATE;
}

doca_error_t doca_eth_txq_gpu_set_uar_on_cpu(doca_eth_txq* eth_txq) {
  return set(eth_txq, &doca_eth_txq::has_proxy, true);
}

doca_error_t doca_eth_txq_gpu_cpu_proxy_progress(doca_eth_txq* eth_txq) {
  if (eth_txq == nullptr) return DOCA_ERROR_INVALID_VALUE;
  return eth_txq->has_proxy ? DOCA_SUCCESS : DOCA_ERROR_BAD_STATE;
}

doca_error_t doca_eth_txq_apply_queue_id(doca_eth_txq* eth_txq, uint16_t queue_id) {
  static_cast<void>(queue_id);
  if (eth_txq == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (eth_txq->state != DOCA_CTX_STATE_RUNNING || eth_txq->has_queue_id) {
    return DOCA_ERROR_BAD_STATE;
  }
  eth_txq->has_queue_id = true;
  return DOCA_SUCCESS;
}

doca_error_t doca_eth_txq_task_send_set_conf(
    doca_eth_txq* eth_txq, doca_eth_txq_task_send_completion_cb_t task_completion_cb,
    doca_eth_txq_task_send_completion_cb_t task_error_cb, uint32_t task_send_num) {
  if (eth_txq == nullptr || task_completion_cb == nullptr || task_error_cb == nullptr ||
      task_send_num == 0 || task_send_num > kMostTasksOfContext) {
    return DOCA_ERROR_INVALID_VALUE;
  }
  if (const doca_error_t result = check_unused(*eth_txq); result != DOCA_SUCCESS) return result;
  return guarded(__func__, [&] {
    eth_txq->tasks.configure(eth_txq->sender, task_send_num, {&doca_eth_txq::ended, eth_txq});
    eth_txq->completed = task_completion_cb;
    eth_txq->failed = task_error_cb;
  });
}

doca_error_t doca_eth_txq_task_send_allocate_init(doca_eth_txq* eth_txq, doca_buf* pkt,
                                                  doca_data user_data,
                                                  doca_eth_txq_task_send** task_send) {
  if (any_null(eth_txq, pkt, task_send)) return DOCA_ERROR_INVALID_VALUE;
  if (eth_txq->state != DOCA_CTX_STATE_RUNNING) return DOCA_ERROR_BAD_STATE;
  doca_eth_txq_task_send* const allocated = eth_txq->tasks.allocate(*eth_txq, user_data);
  if (allocated == nullptr) return DOCA_ERROR_NO_MEMORY;
  allocated->packet = pkt;
  *task_send = allocated;
  return DOCA_SUCCESS;
}

doca_task* doca_eth_txq_task_send_as_doca_task(doca_eth_txq_task_send* task_send) {
  return task_send;
}

void doca_eth_txq_task_send_set_pkt(doca_eth_txq_task_send* task_send, doca_buf* pkt) {
  if (may_be_set(task_send, __func__)) task_send->packet = pkt;
}

doca_error_t doca_eth_txq_task_send_get_pkt(const doca_eth_txq_task_send* task_send,
                                            doca_buf** pkt) {
  if (any_null(task_send, pkt)) return DOCA_ERROR_INVALID_VALUE;
  *pkt = task_send->packet;
  return DOCA_SUCCESS;
}
