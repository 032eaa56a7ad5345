#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/rdma/queue_pair.hpp"

namespace offload::bench {

/// The work of each warp on its queue.
struct Initiation {
  std::uint32_t run;     ///< entries a doorbell
  std::uint32_t rounds;  ///< runs
  std::uint32_t ahead;   ///< runs under way at once
  /// Looks for a completion, after which it gives up: a kernel never hangs.
  std::uint64_t patience;
};

/// Launches a warp for each of `count` queues, of which one lane posts and polls. `queues` and
/// `completed`, the good completions of each, are as the GPU sees them.
cudaError_t launch_initiate(const kernels::rdma::SendQueue* queues, std::uint32_t count,
                            const Initiation& work, std::uint64_t* completed, cudaStream_t stream);

}  // namespace offload::bench
