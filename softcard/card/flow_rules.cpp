#include "softcard/card/flow_rules.hpp"

#include <algorithm>
#include <bit>

#include "kernels/packets/headers.hpp"

namespace offload::rdma::model {
namespace {

namespace packets = kernels::packets;

using FieldBytes = std::array<std::uint8_t, sizeof(FrameFields)>;

template <std::size_t size>
void read(std::array<std::uint8_t, size>& field, const std::uint8_t* from,
          std::size_t count = size) {
  std::copy_n(from, count, field.begin());
}

/// Returns the headers of a frame, also of one whose IPv4 header has a wrong checksum.
packets::Headers headers_of(const std::uint8_t* bytes, std::uint32_t length) {
  const packets::Headers headers = packets::parse_headers(bytes, length);
  if (headers.error != packets::FrameError::ip_checksum) return headers;
  std::vector<std::uint8_t> right(bytes, bytes + length);
  std::uint8_t* const ip = right.data() + headers.ip;
  packets::store_16(ip + 10, 0);
  packets::store_16(ip + 10, packets::checksum_of(packets::add_bytes(0, ip, (ip[0] & 15U) * 4U)));
  return packets::parse_headers(right.data(), length);
}

}  // namespace

FrameFields fields_of(std::span<const std::byte> frame) {
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(frame.data());
  const auto headers = headers_of(bytes, static_cast<std::uint32_t>(frame.size()));
  FrameFields fields;
  read(fields.destination, bytes);
  read(fields.source, bytes + 6);
  packets::store_16(fields.ethertype.data(), headers.ethertype);
  const std::uint32_t first_type = packets::load_16(bytes + packets::kEthernetBytes - 2);
  const bool is_tagged = first_type == 0x8100 || first_type == 0x88a8;  // 802.1Q, 802.1ad
  if (is_tagged && frame.size() >= packets::kEthernetBytes + fields.tag.size()) {
    fields.is_tagged = 1;
    read(fields.tag, bytes + packets::kEthernetBytes);
  }
  if (headers.transport == 0) return fields;  // no whole IP header
  const bool is_v4 = headers.ethertype == packets::kIpv4;
  const std::uint8_t* const addresses = bytes + headers.ip + (is_v4 ? 12 : 8);
  const std::size_t size = is_v4 ? 4 : 16;
  read(fields.source_address, addresses, size);
  read(fields.destination_address, addresses + size, size);
  fields.protocol = static_cast<std::uint8_t>(headers.protocol);
  packets::store_16(fields.source_port.data(), headers.source_port);
  packets::store_16(fields.destination_port.data(), headers.destination_port);
  return fields;
}

void FlowRules::add(std::uint32_t number, const FlowRule& rule) {
  const auto behind = std::upper_bound(
      rules_.begin(), rules_.end(), rule.priority,
      [](std::uint32_t priority, const Numbered& each) { return priority < each.rule.priority; });
  rules_.insert(behind, {number, rule});
}

void FlowRules::remove(std::uint32_t number) {
  std::erase_if(rules_, [number](const Numbered& each) { return each.number == number; });
}

std::optional<std::uint32_t> FlowRules::find(const FrameFields& fields) const {
  const auto found = std::bit_cast<FieldBytes>(fields);
  for (const auto& [number, rule] : rules_) {
    const auto value = std::bit_cast<FieldBytes>(rule.value);
    const auto mask = std::bit_cast<FieldBytes>(rule.mask);
    bool matches = true;
    for (std::size_t i = 0; i < found.size(); ++i) {
      matches = matches && ((found[i] ^ value[i]) & mask[i]) == 0;
    }
    if (matches) return rule.pair;
  }
  return std::nullopt;
}

}  // namespace offload::rdma::model
