#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/channel_layout.hpp"

namespace offload::bench {

/// The times of a message on the GPU, by its global timer, ns.
struct Stamps {
  std::uint64_t looked;     ///< the poll that found it began
  std::uint64_t found;      ///< that poll ended
  std::uint64_t written;    ///< a long answer's payload was written; else 0
  std::uint64_t published;  ///< the answer's header was stored
};

/// Launches a block that answers the first `messages` of `channel` with their bytes reversed, by
/// the steps of the persistent kernel, and writes their stamps, in device memory. Ends by itself
/// when none has come for `limit_ns`.
cudaError_t launch_timed_worker(const kernels::ChannelView& channel, std::uint32_t messages,
                                Stamps* stamps, std::uint64_t limit_ns, cudaStream_t stream);

}  // namespace offload::bench
