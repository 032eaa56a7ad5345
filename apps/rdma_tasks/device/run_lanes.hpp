#pragma once

#include <cuda_runtime_api.h>

#include "apps/rdma_tasks/device/lane.hpp"

namespace offload::rdma_tool {

/// Launches a warp for each of the `count` runs.
cudaError_t launch_lanes(LaneRun* runs, unsigned count, cudaStream_t stream);
/// Counts the lanes that the current device runs at once.
cudaError_t count_resident_lanes(unsigned& count);

}  // namespace offload::rdma_tool
