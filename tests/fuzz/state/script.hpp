#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace offload::fuzz {

/// libFuzzer's input, read as the steps of a script. Past the end all bytes are 0.
class Script {
 public:
  Script(const std::uint8_t* data, std::size_t size) : rest_(data, size) {}

  [[nodiscard]] bool ends() const noexcept { return rest_.empty(); }
  std::uint8_t byte() noexcept {
    if (rest_.empty()) return 0;
    const std::uint8_t value = rest_.front();
    rest_ = rest_.subspan(1);
    return value;
  }
  /// Reads a little-endian number.
  std::uint32_t two_bytes() noexcept {
    const std::uint32_t low = byte();
    return low | static_cast<std::uint32_t>(byte()) << 8U;
  }
  std::span<const std::byte> bytes(std::size_t count) noexcept {
    const auto taken = rest_.first(std::min(count, rest_.size()));
    rest_ = rest_.subspan(taken.size());
    return std::as_bytes(taken);
  }

 private:
  std::span<const std::uint8_t> rest_;
};

}  // namespace offload::fuzz
