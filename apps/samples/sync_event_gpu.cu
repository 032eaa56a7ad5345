#include "apps/samples/sync_event_gpu.hpp"

namespace offload::samples {
namespace {

/// Looks at the counter before the kernel gives up: some seconds of PCIe round trips.
constexpr std::uint32_t kMostLooks = 2'000'000;

__global__ void echo(const kernels::SyncEventWords* ping, kernels::SyncEventWords* pong,
                     std::uint64_t turns) {
  for (std::uint64_t turn = 0; turn < turns; ++turn) {
    std::uint32_t looks = 0;
    const auto give_up = [&] { return ++looks == kMostLooks; };
    if (!kernels::sync_event_wait_greater(*ping, turn, give_up)) return;
    kernels::sync_event_set(*pong, turn + 1);
  }
}

}  // namespace

cudaError_t launch_echo(const kernels::SyncEventWords* ping, kernels::SyncEventWords* pong,
                        std::uint64_t turns, cudaStream_t stream) {
  void* arguments[] = {&ping, &pong, &turns};
  return cudaLaunchKernel(echo, dim3(1), dim3(1), arguments, 0, stream);
}

}  // namespace offload::samples
