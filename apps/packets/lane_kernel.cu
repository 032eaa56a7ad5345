#include "apps/packets/lane_kernel.hpp"
#include "kernels/launch_kernel.cuh"

namespace offload::packets {
namespace {

__global__ void run_lanes(const LaneWork* works) {
  const kernels::Warp group;
  Lane<kernels::Warp>(group, works[blockIdx.x]).run([](bool) {});
}

}  // namespace

cudaError_t launch_lanes(const LaneWork* works, std::size_t count, cudaStream_t stream) {
  return kernels::launch_kernel(run_lanes, static_cast<std::uint32_t>(count), kLanesOfWarp, stream,
                                works);
}

}  // namespace offload::packets
