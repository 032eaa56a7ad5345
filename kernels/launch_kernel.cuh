#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

namespace offload::kernels {

/// Launches `kernel` with `blocks` blocks of `threads` threads on `stream`. Returns this launch's
/// status alone; cudaGetLastError() also returns what an earlier call left that failed.
template <class... Parameters>
cudaError_t launch_kernel(void (*kernel)(Parameters...), std::uint32_t blocks,
                          std::uint32_t threads, cudaStream_t stream,
                          std::common_type_t<Parameters>... arguments) {
  void* addresses[] = {&arguments...};
  return cudaLaunchKernel(kernel, dim3(blocks), dim3(threads), addresses, 0, stream);
}

}  // namespace offload::kernels
