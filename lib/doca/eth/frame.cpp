#include "doca/eth/port.hpp"
#include "kernels/packets/answers.hpp"
#include "kernels/packets/headers.hpp"

namespace offload::doca {
namespace {

using kernels::packets::add_bytes;
using kernels::packets::checksum_of;
using kernels::packets::Headers;
using kernels::packets::load_16;
using kernels::packets::store_16;

const std::uint8_t* bytes_of(std::span<const std::byte> frame) noexcept {
  return reinterpret_cast<const std::uint8_t*>(frame.data());
}

/// Returns where the ethertype behind VLAN tags is; the frame's length if it has none.
std::size_t ethertype_at(std::span<const std::byte> frame) noexcept {
  constexpr std::uint32_t kTag = 0x8100;
  constexpr std::uint32_t kOuterTag = 0x88a8;
  std::size_t at = kernels::packets::kEthernetBytes - 2;
  for (std::uint32_t i = 0; i <= kernels::packets::kMostTags && at + 2 <= frame.size(); ++i) {
    const std::uint32_t type = load_16(bytes_of(frame) + at);
    if (type != kTag && type != kOuterTag) return at;
    at += 4;
  }
  return frame.size();
}

/// Its checksum must be right before the headers behind it are parsed.
void write_ip_checksum(std::span<std::byte> frame) noexcept {
  const std::size_t at = ethertype_at(frame);
  constexpr std::size_t kShortest = 20;
  if (at + 2 + kShortest > frame.size()) return;
  auto* const bytes = reinterpret_cast<std::uint8_t*>(frame.data());
  if (load_16(bytes + at) != kernels::packets::kIpv4) return;
  std::uint8_t* const ip = bytes + at + 2;
  const std::uint32_t length = (ip[0] & 0xfU) * 4;
  if (length < kShortest || at + 2 + length > frame.size()) return;
  store_16(ip + 10, 0);
  store_16(ip + 10, checksum_of(add_bytes(0, ip, length)));
}

}  // namespace

void write_checksums(std::span<std::byte> frame, bool ip, bool transport) noexcept {
  if (ip) write_ip_checksum(frame);
  if (!transport) return;
  auto* const bytes = reinterpret_cast<std::uint8_t*>(frame.data());
  const Headers headers =
      kernels::packets::parse_headers(bytes, static_cast<std::uint32_t>(frame.size()));
  if (headers.is_whole(kernels::packets::kUdp)) {
    kernels::packets::write_udp_checksum(bytes, headers);
  } else if (headers.is_whole(kernels::packets::kTcp)) {
    kernels::packets::write_tcp_checksum(bytes, headers);
  }
}

std::uint32_t hash_of(std::span<const std::byte> frame) noexcept {
  const std::uint8_t* const bytes = bytes_of(frame);
  const Headers headers =
      kernels::packets::parse_headers(bytes, static_cast<std::uint32_t>(frame.size()));
  if (headers.error != kernels::packets::FrameError::none || headers.ip == 0) return 0;
  const bool is_v4 = headers.ethertype == kernels::packets::kIpv4;
  const std::uint8_t* const addresses = bytes + headers.ip + (is_v4 ? 12 : 8);
  std::uint32_t hash = 0x811c'9dc5;  // FNV-1a
  const auto add = [&](std::uint32_t byte) { hash = (hash ^ byte) * 0x0100'0193; };
  for (std::uint32_t i = 0; i < (is_v4 ? 8U : 32U); ++i) add(addresses[i]);
  for (const std::uint32_t port : {headers.source_port, headers.destination_port}) {
    add(port >> 8);
    add(port & 0xff);
  }
  return hash;
}

}  // namespace offload::doca
