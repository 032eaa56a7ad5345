#include "packets/card_rule.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cstring>
#include <string>

#include "tests/support/thrown.hpp"

/// Rules as verbs have them.
namespace offload::packets {
namespace {

using core::ErrorCode;
using support::thrown_by;

/// The parts of a rule for ibv_create_flow().
struct Flow {
  ibv_flow_attr attributes{};
  ibv_flow_spec_eth ethernet{};
  ibv_flow_spec_ipv4_ext v4{};
  ibv_flow_spec_ipv6 v6{};
  ibv_flow_spec_tcp_udp transport{};

  explicit Flow(const char* text, std::uint16_t priority = 0) {
    const auto bytes = flow_of(parse_rule(text, 1), priority);
    std::memcpy(&attributes, bytes.data(), sizeof attributes);
    std::size_t at = sizeof attributes;
    for (int i = 0; i < attributes.num_of_specs; ++i) {
      decltype(ibv_flow_spec{}.hdr) header{};
      std::memcpy(&header, bytes.data() + at, sizeof header);
      switch (header.type) {
        case IBV_FLOW_SPEC_ETH: read(ethernet, bytes, at); break;
        case IBV_FLOW_SPEC_IPV4_EXT: read(v4, bytes, at); break;
        case IBV_FLOW_SPEC_IPV6: read(v6, bytes, at); break;
        default: read(transport, bytes, at); break;
      }
      at += header.size;
    }
    EXPECT_EQ(at, bytes.size());
    EXPECT_EQ(attributes.size, bytes.size());
  }

 private:
  template <class Part>
  static void read(Part& part, const std::vector<std::byte>& bytes, std::size_t at) {
    ASSERT_LE(at + sizeof part, bytes.size());
    std::memcpy(&part, bytes.data() + at, sizeof part);
    EXPECT_EQ(part.size, sizeof part);
  }
};

TEST(CardRuleTest, HasTheFieldsOfItsText) {
  const Flow flow("udp vlan 7 src 10.1.2.0/24 dst 10.0.0.1 sport 5 dport 4000 to 0", 3);
  EXPECT_EQ(flow.attributes.type, IBV_FLOW_ATTR_NORMAL);
  EXPECT_EQ(flow.attributes.priority, 3);
  EXPECT_EQ(flow.attributes.port, 1);
  EXPECT_EQ(flow.attributes.num_of_specs, 3);
  EXPECT_EQ(ntohs(flow.ethernet.val.vlan_tag), 7);
  EXPECT_EQ(ntohs(flow.ethernet.mask.vlan_tag), 0xfff);
  EXPECT_EQ(flow.ethernet.mask.ether_type, 0);
  EXPECT_EQ(ntohl(flow.v4.val.src_ip), 0x0a01'0200U);
  EXPECT_EQ(ntohl(flow.v4.mask.src_ip), 0xffff'ff00U);
  EXPECT_EQ(ntohl(flow.v4.val.dst_ip), 0x0a00'0001U);
  EXPECT_EQ(ntohl(flow.v4.mask.dst_ip), 0xffff'ffffU);
  EXPECT_EQ(flow.v4.val.proto, IPPROTO_UDP);
  EXPECT_EQ(flow.v4.mask.proto, 0xff);
  EXPECT_EQ(flow.transport.type, IBV_FLOW_SPEC_UDP);
  EXPECT_EQ(ntohs(flow.transport.val.src_port), 5);
  EXPECT_EQ(flow.transport.mask.src_port, 0xffff);
  EXPECT_EQ(ntohs(flow.transport.val.dst_port), 4000);
  EXPECT_EQ(flow.transport.mask.dst_port, 0xffff);
}

TEST(CardRuleTest, LooksAtNothingThatItsTextDoesNotName) {
  const Flow any("any to 0");
  EXPECT_EQ(any.attributes.num_of_specs, 1);
  EXPECT_EQ(any.ethernet.mask.vlan_tag, 0);
  const Flow tcp("tcp to 0");
  EXPECT_EQ(tcp.attributes.num_of_specs, 2);
  EXPECT_EQ(tcp.transport.type, IBV_FLOW_SPEC_TCP);
  EXPECT_EQ(tcp.transport.mask.dst_port, 0);
  EXPECT_EQ(tcp.transport.mask.src_port, 0);
  const Flow source("udp sport 5 to 0");
  EXPECT_EQ(source.transport.mask.dst_port, 0);
  EXPECT_EQ(source.transport.mask.src_port, 0xffff);
}

TEST(CardRuleTest, HasBothAddressesOfEachFamily) {
  const Flow v6("udp src fd00::1 dst fd00::2/32 to 0");
  EXPECT_EQ(v6.v6.val.src_ip[15], 1);
  EXPECT_EQ(v6.v6.mask.src_ip[15], 0xff);
  EXPECT_EQ(v6.v6.mask.dst_ip[3], 0xff);
  EXPECT_EQ(v6.v6.mask.dst_ip[4], 0);
  EXPECT_EQ(v6.v6.mask.next_hdr, 0xff);
  const Flow family("ip to 0");
  EXPECT_EQ(family.attributes.num_of_specs, 2);
  EXPECT_EQ(family.v4.mask.proto, 0);
  EXPECT_EQ(family.v4.val.proto, 0);
  const Flow icmp("icmp to 0");
  EXPECT_EQ(icmp.v4.val.proto, IPPROTO_ICMP);
  EXPECT_EQ(icmp.attributes.num_of_specs, 2);
  const Flow ports("tcp sport 4000 to 0", 9);
  EXPECT_EQ(ntohs(ports.transport.val.src_port), 4000);
  EXPECT_EQ(ports.attributes.priority, 9);
}

TEST(CardRuleTest, HasAddressesOfIpv6) {
  const Flow flow("udp dst fd00::1/64 dport 9 to 0");
  EXPECT_EQ(flow.v6.val.dst_ip[0], 0xfd);
  EXPECT_EQ(flow.v6.mask.dst_ip[7], 0xff);
  EXPECT_EQ(flow.v6.mask.dst_ip[8], 0);
  EXPECT_EQ(flow.v6.val.next_hdr, IPPROTO_UDP);
  const Flow echo("icmp6 to 0");
  EXPECT_EQ(echo.v6.val.next_hdr, IPPROTO_ICMPV6);
  EXPECT_EQ(echo.attributes.num_of_specs, 2);
}

TEST(CardRuleTest, WhatACardCannotCompareIsRefusedWithTheReason) {
  const std::pair<const char*, const char*> cases[] = {{"udp dport 7-9 to 0", "no ranges"},
                                                       {"udp sport 7-9 to 0", "no ranges"},
                                                       {"tcp flags S/SA to 0", "no TCP flags"},
                                                       {"icmp type 8 to 0", "no type of ICMP"},
                                                       {"vlan 0 to 0", "no VLAN"},
                                                       {"udp to stack", "one queue"},
                                                       {"udp to drop", "one queue"},
                                                       {"dport 7 to 0", "need the protocol"},
                                                       {"ip dport 7 to 0", "need the protocol"}};
  for (const auto& [text, why] : cases) {
    const auto error = thrown_by([rule = parse_rule(text, 1)] { flow_of(rule, 0); });
    EXPECT_EQ(error.code(), ErrorCode::not_supported) << text;
    EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
  }
  EXPECT_EQ(thrown_by([] { flow_of(parse_rule("udp to 0-1", 2), 0); }).code(),
            ErrorCode::not_supported);
}

}  // namespace
}  // namespace offload::packets
