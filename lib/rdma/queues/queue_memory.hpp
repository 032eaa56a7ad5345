#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/rdma/queue_pair.hpp"

/// The memory of queues in mlx5's formats, between who posts to them and who stands behind them.
namespace offload::rdma {

/// The handles of a queue pair's two queues.
struct QueuePairMemory {
  kernels::rdma::SendQueue send;
  kernels::rdma::ReceiveQueue receive;
};

/// The capacity of a queue pair; powers of two, up to kMostEntries.
struct QueueSizes {
  std::uint32_t send_blocks = 64;  ///< of 64 bytes; an entry takes one to sixteen
  std::uint32_t receives = 64;
};

/// Limited because the positions that a card sees have 16 bits.
inline constexpr std::uint32_t kMostEntries = 1U << 15;
/// The alignment of the memory of a queue pair.
inline constexpr std::size_t kQueueAlignment = 64;

/// Returns the bytes for a queue pair, a multiple of kQueueAlignment. Throws Error: invalid_value
/// for invalid sizes.
std::size_t queue_memory_bytes(const QueueSizes& sizes);

/// Lays a queue pair out at the begin of `memory`: rings, unwritten completions, records and
/// doorbell, each of these on a separate cache line, because one side writes it while the other
/// reads its neighbour. `number`: the queue pair's, of 24 bits. The memory outlives the handles,
/// and has no other user meanwhile. Throws Error: invalid_value for invalid sizes, a number of more
/// bits, and memory that is too small or not aligned.
QueuePairMemory lay_out_queues(std::span<std::byte> memory, const QueueSizes& sizes,
                               std::uint32_t number);

/// Returns the same handles for a user that sees the byte at `from` at `to`, such as a GPU to which
/// the memory of the host is mapped. Both are the begin of the memory, or any byte of it.
QueuePairMemory as_seen_at(const QueuePairMemory& queues, const void* from, void* to);

/// Throws Error: invalid_value for invalid sizes, or fewer places for completions than entries.
void check_sizes(const QueuePairMemory& queues);

}  // namespace offload::rdma
