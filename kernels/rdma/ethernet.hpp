#pragma once

#include <cstdint>

#include "kernels/rdma/operations.hpp"

/// Entries and completions of raw packets (IBV_QPT_RAW_PACKET): whole Ethernet frames. The layout
/// is that of infiniband/mlx5dv.h, which a test compares byte for byte.
///
/// An entry is a control segment, an Ethernet segment with the begin of the frame inline, which
/// some cards want, and a data segment with the rest. So it has four segments at most: one block.
namespace offload::kernels::rdma {

/// The maximum number of bytes that ConnectX-4 needs inline: an Ethernet header with a VLAN tag.
/// Cards from ConnectX-5 on need none.
inline constexpr std::uint32_t kMostInlineHeader = 18;
/// The number of inline bytes within the Ethernet segment's first 16 bytes.
inline constexpr std::uint32_t kInlineInFirst = 2;
/// The minimum length of a frame: a shorter one has no Ethernet header.
inline constexpr std::uint32_t kLeastFrame = 14;

/// Checksums that the card writes into a frame that it sends (MLX5_ETH_WQE_*); they can be
/// combined. The previous bytes there are ignored.
enum ChecksumFlag : std::uint8_t {
  kIpChecksum = 1U << 6,         ///< of the IPv4 header
  kTransportChecksum = 1U << 7,  ///< of UDP or TCP
};

/// A frame to be sent.
struct RawWork {
  LocalBuffer frame{};                  ///< kLeastFrame bytes at least
  const std::uint8_t* bytes = nullptr;  ///< the same, as the caller sees it
  std::uint32_t inline_bytes = 0;       ///< kMostInlineHeader at most
  std::uint8_t flags = 0;               ///< of SendFlag
  std::uint8_t checksums = 0;           ///< of ChecksumFlag
};

/// Returns the Ethernet segment's first 16 bytes. `begin`: the first two inline bytes, as a number.
OFFLOAD_HOST_DEVICE inline Segment ethernet_segment(std::uint8_t checksums,
                                                    std::uint32_t inline_bytes,
                                                    std::uint32_t begin) {
  return {
      {0, big_endian(std::uint32_t{checksums} << 24), 0, big_endian(inline_bytes << 16 | begin)}};
}

/// Writes an entry for `work` into the block at `position`. Precondition as of write_entry().
OFFLOAD_HOST_DEVICE inline void write_raw_entry(const SendRing& ring, std::uint64_t position,
                                                std::uint32_t queue, const RawWork& work) {
  const std::uint32_t length = work.frame.length;
  const std::uint32_t inlined = work.inline_bytes < length ? work.inline_bytes : length;
  std::uint8_t begin[kInlineInFirst] = {};
  Segment rest{};
  for (std::uint32_t i = 0; i < inlined; ++i) {
    if (i < kInlineInFirst) {
      begin[i] = work.bytes[i];
    } else {
      std::memcpy(reinterpret_cast<std::uint8_t*>(&rest) + i - kInlineInFirst, work.bytes + i, 1);
    }
  }
  std::uint32_t segments = 1;
  store_segment(ring.at(position, segments++),
                ethernet_segment(work.checksums, inlined, std::uint32_t{begin[0]} << 8 | begin[1]));
  if (inlined > kInlineInFirst) store_segment(ring.at(position, segments++), rest);
  if (inlined < length) {
    store_segment(ring.at(position, segments++),
                  data_segment({work.frame.address + inlined, length - inlined, work.frame.lkey}));
  }
  SendWork control;
  control.opcode = Opcode::send;
  control.flags = work.flags;
  store_segment(ring.at(position, 0), control_segment(position, queue, segments, control));
}

/// Writes an entry that does nothing, for a place without a frame.
OFFLOAD_HOST_DEVICE inline void write_no_entry(const SendRing& ring, std::uint64_t position,
                                               std::uint32_t queue, std::uint8_t flags) {
  SendWork nothing;
  nothing.flags = flags;
  store_segment(ring.at(position, 0), control_segment(position, queue, 1, nothing));
}

/// The card's checks of a received frame (MLX5_CQE_L3_OK, MLX5_CQE_L4_OK).
OFFLOAD_HOST_DEVICE constexpr bool ip_is_right(const Completion& completion) {
  return (completion.ethernet >> 25 & 1U) != 0;
}
OFFLOAD_HOST_DEVICE constexpr bool transport_is_right(const Completion& completion) {
  return (completion.ethernet >> 26 & 1U) != 0;
}
/// Returns the word of a completion with these checks, for an emulation of a card.
OFFLOAD_HOST_DEVICE constexpr std::uint32_t ethernet_word(bool ip_right, bool transport_right) {
  constexpr std::uint32_t kEthernetRight = 1U << 24;
  return kEthernetRight | (ip_right ? 1U << 25 : 0U) | (transport_right ? 1U << 26 : 0U);
}

}  // namespace offload::kernels::rdma
