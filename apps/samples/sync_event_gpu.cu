#include "apps/samples/sync_event_gpu.hpp"

namespace offload::samples {
namespace {

/// The number of polls after which the kernel gives up: some seconds of PCIe round trips.
constexpr std::uint32_t kMostPolls = 2'000'000;

__global__ void echo(const kernels::SyncEventWords* ping, kernels::SyncEventWords* pong,
                     std::uint64_t rounds) {
  for (std::uint64_t round = 0; round < rounds; ++round) {
    std::uint32_t polls = 0;
    const auto give_up = [&] { return ++polls == kMostPolls; };
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
