#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "protocol/envelope.hpp"
#include "rdma/verbs/device_context.hpp"

/// The description of a queue pair with which a peer can connect to it, sent by any means. The wire
/// format is a protocol::Envelope with this body, big endian:
///
///   qp_type u8 | link layer u8 | LID u16 | GID 16 bytes | qp_num u32 | psn u32 | MTU u8 |
///   max_dest_rd_atomic u8
namespace offload::rdma {

/// The most that qp_num and psn, of 24 bits, can be.
inline constexpr std::uint32_t kMax24Bits = 0xff'ffff;
/// Bytes of this version. They fit the private data of a connection request, 56 bytes
/// (rdma_connect(3)).
inline constexpr std::size_t kDescriptorBytes =
    protocol::kEnvelopeHeader + (1 + 1 + 2 + 16 + 4 + 4 + 1 + 1) + protocol::kEnvelopeTrailer;
/// A later version may be longer, and is recognised as such.
inline constexpr protocol::Envelope kDescriptorEnvelope{"description of a connection",
                                                        0x4f46'5243,  // "OFRC"
                                                        1, /*most_bytes=*/256};

struct ConnectionDescriptor {
  QpType qp_type = QpType::rc;  ///< rc or uc
  bool ethernet = true;         ///< RoCE; else InfiniBand
  std::uint16_t lid = 0;        ///< not 0 over InfiniBand
  ibv_gid gid{};
  std::uint32_t qp_num = 0;  ///< 24 bits
  std::uint32_t psn = 0;     ///< packet sequence number of its first packet, 24 bits
  ibv_mtu mtu = IBV_MTU_1024;
  std::uint8_t max_dest_rd_atomic = 0;  ///< reads and atomics that it answers at a time

  [[nodiscard]] std::vector<std::byte> encode() const;

  /// Throws Error: unsupported_version for a later version, bad_message, with the reason, for
  /// anything else that encode() does not produce.
  static ConnectionDescriptor decode(std::span<const std::byte> bytes);
};

}  // namespace offload::rdma
