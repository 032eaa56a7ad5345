#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "apps/packets/lane.hpp"

namespace offload::packets {

inline constexpr std::size_t kLanesOfWarp = 32;

/// Launches a warp for each of `count` works, which are as the GPU sees them, as is all in them.
cudaError_t launch_lanes(const LaneWork* works, std::size_t count, cudaStream_t stream);

}  // namespace offload::packets
