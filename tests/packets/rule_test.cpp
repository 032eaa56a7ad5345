#include "packets/rule.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/if_ether.h>
#include <netinet/in.h>

#include <cstdint>
#include <string>

#include "core/error.hpp"

namespace offload::packets {
namespace {

TEST(Rule, HasWhatItsTextSays) {
  const auto rule = parse_rule("udp src 10.1.2.3/8 dst 192.168.0.1 sport 5 dport 7-9 to 3", 4);
  const offload_rule& fields = rule.fields;
  EXPECT_EQ(rule.text, "udp src 10.1.2.3/8 dst 192.168.0.1 sport 5 dport 7-9 to 3");
  EXPECT_EQ(fields.fields, unsigned{OFFLOAD_MATCH_FAMILY | OFFLOAD_MATCH_PROTOCOL |
                                    OFFLOAD_MATCH_SOURCE | OFFLOAD_MATCH_DESTINATION |
                                    OFFLOAD_MATCH_SOURCE_PORT | OFFLOAD_MATCH_DESTINATION_PORT});
  EXPECT_EQ(fields.family, ETH_P_IP);
  EXPECT_EQ(fields.protocol, IPPROTO_UDP);
  EXPECT_EQ(ntohl(fields.source[0]), 10U << 24);
  EXPECT_EQ(ntohl(fields.source_mask[0]), 0xff00'0000U);
  EXPECT_EQ(ntohl(fields.destination_mask[0]), 0xffff'ffffU);
  EXPECT_EQ(fields.source_ports[0], 5);
  EXPECT_EQ(fields.source_ports[1], 5);
  EXPECT_EQ(fields.destination_ports[0], 7);
  EXPECT_EQ(fields.destination_ports[1], 9);
  EXPECT_EQ(fields.target, 3);
}

TEST(Rule, MaySpreadFramesOverQueues) {
  const auto fields = parse_rule("udp to 1-3", 4).fields;
  EXPECT_EQ(fields.target, 1);
  EXPECT_EQ(fields.spread, 3);
  EXPECT_EQ(parse_rule("udp to 2", 4).fields.spread, 1);
  for (const char* text : {"to 1-4", "to 2-1", "to 1-", "to -1", "to 1-stack"}) {
    EXPECT_THROW(parse_rule(text, 4), core::Error) << text;
  }
}

TEST(Rule, NamesItsProtocol) {
  struct Case {
    const char* name;
    unsigned fields;
    unsigned family;
    unsigned protocol;
  };
  constexpr unsigned kFamily = OFFLOAD_MATCH_FAMILY;
  constexpr unsigned kProtocol = OFFLOAD_MATCH_PROTOCOL;
  for (const Case& one :
       {Case{"any", 0, 0, 0}, Case{"ip", kFamily, ETH_P_IP, 0}, Case{"ip6", kFamily, ETH_P_IPV6, 0},
        Case{"udp", kProtocol, 0, IPPROTO_UDP}, Case{"tcp", kProtocol, 0, IPPROTO_TCP},
        Case{"icmp", kFamily | kProtocol, ETH_P_IP, IPPROTO_ICMP},
        Case{"icmp6", kFamily | kProtocol, ETH_P_IPV6, IPPROTO_ICMPV6}}) {
    const auto fields = parse_rule(std::string(one.name) + " to 0", 1).fields;
    EXPECT_EQ(fields.fields, one.fields) << one.name;
    EXPECT_EQ(fields.family, one.family) << one.name;
    EXPECT_EQ(fields.protocol, one.protocol) << one.name;
    EXPECT_EQ(fields.target, 0);
    EXPECT_EQ(fields.spread, 1);
  }
}

TEST(Rule, TakesNumbersUpToTheirLimits) {
  const auto ports = parse_rule("udp sport 0-65535 dport 65535 to 15", 16).fields;
  EXPECT_EQ(ports.source_ports[0], 0);
  EXPECT_EQ(ports.source_ports[1], 65535);
  EXPECT_EQ(ports.destination_ports[0], 65535);
  EXPECT_EQ(ports.target, 15);
  EXPECT_EQ(parse_rule("udp sport 7-7 to 0", 1).fields.source_ports[1], 7);
  EXPECT_EQ(parse_rule("udp vlan 4094 to 0", 1).fields.vlan, 4094);
  EXPECT_EQ(parse_rule("icmp type 255 to 0", 1).fields.icmp_type, 255);
  EXPECT_EQ(parse_rule("icmp type 0 to 0", 1).fields.icmp_type, 0);
  EXPECT_THROW(parse_rule("udp to 16", 16), core::Error);
}

TEST(Rule, TakesPrefixesOfAnyLength) {
  struct Case {
    const char* address;
    std::uint32_t mask[4];
  };
  for (const Case& one :
       {Case{"0.0.0.0/0", {0, 0, 0, 0}}, Case{"128.0.0.0/1", {1U << 31, 0, 0, 0}},
        Case{"10.0.0.0/31", {~1U, 0, 0, 0}}, Case{"10.0.0.0/32", {~0U, 0, 0, 0}},
        Case{"::/0", {0, 0, 0, 0}}, Case{"fd00::/32", {~0U, 0, 0, 0}},
        Case{"fd00::/33", {~0U, 1U << 31, 0, 0}}, Case{"fd00::/64", {~0U, ~0U, 0, 0}},
        Case{"fd00::/127", {~0U, ~0U, ~0U, ~1U}}, Case{"fd00::/128", {~0U, ~0U, ~0U, ~0U}}}) {
    const auto fields = parse_rule(std::string("src ") + one.address + " to 0", 1).fields;
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(ntohl(fields.source_mask[i]), one.mask[i]) << one.address << ", word " << i;
    }
  }
  const auto fields = parse_rule("src fd00::1:2:3:4/96 to 0", 1).fields;
  EXPECT_EQ(ntohl(fields.source[2]), 0x1'0002U);
  EXPECT_EQ(fields.source[3], 0U) << "the bits of a host do not count";
}

TEST(Rule, MayHaveMoreBlanks) {
  EXPECT_EQ(parse_rule("  udp   dport  7  to  0 ", 1).fields.destination_ports[0], 7);
}

TEST(Rule, MayBeOfAllFrames) {
  EXPECT_EQ(parse_rule("any to stack", 1).fields.fields, 0U);
  EXPECT_EQ(parse_rule("to drop", 1).fields.target, OFFLOAD_TO_NOBODY);
}

TEST(Rule, TakesPrefixesOfIpv6) {
  const auto fields = parse_rule("ip6 dst fd00::/40 to 0", 1).fields;
  EXPECT_EQ(fields.family, ETH_P_IPV6);
  EXPECT_EQ(ntohl(fields.destination_mask[0]), 0xffff'ffffU);
  EXPECT_EQ(ntohl(fields.destination_mask[1]), 0xff00'0000U);
  EXPECT_EQ(fields.destination_mask[2], 0U);
}

TEST(Rule, TakesTcpFlags) {
  const auto fields = parse_rule("tcp flags S/SA to stack", 1).fields;
  EXPECT_EQ(fields.tcp_flags, 2);
  EXPECT_EQ(fields.tcp_flags_mask, 0x12);
  const auto all = parse_rule("tcp flags -/FSRPAU to stack", 1).fields;
  EXPECT_EQ(all.tcp_flags, 0);
  EXPECT_EQ(all.tcp_flags_mask, 0x3f);
  EXPECT_NE(all.fields & OFFLOAD_MATCH_TCP_FLAGS, 0U);
}

TEST(Rule, TakesVlans) {
  const auto fields = parse_rule("udp vlan 7 to 0", 1).fields;
  EXPECT_EQ(fields.vlan, 7);
  EXPECT_NE(fields.fields & OFFLOAD_MATCH_VLAN, 0U);
  EXPECT_THROW(parse_rule("udp vlan 4095 to 0", 1), core::Error);
}

TEST(Rule, TakesIcmpTypes) {
  const auto fields = parse_rule("icmp type 8 to 0", 1).fields;
  EXPECT_EQ(fields.icmp_type, 8);
  EXPECT_NE(fields.fields & OFFLOAD_MATCH_ICMP_TYPE, 0U);
  EXPECT_THROW(parse_rule("icmp type 256 to 0", 1), core::Error);
}

TEST(Rule, RefusesWhatItCannotRead) {
  for (const char* const text : {"",
                                 "to",
                                 "to 1",
                                 "to -1",
                                 "udp",
                                 "foo to 0",
                                 "udp dport to 0",
                                 "udp dport 9-7 to 0",
                                 "udp dport 65536 to 0",
                                 "ip6 src 10.0.0.1 to 0",
                                 "src 10.0.0.1 dst fd00::1 to 0",
                                 "src 10.0.0.1/33 to 0",
                                 "src fd00::/129 to 0",
                                 "src 10.0.0.1/ to 0",
                                 "icmp src fd00::1 to 0",
                                 "udp udp to 0",
                                 "dport 7 udp to 0",
                                 "to 0 udp",
                                 "src nowhere to 0",
                                 "tcp flags S to 0",
                                 "tcp flags S/A to 0",
                                 "tcp flags X/X to 0",
                                 "tcp flags -/- to 0",
                                 "udp dport 7 to 0 0"}) {
    EXPECT_THROW(parse_rule(text, 1), core::Error) << text;
  }
}

}  // namespace
}  // namespace offload::packets
