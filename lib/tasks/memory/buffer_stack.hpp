#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "tasks/memory/buffer.hpp"

namespace offload::memory {

/// The buffers of an inventory or a pool: an array of fixed size, with a stack of those that are
/// free. One thread.
class BufferStack {
 public:
  /// `owner` gets the buffers back. Throws Error: invalid_value for a count of 0, no_memory.
  BufferStack(BufferOwner& owner, std::size_t count);
  BufferStack& operator=(BufferStack&&) = delete;
  /// Leaks the array if buffers are still in use, as their references will be dropped later.
  ~BufferStack();

  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] std::size_t free_count() const noexcept { return free_count_; }
  [[nodiscard]] std::size_t out() const noexcept { return count_ - free_count_; }

  [[nodiscard]] Buffer& operator[](std::size_t index) noexcept { return buffers_[index]; }

  /// Makes `buffer` describe `dataroom`, without data.
  static void place(Buffer& buffer, MemoryRegion& region, std::size_t range,
                    std::span<std::byte> dataroom) noexcept;

  /// The next free buffer, in the place it had before; null if all are in use.
  [[nodiscard]] BufferRef lend() noexcept;
  /// Takes back a buffer that has no references.
  void take_back(Buffer& buffer) noexcept;

 private:
  std::unique_ptr<Buffer[]> buffers_;
  std::size_t count_;
  std::size_t free_count_ = 0;
  Buffer* free_ = nullptr;
};

}  // namespace offload::memory
