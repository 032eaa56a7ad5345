#include "bench/floor/word_echo.hpp"

namespace offload::bench {
namespace {

__global__ void word_echo(const volatile std::uint32_t* request, volatile std::uint32_t* response,
                          std::uint32_t last) {
  if (threadIdx.x != 0) return;
  for (std::uint32_t seen = 0; seen != last;) {
    const std::uint32_t value = *request;
    if (value == seen) continue;
    *response = seen = value;
  }
}

}  // namespace

cudaError_t launch_word_echo(const std::uint32_t* request, std::uint32_t* response,
                             std::uint32_t last, cudaStream_t stream) {
  word_echo<<<1, 32, 0, stream>>>(request, response, last);
  return cudaGetLastError();
}

}  // namespace offload::bench
