#include "apps/samples/sync_event_gpu.hpp"
#include "kernels/rdma/wait.hpp"

namespace offload::samples {
namespace {

__global__ void echo(const kernels::SyncEventWords* ping, kernels::SyncEventWords* pong,
                     std::uint64_t rounds) {
  for (std::uint64_t round = 0; round < rounds; ++round) {
    kernels::rdma::Wait wait({5'000'000'000});  // without a limit a lost ping would hang the GPU
    const auto give_up = [&] { return wait.is_over(); };
    if (!kernels::sync_event_wait_greater(*ping, round, give_up)) return;
    kernels::sync_event_set(*pong, round + 1);
  }
}

}  // namespace

cudaError_t launch_echo(const kernels::SyncEventWords* ping, kernels::SyncEventWords* pong,
                        std::uint64_t rounds, cudaStream_t stream) {
  void* arguments[] = {&ping, &pong, &rounds};
  return cudaLaunchKernel(echo, dim3(1), dim3(1), arguments, 0, stream);
}

}  // namespace offload::samples
