#pragma once

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>

#include "rdma/queues/queue_memory.hpp"

/// Queues of an mlx5 card that others than libmlx5 post to, such as a kernel.
namespace offload::rdma::mlx5 {

/// Memory for the queues of one queue pair, as it was made known to a GPU.
struct SeenMemory {
  /// Memory of the host, used for nothing else, from the begin of a page; needs arena_bytes().
  std::span<std::byte> bytes;
  void* device_address = nullptr;  ///< where a GPU sees the first byte; null: no GPU does
  /// Returns the GPU's address of a register of the card, of 8 bytes. Throws Error if there is
  /// none; null: there is none. The mapping lives as long as the queue pair.
  std::function<void*(void*)> map_register;
};

/// `alignment`: a power of two.
constexpr std::size_t rounded_up(std::size_t bytes, std::size_t alignment) {
  return (bytes + alignment - 1) & ~(alignment - 1);
}

/// Returns the bytes that libmlx5 needs for such queues, and the doorbell's word, with room for its
/// alignment. Throws Error: invalid_value for invalid sizes.
inline std::size_t arena_bytes(const QueueSizes& sizes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  // Rings and completions each begin at a page and end at one. The rings' alignment is a 64th of
  // their size, which libmlx5 rounds up to that too. Those of raw packets are two, each of pages.
  const std::size_t all = rounded_up(queue_memory_bytes(sizes), page);
  return all + rounded_up(std::bit_ceil(all) / 32, page) + 5 * page;
}

/// Allocates pieces for libmlx5 from memory that is given once. Pieces are not freed one by one:
/// they all live as long as a queue pair. One thread.
class Arena {
 public:
  explicit Arena(std::span<std::byte> bytes) noexcept : bytes_(bytes) {}

  /// Returns zeroed memory on separate cache lines, because one side writes records while the other
  /// reads their neighbours. `alignment`: a power of two. Null: there is not enough.
  void* take(std::size_t size, std::size_t alignment) noexcept {
    const auto begin = reinterpret_cast<std::uintptr_t>(bytes_.data());
    const std::size_t at = rounded_up(begin + used_, std::max(alignment, kQueueAlignment)) - begin;
    const std::size_t whole = rounded_up(size, kQueueAlignment);
    if (whole < size || at > bytes_.size() || whole > bytes_.size() - at) return nullptr;
    used_ = at + whole;
    std::memset(bytes_.data() + at, 0, whole);
    return bytes_.data() + at;
  }
  /// Returns whether all of [begin, begin + size) is in its memory.
  [[nodiscard]] bool has(const void* begin, std::size_t size) const noexcept {
    const auto first = reinterpret_cast<std::uintptr_t>(begin);
    const auto own = reinterpret_cast<std::uintptr_t>(bytes_.data());
    return first >= own && size <= bytes_.size() && first - own <= bytes_.size() - size;
  }
  [[nodiscard]] std::byte* begin() const noexcept { return bytes_.data(); }

 private:
  std::span<std::byte> bytes_;
  std::size_t used_ = 0;
};

}  // namespace offload::rdma::mlx5
