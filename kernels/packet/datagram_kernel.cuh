#pragma once

#include <cuda_runtime.h>

#include "kernels/packet/datagram_worker.hpp"

/// The persistent kernel for requests in datagrams, instantiated for each service where that is
/// compiled, as persistent_worker.cuh is.
namespace offload::kernels::packet {

inline constexpr std::uint32_t kLanesOfWarp = 32;

/// A warp a queue, each of a block of its own: a queue's is all the work that it has.
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

/// Launches it with a block for each of `works`, which are as the GPU sees them, as is all in them.
/// cudaErrorLaunchOutOfResources if not all fit on the GPU at once.
template <class Service>
cudaError_t launch_datagram_worker(const Service& service, const DatagramWork* works,
                                   std::uint32_t count, cudaStream_t stream) {
  int device = 0;
  int processors = 0;
  int per_processor = 0;
  if (const auto status = cudaGetDevice(&device); status != cudaSuccess) return status;
  if (const auto status =
          cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
      status != cudaSuccess) {
    return status;
  }
  if (const auto status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
          &per_processor, serve_datagrams<Service>, kLanesOfWarp, 0);
      status != cudaSuccess) {
    return status;
  }
  if (count > static_cast<std::uint32_t>(processors) * static_cast<std::uint32_t>(per_processor)) {
    return cudaErrorLaunchOutOfResources;
  }
  void* arguments[] = {&works, const_cast<Service*>(&service)};
  return cudaLaunchKernel(serve_datagrams<Service>, dim3(count), dim3(kLanesOfWarp), arguments, 0,
                          stream);
}

}  // namespace offload::kernels::packet
