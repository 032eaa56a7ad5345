#pragma once

#include <cuda_runtime.h>

#include "kernels/packets/datagram_worker.hpp"
#include "kernels/resident_blocks.cuh"

/// The persistent kernel for requests in datagrams, instantiated for each service where that is
/// compiled, as persistent_worker.cuh is.
namespace offload::kernels::packets {

inline constexpr std::uint32_t kLanesOfWarp = 32;

/// Runs one warp for each queue, each in a separate block, which does all the work of that queue.
template <class Service>
__global__ void __launch_bounds__(kLanesOfWarp)
    serve_datagrams(const DatagramWork* works, const __grid_constant__ Service service) {
  __shared__ DatagramStaging staging;
  const Warp group;
  DatagramState state;
  DatagramWorker<Warp, Service> worker(group, service, works[blockIdx.x], state, staging);
  bool had_work = false;
  while (!worker.is_stopped() && worker.turn(had_work)) continue;
}

/// Launches it with a block for each of `works`; they and all pointers in them are the GPU's.
/// Returns cudaErrorLaunchOutOfResources if not all blocks fit on the GPU at once.
template <class Service>
cudaError_t launch_datagram_worker(const Service& service, const DatagramWork* works,
                                   std::uint32_t count, cudaStream_t stream) {
  std::uint32_t room = 0;
  const auto status = count_resident_blocks(serve_datagrams<Service>, kLanesOfWarp, room);
  if (status != cudaSuccess) return status;
  if (count > room) return cudaErrorLaunchOutOfResources;
  void* arguments[] = {&works, const_cast<Service*>(&service)};
  return cudaLaunchKernel(serve_datagrams<Service>, dim3(count), dim3(kLanesOfWarp), arguments, 0,
                          stream);
}

}  // namespace offload::kernels::packets
