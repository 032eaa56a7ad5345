#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "memory/region.hpp"
#include "memory/region_blob.hpp"
#include "memory/registrar.hpp"
#include "tasks/memory/buffer.hpp"

namespace offload::memory {

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

/// Exports a started region for a peer: addresses and keys by which `registrar`'s network card
/// finds its ranges, valid until the region stops. `granted`: remote flags only. The card itself
/// enforces the region's access, not `granted`. Throws Error: bad_state, not_permitted,
/// invalid_value, not_found for a registrar that is not the region's.
std::vector<std::byte> export_remote(const MemoryRegion& region, const Registrar& registrar,
                                     Access granted);

/// The ranges that a peer exported. Throws Error: as RegionBlob::decode; bad_message for a blob for
/// a process.
RemoteRegion import_remote(std::span<const std::byte> blob);

/// The ranges at Location::peer, for a MemoryRegion whose buffers describe pieces of the peer's
/// memory: the remote side of RDMA tasks. No device of this machine can be registered with it.
std::vector<Range> peer_ranges(const RemoteRegion& remote);
/// Returns the whole range of such a buffer.
inline RemoteRange remote_range_of(const Buffer& buffer) noexcept {
  const Range& range = buffer.memory();
  return {reinterpret_cast<std::uint64_t>(range.address), range.length, range.key};
}

}  // namespace offload::memory
