#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

#include "memory/block_cache.hpp"

namespace offload::net {

/// The received bytes of a connection that were not consumed yet, contiguous. It borrows a block of
/// the thread's cache while it has any, so an idle connection holds no memory. One thread.
class ReceiveBuffer {
 public:
  explicit ReceiveBuffer(memory::BlockCache& cache) noexcept : cache_(&cache) {}
  ReceiveBuffer(const ReceiveBuffer&) = delete;
  ReceiveBuffer& operator=(const ReceiveBuffer&) = delete;
  ~ReceiveBuffer() { clear(); }

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return {memory_.get() + begin_, end_ - begin_};
  }

  /// Precondition: count <= bytes().size().
  void consume(std::size_t count) noexcept { begin_ += count; }

  /// The free room for a receive. It is never empty while bytes() holds less than a whole frame, as
  /// a block is larger than the longest frame.
  [[nodiscard]] std::span<std::byte> room() {
    if (!memory_) memory_ = cache_->take();
    if (begin_ != 0) {
      // Moves the rest, less than a frame, to the front: once a receive, not once a frame.
      std::memmove(memory_.get(), memory_.get() + begin_, end_ - begin_);
      end_ -= std::exchange(begin_, 0);
    }
    return {memory_.get() + end_, cache_->block_size() - end_};
  }
  /// Adds the first `count` bytes of room(). Precondition: count <= room().size().
  void append(std::size_t count) noexcept { end_ += count; }

  /// Returns the block to the cache if no bytes are left.
  void release_if_empty() {
    if (begin_ == end_) clear();
  }
  void clear() {
    if (memory_) cache_->give_back(std::move(memory_));
    begin_ = end_ = 0;
  }

 private:
  memory::BlockCache* cache_;
  memory::BlockCache::Block memory_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace offload::net
