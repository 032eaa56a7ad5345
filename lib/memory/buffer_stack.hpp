#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "memory/buffer.hpp"

namespace offload::memory {

/// The buffers of an inventory or a pool: a fixed number of them, and which are free, the last that
/// was given back first. One thread.
class BufferStack {
 public:
  /// `owner` is who gets the buffers back. Throws Error: invalid_value for no buffers, no_memory.
  BufferStack(BufferOwner& owner, std::size_t count);
  BufferStack(const BufferStack&) = delete;
  BufferStack& operator=(const BufferStack&) = delete;
  /// Buffers that are still out are left in memory for good: their holders will touch them.
  ~BufferStack();

  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] std::size_t free_count() const noexcept { return free_count_; }
  [[nodiscard]] std::size_t out() const noexcept { return count_ - free_count_; }

  [[nodiscard]] Buffer& operator[](std::size_t index) noexcept { return buffers_[index]; }

  /// Says what `buffer` describes, with no data.
  static void place(Buffer& buffer, MemoryRegion& region, std::size_t range,
                    std::span<std::byte> dataroom) noexcept;

  /// The next free buffer, describing what it did before; null if all are out.
  [[nodiscard]] BufferRef lend() noexcept;
  /// Of a buffer without references.
  void take_back(Buffer& buffer) noexcept;

 private:
  std::unique_ptr<Buffer[]> buffers_;
  std::size_t count_;
  std::size_t free_count_ = 0;
  Buffer* free_ = nullptr;
};

}  // namespace offload::memory
