#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/packets/martian.hpp"

/// Makes valid frames, with code that shares nothing with the parser but loads and stores.
namespace offload::kernels::packets::test {

struct FrameKind {
  std::uint32_t tags = 0;
  bool is_v6 = false;
  std::uint32_t protocol = kUdp;
  std::uint32_t payload = 0;     ///< bytes, of which byte i is i
  std::uint32_t extensions = 0;  ///< IPv6: destination options of 16 bytes each
  std::uint32_t options = 0;     ///< IPv4: words
  std::uint32_t padding = 0;     ///< bytes behind the packet
  std::uint32_t vlan = 0;        ///< of the tags; 0: they have a priority alone
  std::uint32_t surplus = 0;     ///< bytes of the IP packet behind a UDP datagram
};

/// The host that these frames are for.
inline HostAddresses host_of_frames() {
  HostAddresses host{};
  for (std::uint8_t i = 0; i < 6; ++i) host.ethernet[i] = i;
  host.v4_count = host.broadcast_count = host.v6_count = 2;
  host.v4[0] = 0x0a00'0001;  // 10.0.0.1, and 10.9.1.1 of another interface
  host.v4[1] = 0x0a09'0101;
  host.broadcasts[0] = 0x0a00'00ff;
  host.broadcasts[1] = 0x0a09'01ff;
  host.v6[0][0] = 0xfd00'0000;  // fd00::1, and fd0a::1 of another one
  host.v6[0][3] = 1;
  host.v6[1][0] = 0xfd0a'0000;
  host.v6[1][3] = 1;
  return host;
}

class FrameMaker {
 public:
  static std::vector<std::uint8_t> make(const FrameKind& kind) { return FrameMaker(kind).bytes_; }

 private:
  explicit FrameMaker(const FrameKind& kind) {
    for (std::uint8_t i = 0; i < 12; ++i) bytes_.push_back(i);
    for (std::uint32_t i = 0; i < kind.tags; ++i) {
      add_16(i == 0 && kind.tags == 2 ? 0x88a8 : 0x8100);
      add_16((i + 1) << 13 | kind.vlan);
    }
    add_16(kind.is_v6 ? kIpv6 : kIpv4);
    const std::uint32_t header = kind.protocol == kTcp ? 20 : 8;
    const std::uint32_t length = header + kind.payload;
    const std::size_t ip = bytes_.size();
    if (kind.is_v6) {
      add_v6(kind, length + kind.surplus);
    } else {
      add_v4(kind, length + kind.surplus);
    }
    const std::size_t at = bytes_.size();
    bytes_.resize(at + header);
    fill_transport(kind, at, length);
    for (std::uint32_t i = 0; i < kind.payload; ++i) bytes_.push_back(static_cast<std::uint8_t>(i));
    write_checksum(kind, ip, at, length);
    bytes_.resize(bytes_.size() + kind.surplus + kind.padding, 0xee);
  }

  void add_16(std::uint32_t value) {
    bytes_.push_back(static_cast<std::uint8_t>(value >> 8));
    bytes_.push_back(static_cast<std::uint8_t>(value));
  }

  void add_v4(const FrameKind& kind, std::uint32_t length) {
    const std::size_t ip = bytes_.size();
    const std::uint32_t header = 20 + 4 * kind.options;
    bytes_.resize(ip + header, 1);  // options that are no operation
    std::uint8_t* const at = bytes_.data() + ip;
    std::memset(at, 0, 20);
    at[0] = static_cast<std::uint8_t>(0x45 + kind.options);
    store_16(at + 2, header + length);
    at[8] = 64;
    at[9] = static_cast<std::uint8_t>(kind.protocol);
    const std::uint8_t addresses[] = {10, 0, 0, 2, 10, 0, 0, 1};
    std::memcpy(at + 12, addresses, 8);
    store_16(at + 10, checksum_of(add_bytes(0, at, header)));
  }

  void add_v6(const FrameKind& kind, std::uint32_t length) {
    const std::size_t ip = bytes_.size();
    bytes_.resize(ip + 40);
    std::uint8_t* const at = bytes_.data() + ip;
    at[0] = 0x60;
    store_16(at + 4, 16 * kind.extensions + length);
    at[7] = 64;
    at[6] = static_cast<std::uint8_t>(kind.extensions != 0 ? 60U : kind.protocol);
    at[8] = at[24] = 0xfd;
    at[23] = 2;
    at[39] = 1;
    for (std::uint32_t i = 0; i < kind.extensions; ++i) {
      const std::size_t begin = bytes_.size();
      bytes_.resize(begin + 16);
      const bool is_last = i + 1 == kind.extensions;
      bytes_[begin] = static_cast<std::uint8_t>(is_last ? kind.protocol : 60U);
      bytes_[begin + 1] = 1;
    }
  }

  void fill_transport(const FrameKind& kind, std::size_t at, std::uint32_t length) {
    std::uint8_t* const transport = bytes_.data() + at;
    if (kind.protocol == kUdp || kind.protocol == kTcp) {
      store_16(transport, 1000);
      store_16(transport + 2, 7);
    }
    if (kind.protocol == kUdp) store_16(transport + 4, length);
    if (kind.protocol == kTcp) {
      transport[12] = 0x50;
      transport[13] = 0x18;  // PSH, ACK
    }
    if (kind.protocol == kIcmp) transport[0] = 8;
    if (kind.protocol == kIcmpv6) transport[0] = 128;
  }

  void write_checksum(const FrameKind& kind, std::size_t ip, std::size_t at, std::uint32_t length) {
    std::uint32_t sum = 0;
    if (kind.protocol != kIcmp) {
      sum = kind.protocol + length;
      sum = kind.is_v6 ? add_bytes(sum, bytes_.data() + ip + 8, 32)
                       : add_bytes(sum, bytes_.data() + ip + 12, 8);
    }
    const std::uint32_t offset = kind.protocol == kUdp ? 6 : kind.protocol == kTcp ? 16 : 2;
    std::uint32_t checksum = checksum_of(add_bytes(sum, bytes_.data() + at, length));
    if (kind.protocol == kUdp && checksum == 0) checksum = 0xffff;
    store_16(bytes_.data() + at + offset, checksum);
  }

  std::vector<std::uint8_t> bytes_;
};

}  // namespace offload::kernels::packets::test
