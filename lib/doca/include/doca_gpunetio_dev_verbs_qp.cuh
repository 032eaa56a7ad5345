/// Queue pairs of verbs in kernels, and their entries. Without the CUDA compiler the functions are
/// for threads, which stand in for the kernels of a host GPU. C++17.
///
/// Any number of threads uses a queue pair at the same time, in each mode of sharing; the template
/// arguments that say mode and ringer have no effect. A wait ends when its operation has ended,
/// also by an error; the card decides how long it tries to reach a peer. Functions that return an
/// int return 0, or -EIO once an operation of the queue pair has failed: a new one must then be
/// made. Keys are in the order of the network. Each operation of the functions with a ticket has
/// one entry, makes a completion, and has at most 2^30 bytes.
#ifndef DOCA_GPUNETIO_DEV_VERBS_QP_CUH_
#define DOCA_GPUNETIO_DEV_VERBS_QP_CUH_

#include <errno.h>
#include <stdint.h>

#include "doca_gpunetio_dev_buf.cuh"
#include "doca_gpunetio_verbs_def.h"
#include "kernels/group.hpp"
#include "kernels/rdma/common_receives.hpp"
#include "kernels/rdma/operations.hpp"
#include "kernels/rdma/shared_queue.hpp"

/// A queue of completions.
struct doca_gpu_dev_verbs_cq {
  uint64_t cqe_ci;  ///< entries that are known to be completed
  uint64_t cqe_mask;
  struct doca_gpu_dev_verbs_qp* qp;  ///< the library's own, as the next
  uint32_t of_receives;
  uint32_t reserved;
};

/// A queue pair, in memory of the GPU.
struct doca_gpu_dev_verbs_qp {
  uint64_t sq_wqe_pi;  ///< behind the newest entry that was submitted
  uint64_t sq_wqe_mask;
  struct doca_gpu_dev_verbs_cq cq_sq;
  struct doca_gpu_dev_verbs_cq cq_rq;
  offload::kernels::rdma::SharedQueue sends;  ///< the library's own, as the next
  offload::kernels::rdma::CommonReceives receives;
};

namespace offload_gpu_verbs {

namespace rdma = offload::kernels::rdma;
using Alone = offload::kernels::SingleLane;

/// No limit of a wait.
inline constexpr uint64_t kForever = uint64_t{1} << 62;

DOCA_GPU_DEVICE rdma::WaitLimit no_limit() {
  return {kForever};
}

DOCA_GPU_DEVICE rdma::LocalBuffer local(const doca_gpu_dev_verbs_addr& at, uint64_t bytes) {
  return {at.addr, static_cast<uint32_t>(bytes), rdma::big_endian(at.key)};
}
DOCA_GPU_DEVICE rdma::RemotePointer remote(const doca_gpu_dev_verbs_addr& at) {
  return {at.addr, rdma::big_endian(at.key)};
}

/// Waits until the entry at `position` and all earlier ones are completed.
DOCA_GPU_DEVICE int wait_for_send(doca_gpu_dev_verbs_qp* qp, uint64_t position) {
  const rdma::WorkResult result = rdma::wait_for(Alone{}, qp->sends, position, no_limit());
  rdma::raise_to(&qp->cq_sq.cqe_ci, rdma::load_acquire(&qp->sends.state->completed));
  return result == rdma::WorkResult::done ? 0 : -EIO;
}

/// Waits until the receive at `position` and all earlier ones are completed.
DOCA_GPU_DEVICE int wait_for_receive(doca_gpu_dev_verbs_qp* qp, uint64_t position) {
  rdma::Wait wait(no_limit());
  for (;;) {
    const bool received = rdma::is_received(qp->receives, position);
    if (rdma::load_acquire(&qp->receives.state->error) != 0) return -EIO;
    if (received) break;
    if (rdma::take_completions(qp->receives) == 0) wait.is_over();
  }
  rdma::raise_to(&qp->cq_rq.cqe_ci, rdma::load_acquire(&qp->receives.state->polled));
  return 0;
}

/// The threads of a scope: lane of the caller, their number, and the value of the first one.
template <enum doca_gpu_dev_verbs_exec_scope scope>
struct Threads {
#ifdef __CUDA_ARCH__
  static constexpr bool kIsWarp = scope == DOCA_GPUNETIO_VERBS_EXEC_SCOPE_WARP;
  __device__ static uint32_t lane() {
    return kIsWarp ? threadIdx.x % 32 : 0;
  }
  __device__ static constexpr uint32_t count() {
    return kIsWarp ? 32 : 1;
  }
  __device__ static uint64_t from_first(uint64_t value) {
    return kIsWarp ? __shfl_sync(0xffff'ffffU, static_cast<unsigned long long>(value), 0) : value;
  }
  __device__ static void sync() {
    if (kIsWarp) __syncwarp();
  }
#else
  DOCA_GPU_DEVICE static constexpr uint32_t lane() {
    return 0;
  }
  DOCA_GPU_DEVICE static constexpr uint32_t count() {
    return 1;
  }
  DOCA_GPU_DEVICE static constexpr uint64_t from_first(uint64_t value) {
    return value;
  }
  DOCA_GPU_DEVICE static constexpr void sync() {}
#endif
};

/// Posts `count` entries for each thread of the scope with one doorbell; `make`(i) returns the work
/// of the caller's entry i, of one block. `ticket`: set to the caller's last entry.
template <enum doca_gpu_dev_verbs_exec_scope scope, class Make>
DOCA_GPU_DEVICE int post(doca_gpu_dev_verbs_qp* qp, uint32_t count, const Make& make,
                         doca_gpu_dev_verbs_ticket_t* ticket) {
  using Scope = Threads<scope>;
  const rdma::SendQueue& queue = qp->sends.queue;
  const uint32_t blocks = count * Scope::count();
  uint64_t begin = 0;
  rdma::WorkResult result = rdma::WorkResult::done;
  if (Scope::lane() == 0) {
    result = rdma::reserve_within(Alone{}, qp->sends, blocks, no_limit(), begin);
  }
  result = static_cast<rdma::WorkResult>(Scope::from_first(static_cast<uint64_t>(result)));
  begin = Scope::from_first(begin);
  if (result != rdma::WorkResult::done) return -EIO;
  const uint64_t own = begin + uint64_t{count} * Scope::lane();
  for (uint32_t i = 0; i < count; ++i) {
    rdma::SendWork work = make(i);
    work.flags |= rdma::kSignaled;
    rdma::write_entry(queue.ring, own + i, queue.number, rdma::segments_of(work), work);
  }
  Scope::sync();
  if (Scope::lane() == 0) {
    rdma::publish(Alone{}, qp->sends, begin, begin + blocks, 1);
    rdma::raise_to(&qp->sq_wqe_pi, begin + blocks);
  }
  *ticket = own + count - 1;
  return 0;
}

}  // namespace offload_gpu_verbs

/// Returns the lane of the caller in its warp; 0 for a thread of a CPU.
DOCA_GPU_DEVICE uint32_t doca_gpu_dev_verbs_get_lane_id() {
#ifdef __CUDA_ARCH__
  return threadIdx.x % DOCA_GPUNETIO_VERBS_WARP_SIZE;
#else
  return 0;
#endif
}

/// Returns the time of a clock that never goes back, in nanoseconds.
DOCA_GPU_DEVICE uint64_t doca_gpu_dev_verbs_query_globaltimer() {
  return offload::kernels::rdma::now_ns();
}

/// Reads a word of 32 or 64 bits that other threads, or a card, write.
template <typename T, enum doca_gpu_dev_verbs_resource_sharing_mode mode =
                          DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU>
DOCA_GPU_DEVICE T doca_gpu_dev_verbs_atomic_read(const T* word) {
  return offload::kernels::look_sys(word);
}

/// Orders the reads before it, such as doca_gpu_dev_verbs_atomic_read(), before later accesses.
template <enum doca_gpu_dev_verbs_sync_scope scope = DOCA_GPUNETIO_VERBS_SYNC_SCOPE_SYS>
DOCA_GPU_DEVICE void doca_gpu_dev_verbs_fence_acquire() {
  offload::kernels::acquire_looked_sys();
}

/// Returns the queue of completions of its sends.
DOCA_GPU_DEVICE struct doca_gpu_dev_verbs_cq* doca_gpu_dev_verbs_qp_get_cq_sq(
    struct doca_gpu_dev_verbs_qp* qp) {
  return &qp->cq_sq;
}

/// Takes `count` entries, at most as many as the queue has, and returns the position of the first
/// one. It waits until there is room. UINT64_MAX: an operation has failed. The caller writes them,
/// marks them as ready, and submits them.
template <enum doca_gpu_dev_verbs_resource_sharing_mode mode =
              DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU>
DOCA_GPU_DEVICE uint64_t doca_gpu_dev_verbs_reserve_wq_slots(struct doca_gpu_dev_verbs_qp* qp,
                                                             uint32_t count) {
  using namespace offload_gpu_verbs;
  uint64_t position = 0;
  const auto result = rdma::reserve_within(Alone{}, qp->sends, count, no_limit(), position);
  return result == rdma::WorkResult::done ? position : UINT64_MAX;
}

/// Returns the memory of the entry at a position.
DOCA_GPU_DEVICE struct doca_gpu_dev_verbs_wqe* doca_gpu_dev_verbs_get_wqe_ptr(
    struct doca_gpu_dev_verbs_qp* qp, uint64_t wqe_idx) {
  return reinterpret_cast<struct doca_gpu_dev_verbs_wqe*>(
      &qp->sends.queue.ring.at(wqe_idx & qp->sq_wqe_mask, 0));
}

/// Writes an entry that writes local to remote memory. `opcode`: one of RDMA_WRITE or
/// RDMA_WRITE_IMM. `ctrl_flags`: of doca_gpu_dev_verbs_wqe_ctrl_flags. `immediate`: as the peer
/// gets it.
DOCA_GPU_DEVICE void doca_gpu_dev_verbs_wqe_prepare_write(
    struct doca_gpu_dev_verbs_qp* qp, struct doca_gpu_dev_verbs_wqe* wqe_ptr, uint64_t wqe_idx,
    uint8_t opcode, uint32_t ctrl_flags, uint32_t immediate, uint64_t remote_addr,
    uint32_t remote_key, uint64_t local_addr, uint32_t local_key, uint32_t bytes) {
  using namespace offload_gpu_verbs;
  const rdma::LocalBuffer buffer = local({local_addr, local_key}, bytes);
  rdma::SendWork work;
  work.opcode = static_cast<rdma::Opcode>(opcode);
  work.flags = static_cast<uint8_t>(ctrl_flags);
  work.immediate = immediate;
  work.remote = remote({remote_addr, remote_key});
  work.buffers = &buffer;
  work.buffer_count = 1;
  const rdma::SendRing entry{reinterpret_cast<rdma::Segment*>(wqe_ptr), 1};
  rdma::write_entry(entry, wqe_idx, qp->sends.queue.number, rdma::segments_of(work), work);
}

/// Marks reserved entries, from the first to the last one, as written.
template <enum doca_gpu_dev_verbs_resource_sharing_mode mode =
              DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU>
DOCA_GPU_DEVICE void doca_gpu_dev_verbs_mark_wqes_ready(struct doca_gpu_dev_verbs_qp* qp,
                                                        uint64_t from_wqe_idx,
                                                        uint64_t to_wqe_idx) {
  using namespace offload_gpu_verbs;
  if (from_wqe_idx == UINT64_MAX) return;
  rdma::store_seq_cst(&qp->sends.marks[from_wqe_idx & qp->sq_wqe_mask],
                      rdma::mark_of(to_wqe_idx + 1, 1));
}

/// Hands the entries before `prod_index` to the card: those that were marked as ready, and those
/// behind them that were not reserved. A program that reserves none writes from sq_wqe_pi on, as
/// one thread or block, and ensures that there is room. Entries behind one that is not ready are
/// handed over with that one.
template <enum doca_gpu_dev_verbs_resource_sharing_mode mode =
              DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU,
          enum doca_gpu_dev_verbs_sync_scope scope = DOCA_GPUNETIO_VERBS_SYNC_SCOPE_GPU,
          enum doca_gpu_dev_verbs_nic_handler handler = DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO>
DOCA_GPU_DEVICE void doca_gpu_dev_verbs_submit(struct doca_gpu_dev_verbs_qp* qp,
                                               uint64_t prod_index) {
  using namespace offload_gpu_verbs;
  rdma::SharedSendState& state = *qp->sends.state;
  uint64_t reserved = rdma::load_acquire(&state.reserved);
  while (reserved < prod_index) {
    const uint64_t found = rdma::compare_exchange_acq_rel(&state.reserved, reserved, prod_index);
    if (found == reserved) {
      rdma::fetch_add_acq_rel(&state.under_way, prod_index - reserved);
      rdma::store_seq_cst(&qp->sends.marks[reserved & qp->sq_wqe_mask],
                          rdma::mark_of(prod_index, 1));
      break;
    }
    reserved = found;
  }
  rdma::publish_filled(qp->sends);
  rdma::raise_to(&qp->sq_wqe_pi, prod_index);
}

/// Waits for all operations that were submitted.
template <enum doca_gpu_dev_verbs_resource_sharing_mode mode =
              DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU,
          enum doca_gpu_dev_verbs_nic_handler handler = DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO>
DOCA_GPU_DEVICE int doca_gpu_dev_verbs_wait(struct doca_gpu_dev_verbs_qp* qp) {
  using namespace offload_gpu_verbs;
  const uint64_t end = rdma::load_acquire(&qp->sq_wqe_pi);
  return end == 0 ? 0 : wait_for_send(qp, end - 1);
}

#endif
