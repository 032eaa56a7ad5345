#pragma once

#include <cuda_runtime_api.h>

#include "kernels/sync_event.hpp"

namespace offload::samples {

/// Launches a kernel that answers each of `turns` counts of `ping` by adding 1 to `pong`, and ends
/// early when a count does not come for a while. Both as the GPU sees them.
cudaError_t launch_echo(const kernels::SyncEventWords* ping, kernels::SyncEventWords* pong,
                        std::uint64_t turns, cudaStream_t stream);

}  // namespace offload::samples
