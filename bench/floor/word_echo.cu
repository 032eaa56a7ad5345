#include "bench/floor/word_echo.hpp"
#include "kernels/launch_kernel.cuh"
#include "kernels/memory_order.hpp"

namespace offload::bench {
namespace {

/// Relaxed: a word is all there is to see. Pairs with release and acquire in bench-floor's measure.
__global__ void word_echo(const std::uint32_t* request, std::uint32_t* response,
                          std::uint32_t last) {
  if (threadIdx.x != 0) return;
  for (std::uint32_t seen = 0; seen != last;) {
    const std::uint32_t value = kernels::load_relaxed_sys(request);
    if (value == seen) continue;
    kernels::store_relaxed_sys(response, seen = value);
  }
}

}  // namespace

cudaError_t launch_word_echo(const std::uint32_t* request, std::uint32_t* response,
                             std::uint32_t last, cudaStream_t stream) {
  return kernels::launch_kernel(word_echo, 1, 32, stream, request, response, last);
}

}  // namespace offload::bench
