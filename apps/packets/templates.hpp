#pragma once

#include <arpa/inet.h>
#include <fmt/core.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "apps/packets/options.hpp"
#include "core/error.hpp"
#include "core/fd.hpp"
#include "core/units.hpp"

namespace offload::packets {

/// The address's 4 bytes and the port, both in network order.
inline sockaddr_in read_endpoint(const std::string& text) {
  sockaddr_in endpoint{};
  const std::size_t colon = text.find(':');
  if (colon != std::string::npos) {
    endpoint.sin_port = htons(
        core::parse_number<std::uint16_t>(std::string_view(text).substr(colon + 1)).value_or(0));
    if (endpoint.sin_port != 0 &&
        ::inet_pton(AF_INET, text.substr(0, colon).c_str(), &endpoint.sin_addr) == 1) {
      return endpoint;
    }
  }
  throw core::Error(
      core::ErrorCode::invalid_value,
      fmt::format("'{}' is not an IPv4 address and port, such as 10.0.0.1:4000", text));
}

inline std::vector<std::uint8_t> read_mac(const std::string& text) {
  std::vector<std::uint8_t> mac(6);
  int read = 0;
  if (text.size() != 17 ||
      std::sscanf(text.c_str(), "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%n", &mac[0], &mac[1], &mac[2],
                  &mac[3], &mac[4], &mac[5], &read) != 6 ||
      read != 17) {
    throw core::Error(core::ErrorCode::invalid_value,
                      fmt::format("'{}' is not an Ethernet address", text));
  }
  return mac;
}

/// The frames that `send` sends, one of each size: UDP over IPv4, but for number and checksum.
struct FrameTemplates {
  std::vector<std::uint8_t> frames;  ///< each in PacketItem::kMostBytes
  std::vector<std::uint32_t> lengths;
};

/// `own_mac`: 6 bytes. Throws Error (invalid_value) for an invalid address.
inline FrameTemplates make_templates(const Options& options,
                                     const std::vector<std::uint8_t>& own_mac) {
  using namespace kernels::packets;
  const sockaddr_in from = read_endpoint(options.from);
  const sockaddr_in to = read_endpoint(options.to);
  const auto to_mac = read_mac(options.to_mac);
  FrameTemplates templates;
  templates.frames.resize(options.sizes.size() * PacketItem::kMostBytes);
  for (std::size_t i = 0; i < options.sizes.size(); ++i) {
    const std::uint32_t size = options.sizes[i];
    std::uint8_t* const frame = templates.frames.data() + i * PacketItem::kMostBytes;
    std::memcpy(frame, to_mac.data(), 6);
    std::memcpy(frame + 6, own_mac.data(), 6);
    store_16(frame + 12, kIpv4);
    std::uint8_t* const ip = frame + kEthernetBytes;
    ip[0] = 0x45;
    store_16(ip + 2, 28 + size);
    ip[6] = 0x40;  // do not fragment
    ip[8] = 64;    // hops
    ip[9] = kUdp;
    std::memcpy(ip + 12, &from.sin_addr, 4);
    std::memcpy(ip + 16, &to.sin_addr, 4);
    store_16(ip + 10, checksum_of(add_bytes(0, ip, 20)));
    std::memcpy(ip + 20, &from.sin_port, 2);
    std::memcpy(ip + 22, &to.sin_port, 2);
    store_16(ip + 24, 8 + size);
    for (std::uint32_t k = 0; k < size; ++k) ip[28 + k] = static_cast<std::uint8_t>(k);
    templates.lengths.push_back(kEthernetBytes + 28 + size);
  }
  return templates;
}

/// The Ethernet address of an interface. Throws Error.
inline std::vector<std::uint8_t> mac_of(const std::string& interface) {
  const core::Fd socket(
      core::check_errno(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket"));
  ifreq request{};
  std::strncpy(request.ifr_name, interface.c_str(), sizeof request.ifr_name - 1);
  core::check_errno(::ioctl(socket.get(), SIOCGIFHWADDR, &request),
                    fmt::format("the Ethernet address of {}", interface));
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(request.ifr_hwaddr.sa_data);
  return {bytes, bytes + 6};
}

}  // namespace offload::packets
