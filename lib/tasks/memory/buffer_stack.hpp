#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "tasks/memory/buffer.hpp"

namespace offload::memory {

/// The buffers of an inventory or a pool: an array of fixed size, with a stack of those that are
/// free. One thread.
class BufferStack {
 public:
  /// `owner` gets the buffers back. Throws Error: invalid_value for a count of 0, no_memory.
  BufferStack(BufferOwner& owner, std::size_t count)
      : buffers_(make_buffers(count)), count_(count) {
    // Backwards, so that the first buffer is on top.
    for (std::size_t i = count; i-- > 0;) {
      buffers_[i].owner_ = &owner;
      take_back(buffers_[i]);
    }
  }
  BufferStack& operator=(BufferStack&&) = delete;
  /// Leaks the array if buffers are still in use, as their references will be dropped later.
  ~BufferStack() {
    if (out() == 0) return;
    for (std::size_t i = 0; i < count_; ++i) buffers_[i].owner_ = nullptr;
    static_cast<void>(buffers_.release());
  }

  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] std::size_t free_count() const noexcept { return free_count_; }
  [[nodiscard]] std::size_t out() const noexcept { return count_ - free_count_; }

  [[nodiscard]] Buffer& operator[](std::size_t index) noexcept { return buffers_[index]; }

  /// Makes `buffer` describe `dataroom`, without data.
  static void place(Buffer& buffer, MemoryRegion& region, std::size_t range,
                    std::span<std::byte> dataroom) noexcept {
    buffer.region_ = &region;
    buffer.range_ = range;
    buffer.address_ = dataroom.data();
    buffer.length_ = dataroom.size();
    buffer.reset();
  }

  /// The next free buffer, in the place it had before; null if all are in use.
  [[nodiscard]] BufferRef lend() noexcept {
    if (free_ == nullptr) return {};
    Buffer* const buffer = std::exchange(free_, free_->next_);
    buffer->next_ = nullptr;
    buffer->references_ = 1;
    --free_count_;
    return BufferRef(buffer);
  }
  /// Takes back a buffer that has no references.
  void take_back(Buffer& buffer) noexcept {
    buffer.next_ = std::exchange(free_, &buffer);
    ++free_count_;
  }

 private:
  static std::unique_ptr<Buffer[]> make_buffers(std::size_t count) {
    if (count == 0)
      throw core::Error(core::ErrorCode::invalid_value, "at least one buffer is needed");
    constexpr std::size_t kMost = std::numeric_limits<std::ptrdiff_t>::max() / sizeof(Buffer);
    std::unique_ptr<Buffer[]> buffers(count <= kMost ? new (std::nothrow) Buffer[count] : nullptr);
    if (!buffers) {
      throw core::Error(core::ErrorCode::no_memory,
                        "cannot allocate " + std::to_string(count) + " buffers");
    }
    return buffers;
  }

  std::unique_ptr<Buffer[]> buffers_;
  std::size_t count_;
  std::size_t free_count_ = 0;
  Buffer* free_ = nullptr;
};

}  // namespace offload::memory
