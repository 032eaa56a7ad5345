#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/channel_packets.hpp"

/// The CPU's fast paths that write and read the self-validating form.
namespace offload::channel {

/// Room for a payload read from packets. Not a power of two: slots would share cache sets.
inline constexpr std::size_t kPacketRoom = kernels::kMaxPacketPayload + kernels::kSlack;

/// The number of slots by which a side prefetches the lines that the other side had last: as
/// measured, this gives a tenth more messages, while 8 slows down the writes of a GPU.
inline constexpr std::uint64_t kFetchAhead = 4;

/// Prefetches the lines of a slot's packets that a content of `length` bytes uses: to read them (0)
/// or to write them (1).
template <int for_writing>
void fetch_ahead(const kernels::Slot& slot, std::uint32_t length) noexcept {
  constexpr std::uint32_t kPacketsPerLine = 64 / sizeof(kernels::Packet);
  const std::uint32_t packets = kernels::packets_filled(length);
  for (std::uint32_t i = 0; i < packets; i += kPacketsPerLine) {
    __builtin_prefetch(slot.packets + i, for_writing);
  }
}

/// Writes a content of `length` <= kMaxPacketPayload bytes; last the header, which publishes it.
inline void write_packets(kernels::Packet* packets, std::uint32_t flag, const std::byte* payload,
                          std::uint32_t length, std::uint32_t status = 0,
                          std::uint32_t count = 0) noexcept {
  using kernels::kPacketData;
  kernels::Packet* packet = packets + 1;
  std::uint32_t offset = 0;
#if !defined(OFFLOAD_PORTABLE_PACKETS)
  // Reads 16 bytes where 12 are needed, so only as long as all are payload.
  const __m128i data = _mm_set_epi32(0, -1, -1, -1);
  const __m128i flag_bits = _mm_set_epi32(static_cast<int>(flag), 0, 0, 0);
  for (; offset + sizeof(kernels::Packet) <= length; offset += kPacketData, ++packet) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(payload + offset));
    kernels::store_packet_bits(packet, _mm_or_si128(_mm_and_si128(bytes, data), flag_bits));
  }
#endif
  for (; offset < length; offset += kPacketData, ++packet) {
    kernels::Packet tail{{}, flag};
    std::memcpy(tail.data, payload + offset, std::min(kPacketData, length - offset));
    kernels::store_packet(packet, tail);
  }
  kernels::store_packet(packets, {{length, status, count}, flag});
}

/// Reads the `length` <= kMaxPacketPayload bytes of the message `flag` to `to`, which has room for
/// another kSlack bytes. Returns false if the message is incomplete.
inline bool read_packets(const kernels::Packet* packets, std::uint32_t flag, std::byte* to,
                         std::uint32_t length) noexcept {
  const kernels::Packet* const end = packets + kernels::packets_for(length);
#if !defined(OFFLOAD_PORTABLE_PACKETS)
  const __m128i expected = _mm_set_epi32(static_cast<int>(flag), 0, 0, 0);
  __m128i differences = _mm_setzero_si128();
  for (const auto* packet = packets + 1; packet != end; ++packet, to += kernels::kPacketData) {
    const __m128i bits = kernels::load_packet_bits(packet);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bits);  // the next 12 overwrite the flag
    differences = _mm_or_si128(differences, _mm_xor_si128(bits, expected));
  }
  return _mm_cvtsi128_si32(_mm_srli_si128(differences, kernels::kPacketData)) == 0;
#else
  for (const auto* at = packets + 1; at != end; ++at, to += kernels::kPacketData) {
    const kernels::Packet packet = kernels::load_packet(at);
    if (packet.flag != flag) return false;
    std::memcpy(to, packet.data, kernels::kPacketData);
  }
  return true;
#endif
}

}  // namespace offload::channel
