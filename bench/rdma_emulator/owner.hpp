#pragma once

#include <cstdint>

#include "kernels/rdma/queue_pair.hpp"

namespace offload::bench {

/// The owner of a send queue, in a kernel or a thread.
class Owner {
 public:
  OFFLOAD_HOST_DEVICE explicit Owner(const kernels::rdma::SendQueue& queue) : queue_(queue) {}

  [[nodiscard]] OFFLOAD_HOST_DEVICE std::uint64_t under_way() const {
    return state_.posted - state_.completed;
  }
  /// Writes of 64 bytes with one doorbell; of them the last is signaled, or all.
  OFFLOAD_HOST_DEVICE void post_run(std::uint32_t run, bool all_signaled) {
    const kernels::rdma::LocalBuffer buffer{0x1000, 64, 7};
    kernels::rdma::SendWork work;
    work.opcode = kernels::rdma::Opcode::rdma_write;
    work.remote = {0x2000, 9};
    work.buffers = &buffer;
    work.buffer_count = 1;
    for (std::uint32_t i = 1; i <= run; ++i) {
      if (all_signaled || i == run) work.flags = kernels::rdma::kSignaled;
      kernels::rdma::post_send(queue_, state_, work);
    }
    kernels::rdma::publish(queue_, state_);
  }
  /// Takes the completions that are there. Returns how many were good.
  OFFLOAD_HOST_DEVICE std::uint64_t poll() {
    kernels::rdma::Completion completion{};
    std::uint64_t count = 0;
    while (kernels::rdma::poll_send(queue_, state_, completion)) {
      if (!completion.is_error()) ++count;
    }
    return count;
  }

 private:
  kernels::rdma::SendQueue queue_;
  kernels::rdma::SendState state_;
};

}  // namespace offload::bench
