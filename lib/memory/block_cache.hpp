#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace offload::memory {

/// A free list of equal blocks of plain memory, last in, first out, so that the next block is the
/// one most likely in the processor's cache. It keeps up to `most_kept` free blocks; take()
/// allocates only when there is none. One thread.
class BlockCache {
 public:
  using Block = std::unique_ptr<std::byte[]>;

  BlockCache(std::size_t block_size, std::size_t most_kept)
      : block_size_(block_size), most_kept_(most_kept) {
    free_.reserve(most_kept);
  }

  [[nodiscard]] std::size_t block_size() const noexcept { return block_size_; }

  /// A block of block_size() bytes. Its content is not initialised.
  [[nodiscard]] Block take() {
    if (free_.empty()) return std::make_unique_for_overwrite<std::byte[]>(block_size_);
    Block block = std::move(free_.back());
    free_.pop_back();
    return block;
  }

  /// Takes a block back; frees it if most_kept are free already.
  void give_back(Block block) {
    if (free_.size() < most_kept_) free_.push_back(std::move(block));
  }

 private:
  std::size_t block_size_;
  std::size_t most_kept_;
  std::vector<Block> free_;
};

}  // namespace offload::memory
