#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace offload::memory {

/// Blocks of plain memory of one size, handed out and taken back, the warmest first. It allocates
/// when none is left and keeps up to `most_kept`: so many in use at once cost no allocation. One
/// thread.
class BlockCache {
 public:
  using Block = std::unique_ptr<std::byte[]>;

  BlockCache(std::size_t block_size, std::size_t most_kept)
      : block_size_(block_size), most_kept_(most_kept) {
    free_.reserve(most_kept);
  }

  [[nodiscard]] std::size_t block_size() const noexcept { return block_size_; }

  /// Of block_size() bytes; what is in it is left over from its last use.
  [[nodiscard]] Block take() {
    if (free_.empty()) return std::make_unique_for_overwrite<std::byte[]>(block_size_);
    Block block = std::move(free_.back());
    free_.pop_back();
    return block;
  }

  void give_back(Block block) {
    if (free_.size() < most_kept_) free_.push_back(std::move(block));
  }

 private:
  std::size_t block_size_;
  std::size_t most_kept_;
  std::vector<Block> free_;
};

}  // namespace offload::memory
