#pragma once

/// Macros with which the same source is a CUDA kernel and plain C++. Headers in kernels/ are C++17
/// (for nvcc 11.8) and include nothing of lib/.
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
