#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace offload::bench {

/// Launches one warp that answers each new value of `*request` by writing it to `*response`, and
/// ends at `last`. Both words are in pinned host memory, as the GPU sees it.
cudaError_t launch_word_echo(const std::uint32_t* request, std::uint32_t* response,
                             std::uint32_t last, cudaStream_t stream);

}  // namespace offload::bench
