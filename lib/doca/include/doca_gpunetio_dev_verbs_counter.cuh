/// Writes with counters at the peer, by two queue pairs: see doca_gpunetio_dev_verbs_onesided.cuh.
#ifndef DOCA_GPUNETIO_DEV_VERBS_COUNTER_CUH_
#define DOCA_GPUNETIO_DEV_VERBS_COUNTER_CUH_

#include <stddef.h>
#include <stdint.h>

#include "doca_gpunetio_dev_verbs_onesided.cuh"

/// Writes `size` bytes by the main queue pair. Its companion, which may wait for completions, adds
/// to a word of 8 bytes at the peer when the write is completed. `counter_laddr`: 8 bytes, which
/// get the word's old value. Each entry of the main queue pair makes a completion.
template <enum doca_gpu_dev_verbs_resource_sharing_mode mode =
              DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU,
          enum doca_gpu_dev_verbs_nic_handler handler = DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO,
          enum doca_gpu_dev_verbs_exec_scope scope = DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD>
DOCA_GPU_DEVICE int doca_gpu_dev_verbs_put_counter(
    struct doca_gpu_dev_verbs_qp* qp_main, struct doca_gpu_dev_verbs_addr raddr,
    struct doca_gpu_dev_verbs_addr laddr, size_t size, struct doca_gpu_dev_verbs_qp* qp_companion,
    struct doca_gpu_dev_verbs_addr counter_raddr, struct doca_gpu_dev_verbs_addr counter_laddr,
    uint64_t counter_val) {
  using namespace offload_gpu_verbs;
  const rdma::LocalBuffer from = local(laddr, size);
  const rdma::LocalBuffer before = local(counter_laddr, sizeof counter_val);
  doca_gpu_dev_verbs_ticket_t written = 0;
  const int result = post<scope>(
      qp_main, 1,
      [&](uint32_t) { return rdma::signaled(rdma::Opcode::rdma_write, from, remote(raddr)); },
      &written);
  if (result != 0) return result;
  doca_gpu_dev_verbs_ticket_t added = 0;
  return post<scope>(
      qp_companion, 2,
      [&](uint32_t i) {
        if (i == 0) return rdma::wait_for_completion(qp_main->sends.queue.completions, written);
        rdma::SendWork add = rdma::signaled(rdma::Opcode::fetch_add, before, remote(counter_raddr));
        add.compare_add = counter_val;
        return add;
      },
      &added);
}

#endif
