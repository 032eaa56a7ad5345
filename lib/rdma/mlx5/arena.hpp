#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "rdma/queues/queue_memory.hpp"

/// Queues of an mlx5 card that others than libmlx5 post to, such as a kernel.
namespace offload::rdma::mlx5 {

/// Memory for the queues of one queue pair, as it was made known to a GPU.
struct SeenMemory {
  /// Of the host, for nothing else, from a page's begin on; arena_bytes() of it are enough.
  std::span<std::byte> bytes;
  void* device_address = nullptr;  ///< where a GPU sees the first byte; null: no GPU does
  /// Tells where the GPU sees a register of the card, of 8 bytes. Throws Error where it cannot;
  /// none: it cannot. What it maps lives as long as the queue pair.
  std::function<void*(void*)> map_register;
};

/// Bytes that libmlx5 takes for such queues, and the doorbell's word, with room for its alignment.
/// Throws Error: invalid_value for sizes that are none.
std::size_t arena_bytes(const QueueSizes& sizes);

/// What libmlx5 asks for, piece by piece, out of memory that is given once. Pieces are not given
/// back one by one: they all live as long as a queue pair. One thread.
class Arena {
 public:
  explicit Arena(std::span<std::byte> bytes) noexcept : bytes_(bytes) {}

  /// Zeroed memory, on cache lines of its own, as records are written by one side while the other
  /// looks at their neighbours. `alignment`: a power of two. Null: there is not enough.
  void* take(std::size_t size, std::size_t alignment) noexcept;
  /// Whether all of [begin, begin + size) is in its memory.
  [[nodiscard]] bool has(const void* begin, std::size_t size) const noexcept;
  [[nodiscard]] std::byte* begin() const noexcept { return bytes_.data(); }

 private:
  std::span<std::byte> bytes_;
  std::size_t used_ = 0;
};

}  // namespace offload::rdma::mlx5
