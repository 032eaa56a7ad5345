#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "memory/access.hpp"

namespace offload::memory {

/// A memory range of a peer, as a network card addresses it. Nothing here dereferences the address.
struct RemoteRange {
  std::uint64_t address = 0;
  std::uint64_t length = 0;  ///< bytes
  std::uint32_t key = 0;     ///< rkey

  friend bool operator==(const RemoteRange&, const RemoteRange&) = default;
};

/// The memory that a peer lets this process access over the network. Immutable, so for any thread.
class RemoteRegion {
 public:
  RemoteRegion(Access access, std::vector<RemoteRange> ranges)
      : access_(access), ranges_(std::move(ranges)) {}

  /// The rights that the peer granted: remote flags only.
  [[nodiscard]] Access access() const noexcept { return access_; }
  [[nodiscard]] const std::vector<RemoteRange>& ranges() const noexcept { return ranges_; }

  /// The range that contains [address, address + length); null if none does.
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

/// A piece of one range of a RemoteRegion, one byte or more: the remote side of an RDMA read, write
/// or atomic. An immutable value. Any thread.
class RemoteBuffer {
 public:
  /// A piece of `region`; nothing if `length` is 0 or no range contains all bytes.
  [[nodiscard]] static std::optional<RemoteBuffer> of(const RemoteRegion& region,
                                                      std::uint64_t address,
                                                      std::uint64_t length) noexcept {
    const RemoteRange* const range = region.find(address, length);
    if (range == nullptr || length == 0) return std::nullopt;
    return RemoteBuffer(address, length, range->key, region.access());
  }

  /// `length` bytes from `offset` on; nothing if `length` is 0 or the bytes are not all in this
  /// piece.
  [[nodiscard]] std::optional<RemoteBuffer> slice(std::uint64_t offset,
                                                  std::uint64_t length) const noexcept {
    if (length == 0 || offset > length_ || length > length_ - offset) return std::nullopt;
    return RemoteBuffer(address_ + offset, length, key_, access_);
  }

  [[nodiscard]] std::uint64_t address() const noexcept { return address_; }
  [[nodiscard]] std::uint64_t length() const noexcept { return length_; }  ///< bytes
  [[nodiscard]] std::uint32_t key() const noexcept { return key_; }
  /// The rights that the peer granted, to be checked before the card refuses.
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
