#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "channel/slot_queue.hpp"
#include "kernels/slot_batch.hpp"

namespace offload::channel {

/// Gathers short messages for one slot, in the cache. One thread.
class BatchBuffer {
 public:
  /// Longer messages gain nothing from a batch, and are sent alone.
  static constexpr std::uint32_t kLongest = 1024;

  /// `longest_response`: a response has at most this number of bytes, or the length of its request
  /// if that is longer.
  explicit BatchBuffer(std::uint32_t longest_response = kernels::kLongestDigest) noexcept
      : longest_response_(longest_response) {}

  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] std::uint32_t count() const noexcept { return count_; }

  /// Returns whether a message of `length` fits, if requests and responses have at most `limit`
  /// bytes each. A single message of up to kLongest always fits.
  [[nodiscard]] bool fits(std::uint32_t length, std::uint32_t limit) const noexcept {
    return count_ == 0 || (count_ < kernels::kMaxBatchCount && room_ + room_of(length) <= limit);
  }
  /// Adds a message. Precondition: fits(), length <= kLongest.
  [[gnu::always_inline]] void add(std::span<const std::byte> message) noexcept {
    const auto length = static_cast<std::uint32_t>(message.size());
    copy(payloads() + size_, message.data(), length);
    lengths_[count_++] = static_cast<std::uint16_t>(length);
    size_ += length;
    room_ += room_of(length);
  }

  /// Returns all messages as the content of a slot; valid until the next add() after clear().
  [[nodiscard]] Content content() noexcept {
    if (count_ == 1) return {{payloads(), size_}, 0};
    const std::uint32_t table = kernels::batch_table(count_);
    std::memcpy(payloads() - table, lengths_.data(), table);
    return {{payloads() - table, table + size_}, count_};
  }
  void clear() noexcept { count_ = size_ = room_ = 0; }

 private:
  /// The table is written in front of the payloads when their number is known.
  static constexpr std::uint32_t kTable = kernels::batch_table(kernels::kMaxBatchCount);

  [[nodiscard]] std::uint32_t room_of(std::uint32_t length) const noexcept {
    return kernels::batch_room(length, longest_response_);
  }
  [[nodiscard]] std::byte* payloads() noexcept { return bytes_.data() + kTable; }

  /// Copies inline, for varying lengths: a call of memcpy takes longer than most copies. The last
  /// block overlaps the previous one.
  static void copy(std::byte* to, const std::byte* from, std::size_t length) noexcept {
    if (length < 16) {
      for (std::size_t i = 0; i < length; ++i) to[i] = from[i];
    } else if (length < 32) {
      copy_blocks<16>(to, from, length);
    } else {
      copy_blocks<32>(to, from, length);
    }
  }
  /// Precondition: length >= kBlock.
  template <std::size_t kBlock>
  static void copy_blocks(std::byte* to, const std::byte* from, std::size_t length) noexcept {
    std::byte* const last = to + (length - kBlock);
    const std::byte* const last_from = from + (length - kBlock);
    for (; to < last; to += kBlock, from += kBlock) std::memcpy(to, from, kBlock);
    std::memcpy(last, last_from, kBlock);
  }

  std::uint32_t longest_response_;
  std::uint32_t count_ = 0;
  std::uint32_t size_ = 0;  ///< of the payloads, bytes
  std::uint32_t room_ = 0;  ///< the most that they need, bytes
  std::array<std::uint16_t, kernels::kMaxBatchCount> lengths_;
  std::array<std::byte, kTable + kernels::kMaxBatchContent> bytes_;
};

}  // namespace offload::channel
