#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace offload::net {

/// What a peer did not take at once, in order. While there is any, its owner reads no more from
/// that peer, so it stays short. Allocates: only for peers that are slow. One thread.
class Backlog {
 public:
  [[nodiscard]] bool empty() const noexcept { return sent_ == bytes_.size(); }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return std::span(bytes_).subspan(sent_);
  }
  void append(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void consume(std::size_t count) {
    sent_ += count;
    if (empty()) clear();
  }
  void clear() {
    bytes_ = {};
    sent_ = 0;
  }

 private:
  std::vector<std::byte> bytes_;
  std::size_t sent_ = 0;
};

}  // namespace offload::net
