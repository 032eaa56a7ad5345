#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/packets/options.hpp"

namespace offload::packets {

/// The frames that `send` sends, one of each size: UDP over IPv4, but for number and checksum.
struct FrameTemplates {
  std::vector<std::uint8_t> frames;  ///< each in PacketItem::kMostBytes
  std::vector<std::uint32_t> lengths;
};

/// `own_mac`: 6 bytes. Throws Error (invalid_value) for an invalid address.
FrameTemplates make_templates(const Options& options, const std::vector<std::uint8_t>& own_mac);

/// The Ethernet address of an interface. Throws Error.
std::vector<std::uint8_t> mac_of(const std::string& interface);

}  // namespace offload::packets
