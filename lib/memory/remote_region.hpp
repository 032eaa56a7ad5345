#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "memory/access.hpp"

namespace offload::memory {

/// Memory of a peer, as a network card addresses it. Plain numbers: nothing here dereferences them.
struct RemoteRange {
  std::uint64_t address = 0;
  std::uint64_t length = 0;  ///< bytes
  std::uint32_t key = 0;

  friend bool operator==(const RemoteRange&, const RemoteRange&) = default;
};

/// What a peer lets this process do with its memory over the network. Any thread: nothing changes.
class RemoteRegion {
 public:
  RemoteRegion(Access access, std::vector<RemoteRange> ranges)
      : access_(access), ranges_(std::move(ranges)) {}

  /// Of the remote flags.
  [[nodiscard]] Access access() const noexcept { return access_; }
  [[nodiscard]] const std::vector<RemoteRange>& ranges() const noexcept { return ranges_; }

  /// The range, and so the key, that [address, address + length) lies in wholly; null if none.
  [[nodiscard]] const RemoteRange* find(std::uint64_t address,
                                        std::uint64_t length) const noexcept {
    for (const RemoteRange& range : ranges_) {
      if (address >= range.address && length <= range.length &&
          address - range.address <= range.length - length) {
        return &range;
      }
    }
    return nullptr;
  }

 private:
  Access access_;
  std::vector<RemoteRange> ranges_;
};

/// A part of a peer's memory, one byte or more, that lies wholly in one range of what the peer lets
/// this process reach: what the far end of a one-sided transfer is named by. A value; nothing here
/// is dereferenced. Any thread.
class RemoteBuffer {
 public:
  /// Nothing if `length` is 0 or the bytes are not all in one range of `region`.
  [[nodiscard]] static std::optional<RemoteBuffer> of(const RemoteRegion& region,
                                                      std::uint64_t address,
                                                      std::uint64_t length) noexcept {
    const RemoteRange* const range = region.find(address, length);
    if (range == nullptr || length == 0) return std::nullopt;
    return RemoteBuffer(address, length, range->key, region.access());
  }

  /// `length` bytes from `offset` on; nothing if it is 0 or they are not all in this one.
  [[nodiscard]] std::optional<RemoteBuffer> slice(std::uint64_t offset,
                                                  std::uint64_t length) const noexcept {
    if (length == 0 || offset > length_ || length > length_ - offset) return std::nullopt;
    return RemoteBuffer(address_ + offset, length, key_, access_);
  }

  [[nodiscard]] std::uint64_t address() const noexcept { return address_; }
  [[nodiscard]] std::uint64_t length() const noexcept { return length_; }  ///< bytes
  [[nodiscard]] std::uint32_t key() const noexcept { return key_; }
  /// What the peer has granted, of the remote flags: to be looked at before a card refuses.
  [[nodiscard]] Access access() const noexcept { return access_; }

  friend bool operator==(const RemoteBuffer&, const RemoteBuffer&) = default;

 private:
  RemoteBuffer(std::uint64_t address, std::uint64_t length, std::uint32_t key,
               Access access) noexcept
      : address_(address), length_(length), key_(key), access_(access) {}

  std::uint64_t address_;
  std::uint64_t length_;
  std::uint32_t key_;
  Access access_;
};

}  // namespace offload::memory
