#pragma once

#include <cstddef>

#include "memory/region.hpp"
#include "tasks/memory/buffer.hpp"
#include "tasks/memory/buffer_stack.hpp"

namespace offload::memory {

/// A pool of equal buffers laid out over a region from its start, last in, first out. Nothing else
/// should use that memory. While the pool is started the region cannot stop. One thread uses the
/// pool and its buffers; nothing is allocated after the constructor.
class BufferPool final : private BufferOwner {
 public:
  static constexpr std::size_t kCacheLine = 64;

  /// `buffer_size`: bytes. `alignment` of each buffer's first byte: a power of two. The region must
  /// outlive the pool. Throws Error: invalid_value, no_memory.
  BufferPool(MemoryRegion& region, std::size_t buffer_size, std::size_t count,
             std::size_t alignment = kCacheLine);
  /// Logs an error if buffers are still in use; the region can then never stop.
  ~BufferPool();
  BufferPool& operator=(BufferPool&&) = delete;

  /// Throws Error: bad_state if it is started or the region is not; full if the buffers do not fit,
  /// as each lies in one range.
  void start();
  /// Throws Error: bad_state; in_use while buffers are in use, and it stays started.
  void stop();

  /// A buffer without data; null if all are in use or the pool is stopped.
  [[nodiscard]] BufferRef take() noexcept;

  [[nodiscard]] bool started() const noexcept { return started_; }
  [[nodiscard]] std::size_t buffer_size() const noexcept { return buffer_size_; }
  [[nodiscard]] std::size_t count() const noexcept { return buffers_.count(); }
  /// The number of buffers not in use.
  [[nodiscard]] std::size_t free_count() const noexcept { return buffers_.free_count(); }

 private:
  void give_back(Buffer& buffer) noexcept override { buffers_.take_back(buffer); }
  std::size_t lay_out(std::size_t range, std::size_t first);

  MemoryRegion* region_;
  std::size_t buffer_size_;
  std::size_t alignment_;
  std::size_t stride_;
  BufferStack buffers_;
  bool started_ = false;
};

}  // namespace offload::memory
