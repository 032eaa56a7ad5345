#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace offload::clients {

/// The received bytes of a connection, contiguous. It grows by the bytes that arrive, not by the
/// length that a header announces: it holds less than twice the longest frame and one receive. One
/// thread.
class Inbox {
 public:
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return {memory_.data() + begin_, end_ - begin_};
  }
  /// Precondition: count <= bytes().size().
  void consume(std::size_t count) noexcept { begin_ += count; }

  /// Free room for a receive, never empty. The result of bytes() becomes invalid.
  std::span<std::byte> room() {
    const std::size_t size = end_ - begin_;
    if (size == 0 && memory_.size() > kReceive) memory_ = std::vector<std::byte>();
    if (begin_ != 0 && size != 0) std::memmove(memory_.data(), memory_.data() + begin_, size);
    end_ -= std::exchange(begin_, 0);
    if (end_ == memory_.size()) memory_.resize(std::max(kReceive, 2 * size));
    return std::span(memory_).subspan(end_);
  }
  /// Adds the first `count` bytes of room().
  void append(std::size_t count) noexcept { end_ += count; }
  void clear() noexcept { begin_ = end_ = 0; }

 private:
  static constexpr std::size_t kReceive = std::size_t{64} << 10;

  std::vector<std::byte> memory_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace offload::clients
