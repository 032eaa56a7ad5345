#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "memory/access.hpp"
#include "memory/range.hpp"
#include "memory/remote_region.hpp"
#include "protocol/envelope.hpp"

/// A region as it is told to others: a protocol::Envelope, in which is, big endian,
///
///   audience u8 | access u32 | ranges u16 | of each, by audience:
///     process: kind of descriptor u8 | offset u64 | length u64
///     rdma:    address u64 | length u64 | key u32
namespace offload::memory {

inline constexpr std::size_t kMaxRegionBlob =
    protocol::kEnvelopeHeader + (1 + 4 + 2) + kMaxRanges * (8 + 8 + 4) + protocol::kEnvelopeTrailer;
inline constexpr protocol::Envelope kRegionEnvelope{"description of a memory region",
                                                    0x4f46'4d52,  // "OFMR"
                                                    1, kMaxRegionBlob};

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
