#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "protocol/envelope.hpp"
#include "rdma/verbs/transport.hpp"

/// One end of a connection as its peer must know it; it travels any way the caller likes. A
/// protocol::Envelope, in which is, big endian,
///
///   transport u8 | link layer u8 | LID u16 | GID 16 bytes | queue pair u32 | first packet u32 |
///   MTU u8 | reads taken u8
namespace offload::rdma {

/// Queue pairs and packets are numbered with so many bits.
inline constexpr std::uint32_t kMost24Bits = 0xff'ffff;
/// Of this version, bytes: it fits the private data of librdmacm's connection requests (56).
inline constexpr std::size_t kDescriptorBytes =
    protocol::kEnvelopeHeader + (1 + 1 + 2 + 16 + 4 + 4 + 1 + 1) + protocol::kEnvelopeTrailer;
/// A later version may be longer than this one, and is to be told from garbage.
inline constexpr protocol::Envelope kDescriptorEnvelope{"description of a connection",
                                                        0x4f46'5243,  // "OFRC"
                                                        1, /*most_bytes=*/256};

struct ConnectionDescriptor {
  Transport transport = Transport::rc;  ///< rc or uc
  bool ethernet = true;                 ///< RoCE; else InfiniBand
  std::uint16_t lid = 0;                ///< InfiniBand: not 0
  ibv_gid gid{};
  std::uint32_t queue_pair = 0;    ///< 24 bits
  std::uint32_t first_packet = 0;  ///< 24 bits
  ibv_mtu mtu = IBV_MTU_1024;
  std::uint8_t reads_in = 0;  ///< reads and atomics that it answers at a time

  [[nodiscard]] std::vector<std::byte> encode() const;

  /// Throws Error: unsupported_version for a version to come, bad_message, with the reason, for
  /// whatever else encode() does not make.
  static ConnectionDescriptor decode(std::span<const std::byte> bytes);
};

}  // namespace offload::rdma
