#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string_view>

#include "kernels/channel_layout.hpp"
#include "kernels/group.hpp"

/// The persistent kernel: the worker loop of serve.hpp on a GPU. A message is in the hands of a
/// group: a warp where all are short enough for packets, a block of threads where one may be
/// longer.
namespace offload::kernels {

/// A channel as the kernel serves it. The pointers are the GPU's.
struct DeviceChannel {
  ChannelView channel;
  std::uint64_t first_sequence;  ///< from take_over
  /// In host memory, both written by the kernel alone: a word that moves while the channel is
  /// served; and the last request refused, as {slot, length, message, 1}.
  std::uint64_t* heartbeat;
  Packet* fault;
  /// In device memory: the last message that may be looked for, by number. From first_sequence on.
  std::uint64_t* gate;
  /// In device memory: a number that moves while messages come, whichever group has them.
  std::uint32_t* latest;
};

struct PersistentWorker {
  const DeviceChannel* channels;
  std::uint32_t channel_count;
  std::uint32_t groups_per_channel;  ///< a multiple of kWarpsPerBlock
  std::uint32_t max_length;          ///< the longest of any channel's, bytes
  /// In device memory: a poll of it costs no PCIe transfer. Not 0: end.
  const std::uint32_t* stop;
  std::uint32_t polls_until_idle;
  std::uint32_t idle_sleep_ns;  ///< between two polls of an idle group; 0: none
};

/// Launches it with the service called so, on `stream`. cudaErrorInvalidValue for an unknown one;
/// cudaErrorLaunchOutOfResources if not all of it fits on the GPU at once, which it must: what is
/// not resident would wait for ever for what never ends.
cudaError_t launch_persistent_worker(std::string_view service, const PersistentWorker& worker,
                                     cudaStream_t stream);

}  // namespace offload::kernels
