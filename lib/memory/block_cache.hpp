#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace offload::memory {

/// A piece of plain memory and its size.
class MemoryBlock {
 public:
  MemoryBlock() noexcept = default;
  MemoryBlock(std::unique_ptr<std::byte[]> memory, std::size_t size) noexcept
      : memory_(std::move(memory)), size_(memory_ ? size : 0) {}
  MemoryBlock(MemoryBlock&& other) noexcept
      : memory_(std::move(other.memory_)), size_(std::exchange(other.size_, 0)) {}
  MemoryBlock& operator=(MemoryBlock&& other) noexcept {
    memory_ = std::move(other.memory_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  [[nodiscard]] explicit operator bool() const noexcept { return memory_ != nullptr; }
  [[nodiscard]] std::byte* data() const noexcept { return memory_.get(); }
  /// Bytes.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::size_t size_ = 0;
};

/// Free lists of blocks of plain memory, last in, first out, so that the next block is the one most
/// likely in the processor's cache. take() allocates only where no block that fits is free. Short
/// blocks have powers of two for a size, and 16 of each are kept; of long ones up to
/// `most_kept` bytes. One thread.
class BlockCache {
 public:
  explicit BlockCache(std::size_t most_kept) : most_kept_(most_kept) {
    for (auto& list : short_) list.reserve(kKeptOfASize);
    long_.reserve(kKeptLong);
    for (std::size_t size = kShortest; size <= kLongestReady; size *= 2) {
      std::array<MemoryBlock, kReady> ready;
      for (MemoryBlock& block : ready) block = take(size);
      for (MemoryBlock& block : ready) give_back(std::move(block));
    }
  }

  /// A block of at least `size` bytes, which are not initialised; empty if there is no memory. It
  /// is no longer than a quarter more, or twice that if it is short, unless a longer one is free.
  [[nodiscard]] MemoryBlock take(std::size_t size) noexcept {
    const std::size_t rounded = rounded_up(size);
    MemoryBlock block = take_free(rounded);
    if (!block)
      block = {std::unique_ptr<std::byte[]>(new (std::nothrow) std::byte[rounded]), rounded};
    lent_ += block.size();
    return block;
  }

  /// Takes a block of this cache back; frees it if enough are free already. Ignores an empty one.
  void give_back(MemoryBlock block) noexcept {
    if (!block) return;
    lent_ -= block.size();
    if (block.size() <= kLongestShort) {
      auto& list = list_of(block.size());
      if (list.size() < kKeptOfASize) list.push_back(std::move(block));
    } else if (long_.size() < kKeptLong && kept_ + block.size() <= most_kept_) {
      kept_ += block.size();
      long_.push_back(std::move(block));
    }
  }

  /// Bytes of all blocks that are out.
  [[nodiscard]] std::size_t lent() const noexcept { return lent_; }

 private:
  using List = std::vector<MemoryBlock>;  // with room for all that it keeps: nothing allocates

  static constexpr std::size_t kShortest = 64;
  static constexpr std::size_t kLongestShort = 64 * 1024;
  static constexpr std::size_t kKeptOfASize = 16;
  static constexpr std::size_t kKeptLong = 64;  ///< and most_kept bytes
  /// So many of each size up to that are there from the beginning: of which sizes a thread needs
  /// some is chance, and its first need would come late.
  static constexpr std::size_t kReady = 4;
  static constexpr std::size_t kLongestReady = 8 * 1024;
  /// A free block is no reason to hold so many times the memory that is needed.
  static constexpr std::size_t kMostSpare = 64;

  static std::size_t rounded_up(std::size_t size) noexcept {
    if (size <= kLongestShort) return std::bit_ceil(std::max(size, kShortest));
    const std::size_t step = std::bit_ceil(size) / 8;
    return (size + step - 1) / step * step;
  }

  List& list_of(std::size_t size) noexcept {
    return short_[static_cast<std::size_t>(std::countr_zero(size) - std::countr_zero(kShortest))];
  }

  MemoryBlock take_free(std::size_t size) noexcept {
    List& list = size <= kLongestShort ? list_of(size) : long_;
    const auto found = std::find_if(list.rbegin(), list.rend(), [&](const MemoryBlock& block) {
      return block.size() >= size && block.size() / kMostSpare <= size;
    });
    if (found == list.rend()) return {};
    std::swap(*found, list.back());
    MemoryBlock block = std::move(list.back());
    list.pop_back();
    if (size > kLongestShort) kept_ -= block.size();
    return block;
  }

  std::size_t most_kept_;
  std::array<List, 11> short_;  ///< by size, from kShortest to kLongestShort
  List long_;
  std::size_t kept_ = 0;  ///< bytes of long_
  std::size_t lent_ = 0;
};

}  // namespace offload::memory
