#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace offload::net {

/// The output that a connection's socket did not accept, in order. Its owner reads no more from a
/// peer that has a backlog, which bounds it. It allocates, but only for slow peers. One thread.
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
