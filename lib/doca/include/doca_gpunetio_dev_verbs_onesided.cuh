/// One-sided operations of verbs in kernels: see doca_gpunetio_dev_verbs_qp.cuh. With
/// DOCA_GPUNETIO_VERBS_EXEC_SCOPE_WARP all lanes of a warp call a function together, each with its
/// own arguments, and all operations are posted with one doorbell.
#ifndef DOCA_GPUNETIO_DEV_VERBS_ONESIDED_CUH_
#define DOCA_GPUNETIO_DEV_VERBS_ONESIDED_CUH_

#include <stddef.h>
#include <stdint.h>

#include "doca_gpunetio_dev_verbs_cq.cuh"
#include "doca_gpunetio_dev_verbs_qp.cuh"
#include "kernels/rdma_tasks/put.hpp"

namespace offload_gpu_verbs {

/// Returns the work that lets the card read 8 bytes of the GPU's memory, behind all before it.
DOCA_GPU_DEVICE rdma::SendWork dump(const rdma::LocalBuffer& buffer) {
  rdma::SendWork work = rdma::signaled(rdma::Opcode::dump, buffer);
  work.flags |= rdma::kFence;
  return work;
}

/// Has the card read 8 bytes of the GPU's memory, and waits for it.
DOCA_GPU_DEVICE int read_back(doca_gpu_dev_verbs_qp* qp, const doca_gpu_dev_verbs_addr& at) {
  const rdma::LocalBuffer buffer = local(at, sizeof(uint64_t));
  doca_gpu_dev_verbs_ticket_t ticket = 0;
  const int result = post<DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD>(
      qp, 1, [&](uint32_t) { return dump(buffer); }, &ticket);
  return result != 0 ? result : wait_for_send(qp, ticket);
}

}  // namespace offload_gpu_verbs

/// Writes `size` bytes of local memory to remote memory. `ticket`: set to that of the operation.
template <enum doca_gpu_dev_verbs_resource_sharing_mode mode =
              DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU,
          enum doca_gpu_dev_verbs_nic_handler handler = DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO,
          enum doca_gpu_dev_verbs_exec_scope scope = DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD>
DOCA_GPU_DEVICE int doca_gpu_dev_verbs_put(struct doca_gpu_dev_verbs_qp* qp,
                                           struct doca_gpu_dev_verbs_addr raddr,
                                           struct doca_gpu_dev_verbs_addr laddr, size_t size,
                                           doca_gpu_dev_verbs_ticket_t* ticket) {
  using namespace offload_gpu_verbs;
  const rdma::LocalBuffer from = local(laddr, size);
  return post<scope>(
      qp, 1,
      [&](uint32_t) { return rdma::signaled(rdma::Opcode::rdma_write, from, remote(raddr)); },
      ticket);
}

/// Writes `size` bytes, then adds to a word of 8 bytes at the peer, which has the data once it sees
/// the sum. `sig_laddr`: 8 bytes, which get the word's old value.
template <enum doca_gpu_dev_verbs_signal_op op = DOCA_GPUNETIO_VERBS_SIGNAL_OP_ADD,
          enum doca_gpu_dev_verbs_resource_sharing_mode mode =
              DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU,
          enum doca_gpu_dev_verbs_nic_handler handler = DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO,
          enum doca_gpu_dev_verbs_exec_scope scope = DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD>
DOCA_GPU_DEVICE int doca_gpu_dev_verbs_put_signal(struct doca_gpu_dev_verbs_qp* qp,
                                                  struct doca_gpu_dev_verbs_addr raddr,
                                                  struct doca_gpu_dev_verbs_addr laddr, size_t size,
                                                  struct doca_gpu_dev_verbs_addr sig_raddr,
                                                  struct doca_gpu_dev_verbs_addr sig_laddr,
                                                  uint64_t sig_val) {
  using namespace offload_gpu_verbs;
  const rdma::LocalBuffer from = local(laddr, size);
  const rdma::LocalBuffer before = local(sig_laddr, sizeof sig_val);
  doca_gpu_dev_verbs_ticket_t ticket = 0;
  return post<scope>(
      qp, 2,
      [&](uint32_t i) {
        if (i == 0) return rdma::signaled(rdma::Opcode::rdma_write, from, remote(raddr));
        rdma::SendWork add = rdma::signaled(rdma::Opcode::fetch_add, before, remote(sig_raddr));
        add.compare_add = sig_val;
        return add;
      },
      &ticket);
}

/// Reads `size` bytes of remote memory. With DOCA_GPUNETIO_VERBS_MCST_ENABLED the card then reads 8
/// bytes at `mcst_laddr`, as the same operation; otherwise that is unused. With
/// DOCA_GPUNETIO_VERBS_BLOCKING_MODE_ENABLED it waits for the end.
template <
    enum doca_gpu_dev_verbs_resource_sharing_mode mode =
        DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU,
    enum doca_gpu_dev_verbs_nic_handler handler = DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO,
    enum doca_gpu_dev_verbs_exec_scope scope = DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD,
    enum doca_gpu_dev_verbs_mcst mcst = DOCA_GPUNETIO_VERBS_MCST_DISABLED,
    enum doca_gpu_dev_verbs_blocking_mode blocking = DOCA_GPUNETIO_VERBS_BLOCKING_MODE_DISABLED>
DOCA_GPU_DEVICE int doca_gpu_dev_verbs_get(struct doca_gpu_dev_verbs_qp* qp,
                                           struct doca_gpu_dev_verbs_addr raddr,
                                           struct doca_gpu_dev_verbs_addr laddr, size_t size,
                                           struct doca_gpu_dev_verbs_addr mcst_laddr,
                                           doca_gpu_dev_verbs_ticket_t* ticket) {
  using namespace offload_gpu_verbs;
  const rdma::LocalBuffer to = local(laddr, size);
  const rdma::LocalBuffer word = local(mcst_laddr, sizeof(uint64_t));
  const int result = post<scope>(
      qp, mcst == DOCA_GPUNETIO_VERBS_MCST_ENABLED ? 2 : 1,
      [&](uint32_t i) {
        return i == 0 ? rdma::signaled(rdma::Opcode::rdma_read, to, remote(raddr)) : dump(word);
      },
      ticket);
  const bool waits = blocking == DOCA_GPUNETIO_VERBS_BLOCKING_MODE_ENABLED;
  return result == 0 && waits ? wait_for_send(qp, *ticket) : result;
}

/// Waits for all operations that were submitted, then has the card read 8 bytes at `mcst_laddr`
/// with DOCA_GPUNETIO_VERBS_MCST_ENABLED.
template <enum doca_gpu_dev_verbs_resource_sharing_mode mode =
              DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU,
          enum doca_gpu_dev_verbs_nic_handler handler = DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO,
          enum doca_gpu_dev_verbs_mcst mcst = DOCA_GPUNETIO_VERBS_MCST_DISABLED>
DOCA_GPU_DEVICE int doca_gpu_dev_verbs_get_wait(struct doca_gpu_dev_verbs_qp* qp,
                                                struct doca_gpu_dev_verbs_addr mcst_laddr) {
  using namespace offload_gpu_verbs;
  if (mcst == DOCA_GPUNETIO_VERBS_MCST_ENABLED) return read_back(qp, mcst_laddr);
  const uint64_t end = rdma::load_acquire(&qp->sq_wqe_pi);
  return end == 0 ? 0 : wait_for_send(qp, end - 1);
}

#endif
