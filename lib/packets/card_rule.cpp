#include "packets/card_rule.hpp"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <linux/if_ether.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.hpp"

namespace offload::packets {
namespace {

using core::Error;
using core::ErrorCode;

constexpr std::uint8_t kPort = 1;

/// Returns why a card cannot apply a rule; null: it can.
const char* why_not(const offload_rule& rule) {
  const auto has = [&rule](unsigned field) { return (rule.fields & field) != 0; };
  const bool has_ports = has(OFFLOAD_MATCH_SOURCE_PORT | OFFLOAD_MATCH_DESTINATION_PORT);
  if (rule.target >= OFFLOAD_MOST_QUEUES || rule.spread > 1) return "its target must be one queue";
  if (has(OFFLOAD_MATCH_TCP_FLAGS)) return "a card compares no TCP flags";
  if (has(OFFLOAD_MATCH_ICMP_TYPE)) return "a card compares no type of ICMP";
  if (has(OFFLOAD_MATCH_VLAN) && rule.vlan == 0) return "a card cannot ask for frames of no VLAN";
  if (has(OFFLOAD_MATCH_SOURCE_PORT) && rule.source_ports[0] != rule.source_ports[1]) {
    return "a card compares single ports, no ranges";
  }
  if (has(OFFLOAD_MATCH_DESTINATION_PORT) &&
      rule.destination_ports[0] != rule.destination_ports[1]) {
    return "a card compares single ports, no ranges";
  }
  const bool has_transport =
      has(OFFLOAD_MATCH_PROTOCOL) && (rule.protocol == IPPROTO_UDP || rule.protocol == IPPROTO_TCP);
  if (has_ports && !has_transport) return "ports need the protocol, udp or tcp";
  if (has(OFFLOAD_MATCH_PROTOCOL) && !has_transport && !has(OFFLOAD_MATCH_FAMILY)) {
    return "the protocol needs the family, ip or ip6";
  }
  return nullptr;
}

/// An ibv_flow_attr with the specifications that were added.
class FlowBytes {
 public:
  explicit FlowBytes(std::uint16_t priority) : bytes_(sizeof(ibv_flow_attr)) {
    attributes().type = IBV_FLOW_ATTR_NORMAL;
    attributes().priority = priority;
    attributes().port = kPort;
  }
  /// Adds a specification of zeros, for the caller to fill in before the next one is added. No byte
  /// between its fields is left undefined, as in a copy.
  template <class Specification>
  Specification& add(ibv_flow_spec_type type) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof(Specification));
    ++attributes().num_of_specs;
    auto& specification = *reinterpret_cast<Specification*>(bytes_.data() + at);
    specification.type = type;
    specification.size = sizeof specification;
    return specification;
  }
  [[nodiscard]] std::vector<std::byte> take() {
    attributes().size = static_cast<std::uint16_t>(bytes_.size());
    return std::move(bytes_);
  }

 private:
  ibv_flow_attr& attributes() { return *reinterpret_cast<ibv_flow_attr*>(bytes_.data()); }

  std::vector<std::byte> bytes_;
};

/// Sets addresses and protocol, which both families have.
template <class Filter>
void set_addresses(const offload_rule& rule, Filter& value, Filter& mask) {
  constexpr std::size_t kSize = sizeof value.src_ip;
  std::memcpy(&value.src_ip, rule.source, kSize);
  std::memcpy(&mask.src_ip, rule.source_mask, kSize);
  std::memcpy(&value.dst_ip, rule.destination, kSize);
  std::memcpy(&mask.dst_ip, rule.destination_mask, kSize);
}

void add_family(FlowBytes& flow, const offload_rule& rule) {
  const bool has_protocol = (rule.fields & OFFLOAD_MATCH_PROTOCOL) != 0;
  const std::uint8_t all = has_protocol ? 0xff : 0;
  if (rule.family == ETH_P_IP) {
    auto& ip = flow.add<ibv_flow_spec_ipv4_ext>(IBV_FLOW_SPEC_IPV4_EXT);
    set_addresses(rule, ip.val, ip.mask);
    ip.val.proto = rule.protocol & all;
    ip.mask.proto = all;
  } else {
    auto& ip = flow.add<ibv_flow_spec_ipv6>(IBV_FLOW_SPEC_IPV6);
    set_addresses(rule, ip.val, ip.mask);
    ip.val.next_hdr = rule.protocol & all;
    ip.mask.next_hdr = all;
  }
}

void add_transport(FlowBytes& flow, const offload_rule& rule) {
  auto& transport = flow.add<ibv_flow_spec_tcp_udp>(
      rule.protocol == IPPROTO_UDP ? IBV_FLOW_SPEC_UDP : IBV_FLOW_SPEC_TCP);
  if ((rule.fields & OFFLOAD_MATCH_SOURCE_PORT) != 0) {
    transport.val.src_port = htons(rule.source_ports[0]);
    transport.mask.src_port = 0xffff;
  }
  if ((rule.fields & OFFLOAD_MATCH_DESTINATION_PORT) != 0) {
    transport.val.dst_port = htons(rule.destination_ports[0]);
    transport.mask.dst_port = 0xffff;
  }
}

}  // namespace

std::vector<std::byte> flow_of(const Rule& rule, std::uint16_t priority) {
  const offload_rule& fields = rule.fields;
  if (const char* const why = why_not(fields)) {
    throw Error(ErrorCode::not_supported,
                fmt::format("a card cannot apply the rule '{}': {}", rule.text, why));
  }
  FlowBytes flow(priority);
  auto& ethernet = flow.add<ibv_flow_spec_eth>(IBV_FLOW_SPEC_ETH);
  if ((fields.fields & OFFLOAD_MATCH_VLAN) != 0) {
    ethernet.val.vlan_tag = htons(fields.vlan);
    ethernet.mask.vlan_tag = htons(0xfff);  // not the priority
  }
  if ((fields.fields & OFFLOAD_MATCH_FAMILY) != 0) add_family(flow, fields);
  if ((fields.fields & OFFLOAD_MATCH_PROTOCOL) != 0 &&
      (fields.protocol == IPPROTO_UDP || fields.protocol == IPPROTO_TCP)) {
    add_transport(flow, fields);
  }
  return flow.take();
}

int CardRule::end(ibv_flow* rule) {
  return ibv_destroy_flow(rule);
}

CardRule::CardRule(const CardPort& port, const Rule& rule, std::uint16_t priority) {
  auto flow = flow_of(rule, priority);
  ibv_qp* const pair = port.queue_pair().queue_pair().get();
  ibv_flow* const made = ibv_create_flow(pair, reinterpret_cast<ibv_flow_attr*>(flow.data()));
  const int errnum = errno;
  const std::string what =
      fmt::format("set the rule '{}' on {}", rule.text, pair->context->device->name);
  if (made == nullptr && errnum == EPERM) {
    throw Error(ErrorCode::not_permitted, what + ": CAP_NET_RAW is missing",
                {core::Cause::Domain::system, errnum});
  }
  if (made == nullptr) core::throw_errno(what, errnum != 0 ? errnum : EIO);
  native_ = {made, "a rule of a card"};
}

}  // namespace offload::packets
