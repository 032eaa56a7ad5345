#include "doca/gpu/exported_queue_pair.hpp"

#include <cstddef>
#include <cstring>
#include <string>
#include <type_traits>

#include "core/error.hpp"
#include "doca/guard.hpp"
#include "doca/include/doca_gpunetio_dev_verbs_qp.cuh"

namespace offload::doca {
namespace {

namespace wire = kernels::rdma;
using core::Error;
using core::ErrorCode;

/// The places of a handle's parts in one piece of the GPU's memory.
struct HandleLayout {
  explicit HandleLayout(const rdma::QueuePairMemory& queues)
      : sends(rounded(sizeof(doca_gpu_dev_verbs_qp))),
        receives(sends + rounded(sizeof(wire::SharedSendState))),
        send_marks(receives + rounded(sizeof(wire::CommonReceiveState))),
        receive_marks(send_marks + rounded(queues.send.ring.blocks * sizeof(std::uint64_t))),
        bytes(receive_marks + rounded(queues.receive.entries * sizeof(std::uint64_t))) {}

  static constexpr std::size_t kAlignment = 128;
  static constexpr std::size_t rounded(std::size_t size) {
    return (size + kAlignment - 1) / kAlignment * kAlignment;
  }

  std::size_t sends;
  std::size_t receives;
  std::size_t send_marks;
  std::size_t receive_marks;
  std::size_t bytes;
};

template <class T>
T* at(void* base, std::size_t offset) noexcept {
  return reinterpret_cast<T*>(static_cast<std::byte*>(base) + offset);
}

/// Makes the handle of a queue pair whose queues kernels see like that. Throws Error.
doca_gpu::Piece make_handle(doca_gpu& gpu, const rdma::QueuePairMemory& queues) {
  const HandleLayout layout(queues);
  const doca_gpu::Piece staging =
      gpu.allocate(sizeof(doca_gpu_dev_verbs_qp), HandleLayout::kAlignment, true);
  doca_gpu::Piece handle = gpu.allocate(layout.bytes, HandleLayout::kAlignment, false);
  auto* const seen = static_cast<doca_gpu_dev_verbs_qp*>(handle.gpu);
  doca_gpu_dev_verbs_qp made{};
  made.sq_wqe_mask = queues.send.ring.blocks - 1;
  made.cq_sq = {.cqe_ci = 0,
                .cqe_mask = (std::uint64_t{1} << queues.send.completions.log2) - 1,
                .qp = seen,
                .of_receives = 0,
                .reserved = 0};
  made.cq_rq = {.cqe_ci = 0,
                .cqe_mask = (std::uint64_t{1} << queues.receive.completions.log2) - 1,
                .qp = seen,
                .of_receives = 1,
                .reserved = 0};
  made.sends = {queues.send, at<wire::SharedSendState>(handle.gpu, layout.sends),
                at<std::uint64_t>(handle.gpu, layout.send_marks)};
  made.receives = {queues.receive, at<wire::CommonReceiveState>(handle.gpu, layout.receives),
                   at<std::uint64_t>(handle.gpu, layout.receive_marks)};
  static_assert(std::is_trivially_copyable_v<doca_gpu_dev_verbs_qp>);
  std::memcpy(staging.cpu, &made, sizeof made);
  gpu.copy_in(handle.gpu, staging.cpu, sizeof made);
  gpu.sync();
  return handle;
}

}  // namespace

bool QueueRelay::relay() noexcept {
  if (records_ != nullptr) {
    // With acquire: the entries are written. Pairs with kernels::rdma::store_record(). The card
    // reads the record of receives when a message comes.
    const std::uint32_t received = __atomic_load_n(&words_->receive_record, __ATOMIC_ACQUIRE);
    if (received != receive_record_) {
      receive_record_ = received;
      __atomic_store_n(records_ + MLX5_RCV_DBR, received, __ATOMIC_RELEASE);
    }
    // Before the doorbell, so that what it tells the card is in the record.
    const std::uint64_t doorbell = __atomic_load_n(&words_->doorbell, __ATOMIC_ACQUIRE);
    const std::uint32_t sent = __atomic_load_n(&words_->send_record, __ATOMIC_ACQUIRE);
    static_cast<void>(doorbell);
    if (sent != send_record_) {
      send_record_ = sent;
      __atomic_store_n(records_ + MLX5_SND_DBR, sent, __ATOMIC_RELEASE);
    }
  }
  return doorbell_.relay();
}

}  // namespace offload::doca

using namespace offload::doca;  // NOLINT(google-build-using-namespace): the calls have no namespace
using offload::core::Error;
using offload::core::ErrorCode;

doca_gpu_verbs_qp::doca_gpu_verbs_qp(doca_gpu& owner, ExternalQp& of,
                                     doca_gpu_dev_verbs_nic_handler ringer, void* rings)
    : gpu(owner), pair(of), is_proxy(ringer == DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY) {
  const bool must_ring = ringer == DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_DB ||
                         ringer == DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF;
  offload::rdma::QueuePairMemory queues = of.queues(rings);
  std::uint64_t* const card = queues.send.doorbell;
  const bool relays_records = of.has_host_records();
  std::uint64_t* const seen =
      is_proxy || relays_records ? nullptr : static_cast<std::uint64_t*>(owner.map_register(card));
  if (seen != nullptr) {
    queues.send.doorbell = seen;
  } else if (must_ring) {
    throw Error(ErrorCode::not_supported, relays_records
                                              ? "a GPU cannot write records in memory of the host"
                                              : "the GPU does not reach the card's registers");
  } else {
    words = owner.allocate(sizeof(RelayedWords), alignof(RelayedWords), true);
    auto* const of_kernels = static_cast<RelayedWords*>(words.gpu);
    std::uint32_t* const records = relays_records ? queues.receive.record - MLX5_RCV_DBR : nullptr;
    queues.send.doorbell = &of_kernels->doorbell;
    if (relays_records) {
      queues.send.record = &of_kernels->send_record;
      queues.receive.record = &of_kernels->receive_record;
    }
    relay.emplace(static_cast<const RelayedWords*>(words.cpu), records, card);
  }
  handle = make_handle(owner, queues);
  if (relay && !is_proxy) {
    mover = &owner.mover();
    mover->add(*this);
  }
}

doca_gpu_verbs_qp::~doca_gpu_verbs_qp() {
  if (mover != nullptr) mover->remove(*this);
}

doca_error_t doca_gpu_verbs_export_qp(doca_gpu* gpu_dev, doca_dev* dev, doca_verbs_qp* qp,
                                      doca_gpu_dev_verbs_nic_handler nic_handler,
                                      void* gpu_qp_umem_dev_ptr, doca_verbs_cq* cq_sq,
                                      doca_verbs_cq* cq_rq, doca_gpu_verbs_qp** qp_out) {
  if (any_null(gpu_dev, dev, qp, gpu_qp_umem_dev_ptr, qp_out) ||
      nic_handler > DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF) {
    return DOCA_ERROR_INVALID_VALUE;
  }
  auto* const external = dynamic_cast<ExternalQp*>(qp);
  if (external == nullptr || cq_sq != &external->sends_queue() ||
      cq_rq != &external->receives_queue()) {
    return DOCA_ERROR_INVALID_VALUE;
  }
  return guarded(__func__, [&] {
    *qp_out = new doca_gpu_verbs_qp(*gpu_dev, *external, nic_handler, gpu_qp_umem_dev_ptr);
  });
}

doca_error_t doca_gpu_verbs_unexport_qp(doca_gpu* gpu_dev, doca_gpu_verbs_qp* qp) {
  if (any_null(gpu_dev, qp) || qp->gpu.get() != gpu_dev) return DOCA_ERROR_INVALID_VALUE;
  delete qp;
  return DOCA_SUCCESS;
}

doca_error_t doca_gpu_verbs_get_qp_dev(doca_gpu_verbs_qp* qp, doca_gpu_dev_verbs_qp** qp_gpu) {
  if (any_null(qp, qp_gpu)) return DOCA_ERROR_INVALID_VALUE;
  *qp_gpu = static_cast<doca_gpu_dev_verbs_qp*>(qp->handle.gpu);
  return DOCA_SUCCESS;
}

doca_error_t doca_gpu_verbs_cpu_proxy_progress(doca_gpu_verbs_qp* qp) {
  if (qp == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (!qp->is_proxy) return DOCA_ERROR_BAD_STATE;
  qp->relay->relay();
  return DOCA_SUCCESS;
}
