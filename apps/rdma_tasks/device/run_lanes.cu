#include "apps/rdma_tasks/device/lane_body.hpp"
#include "apps/rdma_tasks/device/run_lanes.hpp"
#include "kernels/launch_kernel.cuh"
#include "kernels/resident_blocks.cuh"

namespace offload::rdma_tool {
namespace {

constexpr int kThreads = 32;

__global__ void run_lanes(LaneRun* runs) {
  run_lane(kernels::Warp{}, runs[blockIdx.x]);
}

}  // namespace

cudaError_t launch_lanes(LaneRun* runs, unsigned count, cudaStream_t stream) {
  return kernels::launch_kernel(run_lanes, count, kThreads, stream, runs);
}

cudaError_t count_resident_lanes(unsigned& count) {
  return kernels::count_resident_blocks(run_lanes, kThreads, count);
}

}  // namespace offload::rdma_tool
