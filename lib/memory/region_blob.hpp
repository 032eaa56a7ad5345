#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "memory/access.hpp"
#include "memory/range.hpp"
#include "memory/remote_region.hpp"

/// A region as it is told to others: bytes that describe themselves. Big endian:
///
///   magic u32 | version u16 | length of the whole u32 | body | CRC-32C of all before it u32
///
/// in every version, and in this one the body is
///
///   audience u8 | access u32 | ranges u16 | of each, by audience:
///     process: kind of descriptor u8 | offset u64 | length u64
///     rdma:    address u64 | length u64 | key u32
namespace offload::memory {

inline constexpr std::uint32_t kRegionBlobMagic = 0x4f46'4d52;  // "OFMR"
inline constexpr std::uint16_t kRegionBlobVersion = 1;

/// What is around the body, bytes.
inline constexpr std::size_t kRegionBlobHeader = 4 + 2 + 4;
inline constexpr std::size_t kRegionBlobTrailer = 4;

/// No blob is longer: a longer one is refused unread.
inline constexpr std::size_t kMaxRegionBlob =
    kRegionBlobHeader + (1 + 4 + 2) + kMaxRanges * (8 + 8 + 4) + kRegionBlobTrailer;

/// A range that another process is to map. Its descriptor travels beside the blob.
struct PassedRange {
  DescriptorKind kind = DescriptorKind::memfd;
  std::uint64_t offset = 0;  ///< in what the descriptor is of, bytes; a memfd is passed whole: 0
  std::uint64_t length = 0;  ///< bytes

  friend bool operator==(const PassedRange&, const PassedRange&) = default;
};

struct RegionBlob {
  /// What the receiver may do: all that MemoryRegion knows for a process, remote flags for a peer.
  Access access = Access::none;
  /// For another process of this machine, or for a peer over the network.
  std::variant<std::vector<PassedRange>, std::vector<RemoteRange>> ranges;

  [[nodiscard]] std::vector<std::byte> encode() const;

  /// Throws Error: unsupported_version for a version to come, bad_message, with the reason, for
  /// whatever else encode() does not make.
  static RegionBlob decode(std::span<const std::byte> bytes);

  friend bool operator==(const RegionBlob&, const RegionBlob&) = default;
};

}  // namespace offload::memory
