#pragma once

#include <cstddef>
#include <span>

#include "core/error.hpp"
#include "memory/buffer.hpp"
#include "memory/buffer_stack.hpp"
#include "memory/region.hpp"

namespace offload::memory {

/// A buffer, or why there is none.
struct Taken {
  BufferRef buffer;  ///< null if there is none
  /// Then: empty (all are out), bad_state (inventory or region is stopped), invalid_value (not in
  /// the region, or of no bytes).
  core::ErrorCode error = core::ErrorCode::unexpected;
};

/// A fixed number of buffers for any part of any region. Each that is out keeps its region from
/// being stopped. One thread, the buffers included; nothing is allocated after the constructor.
class BufferInventory final : private BufferOwner {
 public:
  /// Throws Error: invalid_value for a count of 0, no_memory.
  explicit BufferInventory(std::size_t count) : buffers_(*this, count) {}
  /// Logs if buffers are still out; their regions cannot be stopped any more.
  ~BufferInventory();
  BufferInventory(const BufferInventory&) = delete;
  BufferInventory& operator=(const BufferInventory&) = delete;

  /// Throws Error (bad_state).
  void start();
  /// Throws Error: bad_state; in_use while buffers are out, and it stays started.
  void stop();

  /// A buffer of `dataroom` without data: a destination.
  [[nodiscard]] Taken take(MemoryRegion& region, std::span<std::byte> dataroom) noexcept;
  /// A buffer of `data`, all of it data: a source.
  [[nodiscard]] Taken take_by_data(MemoryRegion& region, std::span<std::byte> data) noexcept;
  /// One more buffer of the same dataroom and data, of any owner, in no list.
  [[nodiscard]] Taken duplicate(const Buffer& buffer) noexcept;

  [[nodiscard]] bool started() const noexcept { return started_; }
  [[nodiscard]] std::size_t count() const noexcept { return buffers_.count(); }
  /// How many are free.
  [[nodiscard]] std::size_t free_count() const noexcept { return buffers_.free_count(); }

 private:
  void give_back(Buffer& buffer) noexcept override;

  BufferStack buffers_;
  bool started_ = false;
};

}  // namespace offload::memory
