#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "memory/block_cache.hpp"

namespace offload::net {

/// The received bytes of a connection that were not consumed yet, contiguous. It receives into a
/// long block of the thread's cache, which goes back as soon as it is empty; what is left over for
/// longer, a part of a frame, settle()s in a block of about its own size, which grows as the rest
/// comes. So an idle connection holds no memory, and a few bytes hold a few. One thread.
class ReceiveBuffer {
 public:
  /// `block_size`: what is received into, bytes.
  ReceiveBuffer(memory::BlockCache& cache, std::size_t block_size) noexcept
      : cache_(&cache), block_size_(block_size) {}
  ReceiveBuffer& operator=(ReceiveBuffer&&) = delete;
  ~ReceiveBuffer() { clear(); }

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return {memory_.data() + begin_, end_ - begin_};
  }
  /// Bytes of memory that it holds.
  [[nodiscard]] std::size_t held() const noexcept { return memory_.size(); }

  /// Precondition: count <= bytes().size().
  void consume(std::size_t count) noexcept {
    begin_ += count;
    consumed_ += count;
  }
  /// Bytes that were ever consumed.
  [[nodiscard]] std::uint64_t consumed() const noexcept { return consumed_; }

  /// Free room for a receive; empty only if there is no memory. `expected`: bytes of the frame that
  /// bytes() is the front of, where known, else 0.
  [[nodiscard]] std::span<std::byte> room(std::size_t expected) noexcept {
    const std::size_t size = end_ - begin_;
    if (memory_.size() < block_size_ && size <= kShortRest) {
      if (!move_to(block_size_)) return {};
    } else if (begin_ != 0) {
      std::memmove(memory_.data(), memory_.data() + begin_, size);
      end_ -= std::exchange(begin_, 0);
    }
    if (end_ == memory_.size() && !move_to(grown(size, expected))) return {};
    return {memory_.data() + end_, memory_.size() - end_};
  }
  /// Adds the first `count` bytes of room(). Precondition: count <= room().size().
  void append(std::size_t count) noexcept { end_ += count; }

  /// To be called when bytes() is less than a frame, and stays so for now. `expected`: as room()'s.
  void settle(std::size_t expected) noexcept {
    const std::size_t size = end_ - begin_;
    if (size == 0) return clear();
    const std::size_t wanted = size <= kShortRest ? size : grown(size, expected);
    // A rest that is not short stays in the block that it was received into: the next receive may
    // take more than the rest of its frame. Where there is no memory to move, it stays, too.
    const std::size_t most = size <= kShortRest ? 2 * std::max(wanted, kLeast) : 2 * block_size_;
    if (memory_.size() > std::max(most, 2 * wanted)) (void)move_to(wanted);
  }
  void clear() noexcept {
    cache_->give_back(std::exchange(memory_, {}));
    begin_ = end_ = 0;
  }

 private:
  /// A rest up to this long is copied back into the long block to receive behind it; a longer one
  /// receives the rest of its frame where it is.
  static constexpr std::size_t kShortRest = 16 * 1024;
  static constexpr std::size_t kLeast = 64;  ///< not worth a move

  /// Twice as much, or all of the frame if that is not far. So a frame that grows is copied once
  /// more, not again and again, and no more than four times what came is held.
  static std::size_t grown(std::size_t size, std::size_t expected) noexcept {
    return expected > size && expected / 4 <= size ? expected : 2 * size;
  }

  bool move_to(std::size_t size) noexcept {
    memory::MemoryBlock block = cache_->take(size);
    if (!block) return false;
    const auto rest = bytes();
    if (!rest.empty()) std::memcpy(block.data(), rest.data(), rest.size());
    end_ = rest.size();
    begin_ = 0;
    cache_->give_back(std::exchange(memory_, std::move(block)));
    return true;
  }

  memory::BlockCache* cache_;
  std::size_t block_size_;
  memory::MemoryBlock memory_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::uint64_t consumed_ = 0;
};

}  // namespace offload::net
