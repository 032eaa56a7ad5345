#pragma once

#include <cstdint>

/// Macros and a function for source that is a CUDA kernel and plain C++. Headers in kernels/ are
/// C++17 (for nvcc 11.8) and include nothing of lib/.
#if defined(__CUDACC__)
#define OFFLOAD_HOST_DEVICE __host__ __device__
#else
#define OFFLOAD_HOST_DEVICE
#endif

/// Before a loop of few turns: the device compiler writes them out.
#if defined(__CUDA_ARCH__)
#define OFFLOAD_UNROLL _Pragma("unroll")
#else
#define OFFLOAD_UNROLL
#endif

namespace offload::kernels {

/// The number whose bytes come in the other order.
OFFLOAD_HOST_DEVICE inline std::uint32_t swap_bytes(std::uint32_t number) {
#if defined(__CUDA_ARCH__)
  return __byte_perm(number, 0, 0x0123);
#else
  return __builtin_bswap32(number);
#endif
}

}  // namespace offload::kernels
