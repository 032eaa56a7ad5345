#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "memory/block_cache.hpp"

namespace offload::net {

/// The output that a connection's socket did not accept, in order, in blocks of the thread's cache
/// that go back one by one as they are sent. Its owner reads no more from a peer that has a
/// backlog, which bounds it. One thread.
class Backlog {
 public:
  explicit Backlog(memory::BlockCache& cache) noexcept : cache_(&cache) {}
  Backlog& operator=(Backlog&&) = delete;
  ~Backlog() { clear(); }

  [[nodiscard]] bool empty() const noexcept { return blocks_.empty(); }
  /// Bytes of memory that it holds.
  [[nodiscard]] std::size_t held() const noexcept { return held_; }
  /// Bytes that were ever appended; and of these, those that were consumed.
  [[nodiscard]] std::uint64_t appended() const noexcept { return appended_; }
  [[nodiscard]] std::uint64_t consumed() const noexcept { return consumed_; }

  /// Returns the bytes to send first: not all, but at least one unless it is empty.
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    if (empty()) return {};
    const std::size_t end = blocks_.size() == 1 ? end_ : blocks_.front().used;
    return {blocks_.front().block.data() + begin_, end - begin_};
  }

  /// False: there is no memory, and a part of it may be lost.
  [[nodiscard]] bool append(std::span<const std::byte> bytes) noexcept {
    if (!empty()) bytes = bytes.subspan(fill(bytes));
    if (bytes.empty()) return true;
    // The first block has the size of the remainder; many short pieces make no row of short blocks.
    if (!has_place()) return false;
    auto block = cache_->take(std::max(bytes.size(), std::min(held_, kLongestSpare)));
    if (!block) return false;
    held_ += block.size();
    if (!empty()) blocks_.back().used = end_;
    blocks_.push_back({std::move(block), 0});
    end_ = 0;
    fill(bytes);
    return true;
  }
  /// Precondition: count <= bytes().size().
  void consume(std::size_t count) noexcept {
    begin_ += count;
    consumed_ += count;
    if (!bytes().empty()) return;
    begin_ = 0;
    held_ -= blocks_.front().block.size();
    cache_->give_back(std::move(blocks_.front().block));
    blocks_.erase(blocks_.begin());  // there are few: each is as long as all before it, or long
  }
  void clear() noexcept {
    for (Piece& piece : blocks_) cache_->give_back(std::move(piece.block));
    blocks_.clear();
    begin_ = end_ = held_ = 0;
    consumed_ = appended_;
  }

 private:
  static constexpr std::size_t kLongestSpare = 256 * 1024;

  struct Piece {
    memory::MemoryBlock block;
    std::size_t used;  ///< bytes; of the last one: end_
  };

  /// Returns whether there is memory for another block in the row.
  bool has_place() noexcept {
    try {
      if (blocks_.size() == blocks_.capacity()) blocks_.reserve(2 * blocks_.size() + 2);
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  /// Puts as many as fit into the last block; how many these were.
  std::size_t fill(std::span<const std::byte> bytes) noexcept {
    const memory::MemoryBlock& last = blocks_.back().block;
    const std::size_t count = std::min(bytes.size(), last.size() - end_);
    std::memcpy(last.data() + end_, bytes.data(), count);
    end_ += count;
    appended_ += count;
    return count;
  }

  memory::BlockCache* cache_;
  std::vector<Piece> blocks_;
  std::size_t begin_ = 0;  ///< of the unsent bytes, in the first
  std::size_t end_ = 0;    ///< of it, in the last
  std::size_t held_ = 0;
  std::uint64_t appended_ = 0;
  std::uint64_t consumed_ = 0;
};

}  // namespace offload::net
