#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

#include "memory/block_cache.hpp"

namespace offload::net {

/// The bytes of a connection that were received and not yet taken, in one piece. It borrows its
/// memory from the thread's cache while there are any: a connection that is quiet holds none. One
/// thread.
class ReceiveBuffer {
 public:
  explicit ReceiveBuffer(memory::BlockCache& cache) noexcept : cache_(&cache) {}
  ReceiveBuffer(const ReceiveBuffer&) = delete;
  ReceiveBuffer& operator=(const ReceiveBuffer&) = delete;
  ~ReceiveBuffer() { clear(); }

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return {memory_.get() + begin_, end_ - begin_};
  }

  void consume(std::size_t count) noexcept { begin_ += count; }

  /// Room for more. A block holds more than the longest frame, so a frame that is not
  /// whole always leaves some.
  [[nodiscard]] std::span<std::byte> room() {
    if (!memory_) memory_ = cache_->take();
    if (begin_ != 0) {
      // What is left is less than a frame: it is moved once per buffer, not per frame.
      std::memmove(memory_.get(), memory_.get() + begin_, end_ - begin_);
      end_ -= std::exchange(begin_, 0);
    }
    return {memory_.get() + end_, cache_->block_size() - end_};
  }
  void append(std::size_t count) noexcept { end_ += count; }

  /// Gives the memory back if nothing is in it.
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
