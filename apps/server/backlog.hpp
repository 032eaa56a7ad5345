#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace offload::server {

/// What a client did not take at once. While there is any, no more is read from that client, so it
/// holds at most the responses to what was in flight. Allocates: only for clients that are slow.
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

}  // namespace offload::server
