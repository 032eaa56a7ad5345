#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "bench/gpu_rdma/load.hpp"

namespace offload::bench {

/// Launches `warps` blocks of a warp each on the load.
cudaError_t launch_load(const Load& load, std::uint32_t warps, cudaStream_t stream);

}  // namespace offload::bench
