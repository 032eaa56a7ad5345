#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "kernels/rdma/queue_pair.hpp"

namespace offload::samples {

/// A queue pair: what a kernel, or a thread, posts to.
struct WorkQueues {
  kernels::rdma::SendQueue send;
  kernels::rdma::ReceiveQueue receive;
};

/// The network card of these samples: a model in memory, on a separate thread, or the mlx5 card
/// that the environment variable OFFLOAD_SAMPLE_CARD names. A real program has a card, or an
/// emulator over any device (docs/internals/gpu-rdma.md); kernels see no difference. C++17, as the
/// samples are read by a CUDA compiler. Throws std::exception.
class SampleCard {
 public:
  class Kind;

  SampleCard();
  SampleCard& operator=(SampleCard&&) = delete;
  ~SampleCard();

  // Before start().

  /// The key of memory that every queue may read and write.
  std::uint32_t register_memory(void* memory, std::size_t bytes);
  /// Returns the bytes for a queue pair of this number of blocks and receives, powers of two.
  static std::size_t queue_bytes(std::uint32_t blocks, std::uint32_t receives);
  WorkQueues add_queue(void* memory, std::uint32_t blocks, std::uint32_t receives);
  /// Each gets what the other sends; a queue may be connected to itself.
  void connect(const WorkQueues& one, const WorkQueues& other);

  void start();
  /// Returns the first violation of the format of entries; empty: none.
  std::string stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace offload::samples
