#pragma once

#include <cstdint>

#include "kernels/channel_layout.hpp"
#include "kernels/group.hpp"
#include "kernels/rdma/slot_writer.hpp"

/// The parameters of the persistent kernel (persistent_worker.cuh), the worker loop of serve.hpp on
/// a GPU. A group processes each slot: a warp if all messages are short enough for packets, a block
/// of threads if one may be longer.
namespace offload::kernels {

/// A channel as the kernel serves it. The pointers are the GPU's.
struct DeviceChannel {
  ChannelView channel;
  std::uint64_t first_sequence;  ///< ImportedChannel::first_sequence
  /// In host memory, both written by the kernel alone: a counter that moves while the channel is
  /// served; the last request refused, as {slot, length, message, 1}.
  std::uint64_t* heartbeat;
  Packet* fault;
  /// In device memory: the number of the last message that may be polled for; first_sequence at the
  /// start (gate.cuh).
  std::uint64_t* gate;
  /// In device memory: the number of a message found lately by any group; moves while messages
  /// come.
  std::uint32_t* latest;
  /// In host memory: for each group of the channel the time spent on answering messages, from 0 on,
  /// in nanoseconds modulo 2^32, written after a number of its polls.
  std::uint32_t* busy;
  /// In device memory: what responses are posted with, where `posts` is set.
  const rdma::SlotWriter* writer;
};

/// The kernel's argument. Times and limits are those of the CUDA back end.
struct PersistentWorker {
  const DeviceChannel* channels;
  std::uint32_t channel_count;
  std::uint32_t groups_per_channel;  ///< a multiple of kWarpsPerBlock
  std::uint32_t max_length;          ///< the longest of any channel's, bytes
  /// The server is on another machine: requests are written by RDMA, and so are responses, by the
  /// kernel. All channels have a writer then.
  bool posts;
  /// In device memory, so that a poll costs no PCIe transfer. Not 0: the kernel ends.
  const std::uint32_t* stop;
  std::uint32_t polls_until_idle;  ///< in which the channel had no message
  std::uint32_t idle_sleep_ns;     ///< between two polls of an idle group; 0: none
};

}  // namespace offload::kernels
