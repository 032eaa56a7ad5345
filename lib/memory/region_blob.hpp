#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "memory/access.hpp"
#include "memory/range.hpp"
#include "protocol/envelope.hpp"

/// The byte format of an exported region: a protocol::Envelope with this body, big endian:
///
///   audience u8 | access u32 | count of ranges u16 | for each range, by audience:
///     process: kind of descriptor u8 | offset u64 | length u64
///     rdma:    address u64 | length u64 | key u32
namespace offload::memory {

inline constexpr std::size_t kMaxRegionBlob =
    protocol::kEnvelopeHeader + (1 + 4 + 2) + kMaxRanges * (8 + 8 + 4) + protocol::kEnvelopeTrailer;
inline constexpr protocol::Envelope kRegionEnvelope{"description of a memory region",
                                                    0x4f46'4d52,  // "OFMR"
                                                    1, kMaxRegionBlob};

/// A range for another process to map. Its descriptor is passed beside the blob.
struct PassedRange {
  DescriptorKind kind = DescriptorKind::memfd;
  std::uint64_t offset = 0;  ///< in the file, bytes; 0 for a memfd, which is passed whole
  std::uint64_t length = 0;  ///< bytes

  friend bool operator==(const PassedRange&, const PassedRange&) = default;
};

/// A memory range of a peer, as a network card addresses it. Nothing here dereferences the address.
struct RemoteRange {
  std::uint64_t address = 0;
  std::uint64_t length = 0;  ///< bytes
  std::uint32_t key = 0;     ///< rkey

  friend bool operator==(const RemoteRange&, const RemoteRange&) = default;
};

/// The content of a blob.
struct RegionBlob {
  /// The rights of the receiver: any for a process, remote flags for a peer.
  Access access = Access::none;
  /// PassedRange for a process of this machine, RemoteRange for a peer over the network.
  std::variant<std::vector<PassedRange>, std::vector<RemoteRange>> ranges;

  [[nodiscard]] std::vector<std::byte> encode() const;

  /// Checks every field. Throws Error: unsupported_version for a newer version, bad_message, with
  /// the reason, for any other blob that encode() cannot have made.
  static RegionBlob decode(std::span<const std::byte> bytes);

  friend bool operator==(const RegionBlob&, const RegionBlob&) = default;
};

}  // namespace offload::memory
