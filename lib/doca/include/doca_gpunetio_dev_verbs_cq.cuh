/// Completions of verbs in kernels: see doca_gpunetio_dev_verbs_qp.cuh.
#ifndef DOCA_GPUNETIO_DEV_VERBS_CQ_CUH_
#define DOCA_GPUNETIO_DEV_VERBS_CQ_CUH_

#include <stdint.h>

#include "doca_gpunetio_dev_verbs_qp.cuh"
#include "kernels/rdma/cqe.hpp"

/// A completion as the card writes it (infiniband/mlx5dv.h).
struct mlx5_cqe64;

/// Waits until the entry, or the receive, at a position and all earlier ones are completed.
template <enum doca_gpu_dev_verbs_resource_sharing_mode mode =
              DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU>
DOCA_GPU_DEVICE int doca_gpu_dev_verbs_poll_cq_at(struct doca_gpu_dev_verbs_cq* cq,
                                                  uint64_t cons_index) {
  return cq->of_receives != 0 ? offload_gpu_verbs::wait_for_receive(cq->qp, cons_index)
                              : offload_gpu_verbs::wait_for_send(cq->qp, cons_index);
}

/// Returns the bytes that were received.
DOCA_GPU_DEVICE uint32_t doca_gpu_dev_verbs_cqe_get_bytes(const struct mlx5_cqe64* cqe) {
  using namespace offload_gpu_verbs;
  return rdma::big_endian(reinterpret_cast<const rdma::Cqe*>(cqe)->words[rdma::kCqeByteCount]);
}

/// Returns 1 if the completion has the received bytes.
DOCA_GPU_DEVICE uint8_t doca_gpu_dev_verbs_cqe_is_inline(const struct mlx5_cqe64* cqe) {
  using namespace offload_gpu_verbs;
  constexpr uint32_t kInline = 0xc;  // 32 or 64 bytes
  const auto& words = reinterpret_cast<const rdma::Cqe*>(cqe)->words;
  return (rdma::big_endian(words[rdma::kCqeOwner]) & kInline) != 0 ? 1 : 0;
}

/// Returns where the completion has the received bytes, at most 32.
DOCA_GPU_DEVICE uint8_t* doca_gpu_dev_verbs_cqe_get_inl_data(struct mlx5_cqe64* cqe) {
  return reinterpret_cast<uint8_t*>(cqe);
}

#endif
