#pragma once

#include <algorithm>
#include <cstddef>

#include "tasks/memory/buffer.hpp"

namespace offload::copy {

/// A contiguous part of a copy.
struct Piece {
  std::byte* to;
  std::byte* from;
  std::size_t length;  ///< bytes
  const memory::Range* to_range = nullptr;
  const memory::Range* from_range = nullptr;
};

/// Goes through the data of a source and the tailrooms of a destination, both lists, side by side.
/// Neither may change meanwhile, and the destination has room for all. Allocates nothing.
class PieceCursor {
 public:
  PieceCursor() = default;
  PieceCursor(const memory::Buffer& source, const memory::Buffer& destination) noexcept
      : source_(&source), destination_(&destination) {}

  /// Returns whether it was set to a copy.
  [[nodiscard]] bool is_set() const noexcept { return source_ != nullptr; }

  /// The next piece, of `most` bytes at most; of no bytes at the end of either list.
  Piece next(std::size_t most) noexcept {
    while (source_ != nullptr && read_ == source_->data().size()) {
      source_ = source_->next();
      read_ = 0;
    }
    while (destination_ != nullptr && written_ == destination_->tailroom().size()) {
      destination_ = destination_->next();
      written_ = 0;
    }
    if (source_ == nullptr || destination_ == nullptr) return {nullptr, nullptr, 0};
    const auto from = source_->data().subspan(read_);
    const auto to = destination_->tailroom().subspan(written_);
    const std::size_t length = std::min({most, from.size(), to.size()});
    read_ += length;
    written_ += length;
    return {to.data(), from.data(), length, &destination_->memory(), &source_->memory()};
  }

 private:
  const memory::Buffer* source_ = nullptr;
  const memory::Buffer* destination_ = nullptr;
  std::size_t read_ = 0;     ///< of the source's element
  std::size_t written_ = 0;  ///< of the destination's element
};

}  // namespace offload::copy
