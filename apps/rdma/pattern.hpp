#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace offload::rdma_tool {

/// The key that the bytes of a message are made from, so that both ends can make them. Messages of
/// consecutive iterations differ in their last byte, which is never 0, so that an end that polls
/// for a write sees it change.
struct PatternKey {
  std::uint64_t seed = 0;
  std::uint32_t connection = 0;
  bool from_requester = true;
  std::uint64_t iteration = 0;
};

struct Mismatch {
  std::size_t offset;
  std::uint8_t expected;
  std::uint8_t got;
};

/// The last byte of an iteration's message.
constexpr std::uint8_t last_byte(std::uint64_t iteration) noexcept {
  return static_cast<std::uint8_t>(iteration % 255 + 1);
}

/// Makes a message of at least one byte.
void fill(std::span<std::byte> message, const PatternKey& key) noexcept;
/// The first byte that differs from what fill() makes.
std::optional<Mismatch> find_mismatch(std::span<const std::byte> message,
                                      const PatternKey& key) noexcept;

}  // namespace offload::rdma_tool
