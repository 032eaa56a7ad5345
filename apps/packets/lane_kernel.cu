#include "apps/packets/lane_kernel.hpp"

namespace offload::packets {
namespace {

__global__ void run_lanes(const LaneWork* works) {
  const kernels::Warp group;
  Lane<kernels::Warp>(group, works[blockIdx.x]).run([](bool) {});
}

}  // namespace

cudaError_t launch_lanes(const LaneWork* works, std::size_t count, cudaStream_t stream) {
  run_lanes<<<static_cast<unsigned>(count), kLanesOfWarp, 0, stream>>>(works);
  return cudaGetLastError();
}

}  // namespace offload::packets
