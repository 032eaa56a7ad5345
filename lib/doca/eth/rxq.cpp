#include <array>

#include "core/error.hpp"
#include "doca/buf.hpp"
#include "doca/eth/contexts.hpp"
#include "doca/eth/eth.hpp"
#include "doca/guard.hpp"
#include "doca/include/doca_eth_rxq_cpu_data_path.h"
#include "doca/task_set.hpp"

using namespace offload::doca;  // NOLINT(google-build-using-namespace): the calls have no namespace
using offload::core::ErrorCode;
using offload::core::Status;
using offload::memory::BufferRef;
using offload::progress::Task;

namespace {

/// Nothing sets the metadata of a frame.
constexpr std::array<std::uint32_t, 8> kMetadata{};

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
  explicit doca_eth_rxq(doca_dev& dev) : device(dev), receiver(dev.info.interface) {}
  ~doca_eth_rxq() override { tasks.clear(); }

  offload::progress::Context& context() noexcept override { return receiver; }
  [[nodiscard]] bool is_configured() const noexcept override {
    return type == DOCA_ETH_RXQ_TYPE_REGULAR && tasks.is_configured();
  }
  [[nodiscard]] bool has_all_tasks() const noexcept override { return tasks.has_all(); }
  void configure() override { receiver.set_wanted(wants_hash, wants_time); }

  static void ended(Task& task, void* rxq) noexcept;

  DeviceUse device;
  TaskSet<doca_eth_rxq_task_recv, EthReceiveTask> tasks;
  EthReceiveContext receiver;
  doca_eth_rxq_type type = DOCA_ETH_RXQ_TYPE_REGULAR;
  std::uint8_t metadata = 0;
  bool wants_hash = false;
  bool wants_time = false;
  doca_eth_rxq_task_recv_completion_cb_t completed = nullptr;
  doca_eth_rxq_task_recv_completion_cb_t failed = nullptr;
};

namespace {

/// Sets a member of an idle queue.
template <class Member, class Value>
doca_error_t set(doca_eth_rxq* rxq, Member doca_eth_rxq::*member, Value value) noexcept {
  if (rxq == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (rxq->state != DOCA_CTX_STATE_IDLE) return DOCA_ERROR_BAD_STATE;
  rxq->*member = value;
  return DOCA_SUCCESS;
}

doca_error_t get_capability(const doca_devinfo* devinfo, std::uint32_t value,
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

void doca_eth_rxq::ended(Task& task, void* rxq) noexcept {
  auto& own = *static_cast<doca_eth_rxq_task_recv*>(task.user_data);
  own.let_go();  // first, as the callback may return the buffer
  static_cast<doca_eth_rxq*>(rxq)->task_ended(own, to_doca(task.status()));
}

doca_error_t doca_eth_rxq_cap_get_max_burst_size(const doca_devinfo* devinfo,
                                                 uint32_t* max_burst_size) {
  return get_capability(devinfo, kMostBurst, max_burst_size);
}

doca_error_t doca_eth_rxq_cap_get_max_packet_size(const doca_devinfo* devinfo,
                                                  uint32_t* max_packet_size) {
  return get_capability(devinfo, EthPort::kMostFrame, max_packet_size);
}

doca_error_t doca_eth_rxq_cap_is_type_supported(const doca_devinfo* devinfo, doca_eth_rxq_type type,
                                                doca_eth_rxq_data_path_type data_path_type) {
  if (devinfo == nullptr) return DOCA_ERROR_INVALID_VALUE;
  const bool is_supported =
      type == DOCA_ETH_RXQ_TYPE_REGULAR && data_path_type == DOCA_ETH_RXQ_DATA_PATH_TYPE_CPU;
  return has_eth(*devinfo) && is_supported ? DOCA_SUCCESS : DOCA_ERROR_NOT_SUPPORTED;
}

doca_error_t doca_eth_rxq_create(doca_dev* dev, uint32_t max_burst_size, uint32_t max_packet_size,
                                 doca_eth_rxq** eth_rxq) {
  if (any_null(dev, eth_rxq)) return DOCA_ERROR_INVALID_VALUE;
  if (!has_eth(dev->info)) return DOCA_ERROR_NOT_SUPPORTED;
  if (max_burst_size == 0 || max_burst_size > kMostBurst || max_packet_size == 0 ||
      max_packet_size > EthPort::kMostFrame) {
    return DOCA_ERROR_INVALID_VALUE;
  }
  return guarded(__func__, [&] { *eth_rxq = new doca_eth_rxq(*dev); });
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
