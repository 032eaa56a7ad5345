#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace offload::kernels {

/// How many blocks of `threads` threads of `kernel` can be on the current GPU at once, which blocks
/// that wait for each other, or for no end of work, have to be.
template <class Kernel>
cudaError_t count_resident_blocks(Kernel* kernel, std::uint32_t threads, std::uint32_t& count) {
  int device = 0;
  int processors = 0;
  int blocks = 0;
  cudaError_t status = cudaGetDevice(&device);
  if (status == cudaSuccess) {
    status = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  }
  if (status == cudaSuccess) {
    status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel,
                                                           static_cast<int>(threads), 0);
  }
  count = static_cast<std::uint32_t>(processors) * static_cast<std::uint32_t>(blocks);
  return status;
}

}  // namespace offload::kernels
