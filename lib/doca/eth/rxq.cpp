#include <array>
#include <bit>
#include <memory>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "doca/buf.hpp"
#include "doca/eth/contexts.hpp"
#include "doca/eth/eth.hpp"
#include "doca/eth/gpu_queues.hpp"
#include "doca/guard.hpp"
#include "doca/include/doca_eth_rxq_cpu_data_path.h"
#include "doca/include/doca_eth_rxq_gpu_data_path.h"
#include "doca/task_set.hpp"

using namespace offload::doca;  // NOLINT(google-build-using-namespace): the calls have no namespace
using offload::core::Error;
using offload::core::ErrorCode;
using offload::core::Status;
using offload::memory::BufferRef;
using offload::progress::Task;

namespace {

/// Nothing sets the metadata of a frame.
constexpr std::array<std::uint32_t, 8> kMetadata{};

/// The bytes of a place of a kernel's buffer.
std::uint32_t place_of(std::uint32_t max_packet_size) noexcept {
  constexpr std::uint32_t kLine = 64;
  return (max_packet_size + kLine - 1) / kLine * kLine;
}

}  // namespace

struct doca_eth_rxq_task_recv final : doca_task {
  Status prepare() noexcept override;
  void let_go() noexcept override;
  void call_back() noexcept override;
  void release() noexcept override;

  [[nodiscard]] EthReceiveTask& receive() const noexcept {
    return static_cast<EthReceiveTask&>(*task);
  }
  [[nodiscard]] doca_eth_rxq& rxq() const noexcept;

  doca_buf* packet = nullptr;
};

/// An EthReceiveContext with its tasks.
struct doca_eth_rxq final : doca_ctx {
  doca_eth_rxq(doca_dev& dev, std::uint32_t max_packet_size)
      : device(dev), receiver(dev.info.interface), place_bytes(place_of(max_packet_size)) {}
  ~doca_eth_rxq() override { tasks.clear(); }

  offload::progress::Context& context() noexcept override { return receiver; }
  [[nodiscard]] bool is_configured() const noexcept override {
    const bool is_of_tasks = type == DOCA_ETH_RXQ_TYPE_REGULAR;
    return is_of_tasks ? !gpu && tasks.is_configured() : gpu && buffer_size != 0;
  }
  [[nodiscard]] bool runs_alone() const noexcept override { return gpu.has_value(); }
  bool set_gpu(doca_gpu& to) override {
    gpu.emplace(to);
    return true;
  }
  [[nodiscard]] bool has_all_tasks() const noexcept override { return tasks.has_all(); }
  void configure() override;

  static void ended(Task& task, void* rxq) noexcept;

  DeviceUse device;
  TaskSet<doca_eth_rxq_task_recv, EthReceiveTask> tasks;
  std::optional<GpuUse> gpu;                  ///< of the data path; none: tasks
  std::unique_ptr<GpuEthReceiver> of_kernel;  ///< of the last start; it outlives the stop
  EthReceiveContext receiver;
  std::optional<MmapUse> buffer;  ///< for kernels
  std::uint64_t buffer_offset = 0;
  std::uint32_t buffer_size = 0;
  std::uint32_t place_bytes = 0;
  doca_eth_rxq_type type = DOCA_ETH_RXQ_TYPE_REGULAR;
  std::uint8_t metadata = 0;
  bool wants_hash = false;
  bool wants_time = false;
  doca_eth_rxq_task_recv_completion_cb_t completed = nullptr;
  doca_eth_rxq_task_recv_completion_cb_t failed = nullptr;
};

namespace {

bool is_allowed(std::uint32_t burst, std::uint32_t packet) noexcept {
  return burst != 0 && burst <= kMostBurst && packet != 0 && packet <= EthPort::kMostFrame;
}

/// Sets a member of an idle queue.
template <class Member, class Value>
doca_error_t set(doca_eth_rxq* rxq, Member doca_eth_rxq::*member, Value value) noexcept {
  if (rxq == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (rxq->state != DOCA_CTX_STATE_IDLE) return DOCA_ERROR_BAD_STATE;
  rxq->*member = value;
  return DOCA_SUCCESS;
}

doca_error_t get_eth_capability(const doca_devinfo* devinfo, std::uint32_t value,
                                std::uint32_t* to) noexcept {
  if (any_null(devinfo, to)) return DOCA_ERROR_INVALID_VALUE;
  if (!has_eth(*devinfo)) return DOCA_ERROR_NOT_SUPPORTED;
  *to = value;
  return DOCA_SUCCESS;
}

/// Returns whether a task's frame has arrived, and its queue asks for `wanted`.
template <class Value>
doca_error_t check_result(const doca_eth_rxq_task_recv* task, const Value* value,
                          bool (*wanted)(const doca_eth_rxq&)) noexcept {
  if (any_null(task, value)) return DOCA_ERROR_INVALID_VALUE;
  if (task->task == nullptr || task->in_flight() || !wanted(task->rxq())) {
    return DOCA_ERROR_BAD_STATE;
  }
  return DOCA_SUCCESS;
}

}  // namespace

doca_eth_rxq& doca_eth_rxq_task_recv::rxq() const noexcept {
  return static_cast<doca_eth_rxq&>(*ctx);
}

Status doca_eth_rxq_task_recv::prepare() noexcept {
  auto* const buffer = buffer_of(packet);
  if (buffer == nullptr) return ErrorCode::invalid_value;
  let_go();
  receive().buffer = BufferRef::share(*buffer);
  buffer->hold();
  return {};
}

void doca_eth_rxq_task_recv::let_go() noexcept {
  if (receive().buffer) receive().buffer->unhold();
  receive().let_go();
}

void doca_eth_rxq_task_recv::call_back() noexcept {
  const auto call = status == DOCA_SUCCESS ? rxq().completed : rxq().failed;
  call(this, user_data, ctx->user_data);
}

void doca_eth_rxq_task_recv::release() noexcept {
  rxq().tasks.release(*this);
}

void doca_eth_rxq::configure() {
  receiver.set_wanted(wants_hash, wants_time);
  if (!gpu) return;
  const doca_mmap& mmap = *buffer->get();
  const std::uint32_t places = std::bit_floor(buffer_size / place_bytes);
  auto memory = MemoryUse::find(
      mmap.key, reinterpret_cast<std::uintptr_t>(mmap.memory.data()) + buffer_offset,
      std::uint64_t{places} * place_bytes);
  if (!memory) throw Error(ErrorCode::bad_state, "the mmap of a kernel's buffer is stopped");
  of_kernel =
      std::make_unique<GpuEthReceiver>(*gpu->get(), std::move(*memory), place_bytes, mmap.key);
  receiver.set_receiver(of_kernel.get());
}

void doca_eth_rxq::ended(Task& task, void* rxq) noexcept {
  auto& own = *static_cast<doca_eth_rxq_task_recv*>(task.user_data);
  own.let_go();  // first, as the callback may return the buffer
  static_cast<doca_eth_rxq*>(rxq)->task_ended(own, to_doca(task.status()));
}

doca_error_t doca_eth_rxq_cap_get_max_burst_size(const doca_devinfo* devinfo,
                                                 uint32_t* max_burst_size) {
  return get_eth_capability(devinfo, kMostBurst, max_burst_size);
}

doca_error_t doca_eth_rxq_cap_get_max_packet_size(const doca_devinfo* devinfo,
                                                  uint32_t* max_packet_size) {
  return get_eth_capability(devinfo, EthPort::kMostFrame, max_packet_size);
}

doca_error_t doca_eth_rxq_cap_is_type_supported(const doca_devinfo* devinfo, doca_eth_rxq_type type,
                                                doca_eth_rxq_data_path_type data_path_type) {
  if (devinfo == nullptr) return DOCA_ERROR_INVALID_VALUE;
  const bool is_supported =
      (type == DOCA_ETH_RXQ_TYPE_REGULAR && data_path_type == DOCA_ETH_RXQ_DATA_PATH_TYPE_CPU) ||
      (type == DOCA_ETH_RXQ_TYPE_CYCLIC && data_path_type == DOCA_ETH_RXQ_DATA_PATH_TYPE_GPU);
  return has_eth(*devinfo) && is_supported ? DOCA_SUCCESS : DOCA_ERROR_NOT_SUPPORTED;
}

doca_error_t doca_eth_rxq_create(doca_dev* dev, uint32_t max_burst_size, uint32_t max_packet_size,
                                 doca_eth_rxq** eth_rxq) {
  if (any_null(dev, eth_rxq)) return DOCA_ERROR_INVALID_VALUE;
  if (!has_eth(dev->info)) return DOCA_ERROR_NOT_SUPPORTED;
  if (!is_allowed(max_burst_size, max_packet_size)) return DOCA_ERROR_INVALID_VALUE;
  return guarded(__func__, [&] { *eth_rxq = new doca_eth_rxq(*dev, max_packet_size); });
}

doca_error_t doca_eth_rxq_destroy(doca_eth_rxq* eth_rxq) {
  if (eth_rxq == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (const doca_error_t result = check_unused(*eth_rxq); result != DOCA_SUCCESS) return result;
  delete eth_rxq;
  return DOCA_SUCCESS;
}

doca_ctx* doca_eth_rxq_as_doca_ctx(doca_eth_rxq* eth_rxq) {
  return eth_rxq;
}

doca_error_t doca_eth_rxq_set_type(doca_eth_rxq* eth_rxq, doca_eth_rxq_type type) {
  if (eth_rxq == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (type != DOCA_ETH_RXQ_TYPE_REGULAR && type != DOCA_ETH_RXQ_TYPE_CYCLIC) {
    return DOCA_ERROR_NOT_SUPPORTED;
  }
  return set(eth_rxq, &doca_eth_rxq::type, type);
}

doca_error_t doca_eth_rxq_set_metadata_num(doca_eth_rxq* eth_rxq, uint8_t metadata_num) {
  if (metadata_num > kMetadata.size()) return DOCA_ERROR_INVALID_VALUE;
  return set(eth_rxq, &doca_eth_rxq::metadata, metadata_num);
}

doca_error_t doca_eth_rxq_set_rx_hash(doca_eth_rxq* eth_rxq, uint8_t enable_rx_hash) {
  return set(eth_rxq, &doca_eth_rxq::wants_hash, enable_rx_hash != 0);
}

doca_error_t doca_eth_rxq_set_timestamp(doca_eth_rxq* eth_rxq, uint8_t enable_timestamp) {
  return set(eth_rxq, &doca_eth_rxq::wants_time, enable_timestamp != 0);
}

doca_error_t doca_eth_rxq_set_pkt_buf(doca_eth_rxq* eth_rxq, doca_mmap* mmap, uint64_t offset,
                                      uint32_t length) {
  if (any_null(eth_rxq, mmap) || length < eth_rxq->place_bytes || offset > mmap->memory.size() ||
      length > mmap->memory.size() - offset) {
    return DOCA_ERROR_INVALID_VALUE;
  }
  if (eth_rxq->state != DOCA_CTX_STATE_IDLE) return DOCA_ERROR_BAD_STATE;
  eth_rxq->buffer.emplace(*mmap);
  eth_rxq->buffer_offset = offset;
  eth_rxq->buffer_size = length;
  return DOCA_SUCCESS;
}

doca_error_t doca_eth_rxq_estimate_packet_buf_size(doca_eth_rxq_type type, uint32_t rate,
                                                   uint32_t pkt_max_process_time,
                                                   uint32_t max_packet_size,
                                                   uint32_t max_burst_size,
                                                   uint8_t log_max_lro_pkt_sz, uint16_t head_size,
                                                   uint16_t tail_size, uint32_t* buf_size) {
  static_cast<void>(rate);
  static_cast<void>(pkt_max_process_time);
  static_cast<void>(log_max_lro_pkt_sz);
  static_cast<void>(head_size);
  static_cast<void>(tail_size);
  if (buf_size == nullptr || !is_allowed(max_burst_size, max_packet_size)) {
    return DOCA_ERROR_INVALID_VALUE;
  }
  if (type != DOCA_ETH_RXQ_TYPE_CYCLIC) return DOCA_ERROR_NOT_SUPPORTED;
  *buf_size = std::bit_ceil(max_burst_size) * place_of(max_packet_size);
  return DOCA_SUCCESS;
}

doca_error_t doca_eth_rxq_get_gpu_handle(const doca_eth_rxq* eth_rxq,
                                         doca_gpu_eth_rxq** eth_rxq_gpu) {
  if (any_null(eth_rxq, eth_rxq_gpu)) return DOCA_ERROR_INVALID_VALUE;
  if (!eth_rxq->of_kernel) return DOCA_ERROR_BAD_STATE;
  *eth_rxq_gpu = static_cast<doca_gpu_eth_rxq*>(eth_rxq->of_kernel->handle());
  return DOCA_SUCCESS;
}

doca_error_t doca_eth_rxq_gpu_enable_mcst_qp(doca_eth_rxq* eth_rxq) {
  if (eth_rxq == nullptr) return DOCA_ERROR_INVALID_VALUE;
  return eth_rxq->state == DOCA_CTX_STATE_IDLE ? DOCA_SUCCESS : DOCA_ERROR_BAD_STATE;
}

doca_error_t doca_eth_rxq_apply_queue_id(doca_eth_rxq* eth_rxq, uint16_t queue_id) {
  if (eth_rxq == nullptr) return DOCA_ERROR_INVALID_VALUE;
  return guarded(__func__, [&] { eth_rxq->receiver.set_queue(queue_id); });
}

doca_error_t doca_eth_rxq_task_recv_set_conf(
    doca_eth_rxq* eth_rxq, doca_eth_rxq_task_recv_completion_cb_t task_completion_cb,
    doca_eth_rxq_task_recv_completion_cb_t task_error_cb, uint32_t task_recv_num) {
  if (eth_rxq == nullptr || task_completion_cb == nullptr || task_error_cb == nullptr ||
      task_recv_num == 0 || task_recv_num > kMostTasksOfContext) {
    return DOCA_ERROR_INVALID_VALUE;
  }
  if (const doca_error_t result = check_unused(*eth_rxq); result != DOCA_SUCCESS) return result;
  return guarded(__func__, [&] {
    eth_rxq->tasks.configure(eth_rxq->receiver, task_recv_num, {&doca_eth_rxq::ended, eth_rxq});
    eth_rxq->completed = task_completion_cb;
    eth_rxq->failed = task_error_cb;
  });
}

doca_error_t doca_eth_rxq_task_recv_allocate_init(doca_eth_rxq* eth_rxq, doca_buf* pkt,
                                                  doca_data user_data,
                                                  doca_eth_rxq_task_recv** task_recv) {
  if (any_null(eth_rxq, pkt, task_recv)) return DOCA_ERROR_INVALID_VALUE;
  if (eth_rxq->state != DOCA_CTX_STATE_RUNNING) return DOCA_ERROR_BAD_STATE;
  doca_eth_rxq_task_recv* const allocated = eth_rxq->tasks.allocate(*eth_rxq, user_data);
  if (allocated == nullptr) return DOCA_ERROR_NO_MEMORY;
  allocated->packet = pkt;
  *task_recv = allocated;
  return DOCA_SUCCESS;
}

doca_task* doca_eth_rxq_task_recv_as_doca_task(doca_eth_rxq_task_recv* task_recv) {
  return task_recv;
}

void doca_eth_rxq_task_recv_set_pkt(doca_eth_rxq_task_recv* task_recv, doca_buf* pkt) {
  if (may_be_set(task_recv, __func__)) task_recv->packet = pkt;
}

doca_error_t doca_eth_rxq_task_recv_get_pkt(const doca_eth_rxq_task_recv* task_recv,
                                            doca_buf** pkt) {
  if (any_null(task_recv, pkt)) return DOCA_ERROR_INVALID_VALUE;
  *pkt = task_recv->packet;
  return DOCA_SUCCESS;
}

doca_error_t doca_eth_rxq_task_recv_get_metadata_array(const doca_eth_rxq_task_recv* task_recv,
                                                       const uint32_t** metadata_array) {
  const doca_error_t result = check_result(
      task_recv, metadata_array, [](const doca_eth_rxq& rxq) { return rxq.metadata != 0; });
  if (result == DOCA_SUCCESS) *metadata_array = kMetadata.data();
  return result;
}

doca_error_t doca_eth_rxq_task_recv_get_rx_hash(const doca_eth_rxq_task_recv* task_recv,
                                                uint32_t* rx_hash) {
  const doca_error_t result =
      check_result(task_recv, rx_hash, [](const doca_eth_rxq& rxq) { return rxq.wants_hash; });
  if (result == DOCA_SUCCESS) *rx_hash = task_recv->receive().hash;
  return result;
}

doca_error_t doca_eth_rxq_task_recv_get_timestamp(const doca_eth_rxq_task_recv* task_recv,
                                                  uint64_t* timestamp) {
  const doca_error_t result =
      check_result(task_recv, timestamp, [](const doca_eth_rxq& rxq) { return rxq.wants_time; });
  if (result == DOCA_SUCCESS) *timestamp = task_recv->receive().time;
  return result;
}
