#pragma once

#include <cstddef>

#include "memory/buffer.hpp"
#include "memory/buffer_stack.hpp"
#include "memory/region.hpp"

namespace offload::memory {

/// A fixed number of equal buffers, laid out over a region from its front, the last that was given
/// back first. Nothing else should use that memory. While started it keeps the region from being
/// stopped. One thread, the buffers included; nothing is allocated after the constructor, and a
/// take costs no look into the region.
class BufferPool final : private BufferOwner {
 public:
  static constexpr std::size_t kCacheLine = 64;

  /// `buffer_size`: bytes; `alignment` of each buffer's first byte: a power of two. The region
  /// outlives the pool. Throws Error: invalid_value, no_memory.
  BufferPool(MemoryRegion& region, std::size_t buffer_size, std::size_t count,
             std::size_t alignment = kCacheLine);
  /// Logs if buffers are still out; the region cannot be stopped any more.
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  /// Throws Error: bad_state, if the region is stopped too; full if the region has no room for so
  /// many: a buffer lies in one range.
  void start();
  /// Throws Error: bad_state; in_use while buffers are out, and it stays started.
  void stop();

  /// A buffer without data, all of it tailroom; null if all are out, or the pool is stopped.
  [[nodiscard]] BufferRef take() noexcept;

  [[nodiscard]] bool started() const noexcept { return started_; }
  [[nodiscard]] std::size_t buffer_size() const noexcept { return buffer_size_; }
  [[nodiscard]] std::size_t count() const noexcept { return buffers_.count(); }
  /// How many are free.
  [[nodiscard]] std::size_t free_count() const noexcept { return buffers_.free_count(); }

 private:
  void give_back(Buffer& buffer) noexcept override;
  std::size_t lay_out(std::size_t range, std::size_t first);

  MemoryRegion* region_;
  std::size_t buffer_size_;
  std::size_t alignment_;
  std::size_t stride_;
  BufferStack buffers_;
  bool started_ = false;
};

}  // namespace offload::memory
