#include "bench/rdma_emulator/initiate.hpp"
#include "bench/rdma_emulator/owner.hpp"
#include "kernels/launch_kernel.cuh"

namespace offload::bench {
namespace {

__global__ void initiate(const kernels::rdma::SendQueue* queues, Initiation work,
                         std::uint64_t* completed) {
  if (threadIdx.x != 0) return;
  Owner owner(queues[blockIdx.x]);
  std::uint64_t posted = 0;
  std::uint64_t done = 0;
  for (std::uint64_t looks = 0; done != work.rounds && looks != work.patience; ++looks) {
    for (; posted != work.rounds && posted - done < work.ahead; ++posted) {
      owner.post_run(work.run, false);
    }
    const std::uint64_t found = owner.poll();
    if (found != 0) looks = 0;
    done += found;
  }
  completed[blockIdx.x] = done;
}

}  // namespace

cudaError_t launch_initiate(const kernels::rdma::SendQueue* queues, std::uint32_t count,
                            const Initiation& work, std::uint64_t* completed, cudaStream_t stream) {
  return kernels::launch_kernel(initiate, count, 32, stream, queues, work, completed);
}

}  // namespace offload::bench
