#pragma once

#include <cuda_runtime_api.h>

#include "kernels/tasks/sync_event.hpp"

namespace offload::samples {

/// Launches a kernel that answers each of `rounds` counts of `ping` by setting `pong` to the same
/// count. It ends early if no count comes for some seconds. `ping`, `pong`: device addresses.
cudaError_t launch_echo(const kernels::SyncEventWords* ping, kernels::SyncEventWords* pong,
                        std::uint64_t rounds, cudaStream_t stream);

}  // namespace offload::samples
