/// Sends and receives of verbs in kernels: see doca_gpunetio_dev_verbs_onesided.cuh.
#ifndef DOCA_GPUNETIO_DEV_VERBS_TWOSIDED_CUH_
#define DOCA_GPUNETIO_DEV_VERBS_TWOSIDED_CUH_

#include <stddef.h>
#include <stdint.h>

#include "doca_gpunetio_dev_verbs_onesided.cuh"

/// Sends `size` bytes to the peer's oldest receive.
template <enum doca_gpu_dev_verbs_resource_sharing_mode mode =
              DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU,
          enum doca_gpu_dev_verbs_nic_handler handler = DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO,
          enum doca_gpu_dev_verbs_exec_scope scope = DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD>
DOCA_GPU_DEVICE int doca_gpu_dev_verbs_send(struct doca_gpu_dev_verbs_qp* qp,
                                            struct doca_gpu_dev_verbs_addr laddr, size_t size,
                                            doca_gpu_dev_verbs_ticket_t* ticket) {
  using namespace offload_gpu_verbs;
  const rdma::LocalBuffer from = local(laddr, size);
  return post<scope>(
      qp, 1, [&](uint32_t) { return rdma::signaled(rdma::Opcode::send, from); }, ticket);
}

/// Posts a receive. It waits until there is room, which completions of earlier ones make.
template <enum doca_gpu_dev_verbs_resource_sharing_mode mode =
              DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU,
          enum doca_gpu_dev_verbs_nic_handler handler = DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO,
          enum doca_gpu_dev_verbs_exec_scope scope = DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD>
DOCA_GPU_DEVICE int doca_gpu_dev_verbs_recv(struct doca_gpu_dev_verbs_qp* qp,
                                            struct doca_gpu_dev_verbs_addr laddr, size_t size,
                                            doca_gpu_dev_verbs_ticket_t* ticket) {
  using namespace offload_gpu_verbs;
  rdma::Wait wait(no_limit());
  for (;;) {
    uint64_t position = 0;
    const rdma::WorkResult result = rdma::post_receive(qp->receives, local(laddr, size), position);
    if (result == rdma::WorkResult::done) {
      *ticket = position;
      return 0;
    }
    if (result != rdma::WorkResult::pending) return -EIO;
    if (rdma::take_completions(qp->receives) == 0) wait.is_over();
  }
}

/// Waits for a receive and all earlier ones, then has the card read 8 bytes at `mcst_laddr` with
/// DOCA_GPUNETIO_VERBS_MCST_ENABLED. `cqe`: set to the completion of the receive, which is valid
/// until as many receives as the queue has are posted behind it.
template <enum doca_gpu_dev_verbs_resource_sharing_mode mode =
              DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU,
          enum doca_gpu_dev_verbs_nic_handler handler = DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO,
          enum doca_gpu_dev_verbs_mcst mcst = DOCA_GPUNETIO_VERBS_MCST_DISABLED>
DOCA_GPU_DEVICE int doca_gpu_dev_verbs_recv_wait(struct doca_gpu_dev_verbs_qp* qp,
                                                 struct doca_gpu_dev_verbs_addr mcst_laddr,
                                                 const doca_gpu_dev_verbs_ticket_t* ticket,
                                                 struct mlx5_cqe64** cqe) {
  using namespace offload_gpu_verbs;
  const int result = wait_for_receive(qp, *ticket);
  if (result != 0) return result;
  *cqe = reinterpret_cast<struct mlx5_cqe64*>(
      &qp->receives.queue.completions.entries[*ticket & qp->cq_rq.cqe_mask]);
  return mcst == DOCA_GPUNETIO_VERBS_MCST_ENABLED ? read_back(qp, mcst_laddr) : 0;
}

/// Does the same for all receives that were posted; at least one was.
template <enum doca_gpu_dev_verbs_resource_sharing_mode mode =
              DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU,
          enum doca_gpu_dev_verbs_nic_handler handler = DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO,
          enum doca_gpu_dev_verbs_mcst mcst = DOCA_GPUNETIO_VERBS_MCST_DISABLED>
DOCA_GPU_DEVICE int doca_gpu_dev_verbs_recv_wait(struct doca_gpu_dev_verbs_qp* qp,
                                                 struct doca_gpu_dev_verbs_addr mcst_laddr,
                                                 struct mlx5_cqe64** cqe) {
  using namespace offload_gpu_verbs;
  const doca_gpu_dev_verbs_ticket_t last = rdma::load_acquire(&qp->receives.state->reserved) - 1;
  return doca_gpu_dev_verbs_recv_wait<mode, handler, mcst>(qp, mcst_laddr, &last, cqe);
}

#endif
