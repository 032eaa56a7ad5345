#include "apps/rdma/device/lane_body.hpp"
#include "apps/rdma/device/run_lanes.hpp"

namespace offload::rdma_tool {
namespace {

constexpr int kThreads = 32;

__global__ void run_lanes(LaneRun* runs) {
  run_lane(kernels::Warp{}, runs[blockIdx.x]);
}

}  // namespace

cudaError_t launch_lanes(LaneRun* runs, unsigned count, cudaStream_t stream) {
  run_lanes<<<count, kThreads, 0, stream>>>(runs);
  return cudaGetLastError();
}

cudaError_t count_resident_lanes(unsigned& count) {
  int device = 0;
  int processors = 0;
  int blocks = 0;
  cudaError_t status = cudaGetDevice(&device);
  if (status == cudaSuccess) {
    status = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  }
  if (status == cudaSuccess) {
    status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, run_lanes, kThreads, 0);
  }
  count = static_cast<unsigned>(processors * blocks);
  return status;
}

}  // namespace offload::rdma_tool
