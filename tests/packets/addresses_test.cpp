#include "packets/addresses.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "tests/packets/veth.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/log_capture.hpp"

namespace offload::packets {
namespace {

using kernels::packets::HostAddresses;

class PortAddressesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!veth_.unavailable().empty()) GTEST_SKIP() << veth_.unavailable();
  }
  static void configure(const std::string& command) {
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }
  test::Veth veth_;
};

std::vector<std::uint32_t> list(const std::uint32_t* words, std::uint32_t count) {
  std::vector<std::uint32_t> sorted(words, words + count);
  std::ranges::sort(sorted);
  return sorted;
}

TEST_F(PortAddressesTest, AreThoseOfTheInterfaceAndOfItsHost) {
  configure("ip link set v0 address 02:00:00:00:00:07");
  configure("ip addr add 10.9.0.1/24 dev v0 label v0:a");
  configure("ip addr add 10.9.0.2/24 brd + dev v0");
  configure("ip addr add 10.9.1.1/31 dev v1");
  configure("ip addr add 10.9.2.1/32 dev lo");
  const PortAddresses found = read_addresses("v0");
  EXPECT_EQ(found.own, (std::vector<std::string>{"10.9.0.1", "10.9.0.2"}));
  const std::uint8_t ethernet[] = {2, 0, 0, 0, 0, 7};
  EXPECT_TRUE(std::ranges::equal(found.host.ethernet, ethernet));
  EXPECT_EQ(list(found.host.v4, found.host.v4_count),
            (std::vector<std::uint32_t>{0x0a09'0001, 0x0a09'0002, 0x0a09'0101, 0x0a09'0201}));
  EXPECT_EQ(list(found.host.broadcasts, found.host.broadcast_count),
            (std::vector<std::uint32_t>{0x0a09'00ff}));
  EXPECT_EQ(found.host.v6_count, 0U);
}

// A peer is a host, although getifaddrs(3) has it where a broadcast address would be.
TEST_F(PortAddressesTest, APeerIsNoBroadcastAddress) {
  configure("ip addr add 10.9.0.1 peer 10.9.0.2/32 dev v0");
  configure("ip addr add 10.7.0.1 peer 10.9.3.2/24 dev v0");
  const PortAddresses found = read_addresses("v0");
  EXPECT_EQ(list(found.host.broadcasts, found.host.broadcast_count),
            (std::vector<std::uint32_t>{0x0a09'03ff}));
}

TEST_F(PortAddressesTest, OfTheInterfaceComeFirst) {
  configure("for i in $(seq 100); do ip addr add 10.9.$i.1/24 dev v1; done");
  configure("ip addr add 10.8.0.1/24 dev v0");
  const support::LogCapture log;
  const PortAddresses found = read_addresses("v0");
  EXPECT_TRUE(log.has("warning: 74 addresses of this host do not fit: ")) << log.text();
  EXPECT_EQ(found.host.v4_count, HostAddresses::kMost);
  EXPECT_EQ(found.host.v4[0], 0x0a08'0001U);
  EXPECT_EQ(found.host.broadcasts[0], 0x0a08'00ffU);
}

TEST_F(PortAddressesTest, AreThoseOfIpv6Too) {
  if (std::system("[ -e /proc/sys/net/ipv6/conf/v0 ]") != 0) GTEST_SKIP() << "no IPv6";
  configure("echo 0 >/proc/sys/net/ipv6/conf/v0/disable_ipv6");
  configure("echo 0 >/proc/sys/net/ipv6/conf/v1/disable_ipv6");
  configure("ip -6 addr flush dev v0 && ip -6 addr flush dev v1");
  configure("ip addr add 10.9.0.1/24 dev v0 && ip addr add fd00:1:2:3:4:5:6:7/64 dev v0 nodad");
  configure("ip addr add fd00::9/64 dev v1 nodad");
  const support::LogCapture log;
  const PortAddresses few = read_addresses("v0");
  EXPECT_EQ(few.own, (std::vector<std::string>{"10.9.0.1", "fd00:1:2:3:4:5:6:7"}));
  ASSERT_EQ(few.host.v6_count, 2U);
  const std::uint32_t own[] = {0xfd00'0001, 0x0002'0003, 0x0004'0005, 0x0006'0007};
  const std::uint32_t other[] = {0xfd00'0000, 0, 0, 9};
  EXPECT_TRUE(std::ranges::equal(few.host.v6[0], own));
  EXPECT_TRUE(std::ranges::equal(few.host.v6[1], other));
  configure("for i in $(seq 100 161); do ip addr add fd00::$i/64 dev v1 nodad || exit 1; done");
  EXPECT_EQ(read_addresses("v0").host.v6_count, HostAddresses::kMost);
  EXPECT_EQ(log.text().find("do not fit"), std::string::npos) << log.text();
  configure("ip addr add fd00::8/64 dev v1 nodad");
  const PortAddresses many = read_addresses("v0");
  EXPECT_EQ(many.host.v6_count, HostAddresses::kMost);
  EXPECT_TRUE(std::ranges::equal(many.host.v6[0], own));
  EXPECT_TRUE(log.has("warning: 1 addresses of this host do not fit: ")) << log.text();
}

TEST_F(PortAddressesTest, ChangesAreTold) {
  configure("ip addr add 10.9.0.1/24 dev v0");
  AddressChanges changes;
  // The kernel reports late that a link is up.
  const auto is_quiet = [&] { return !changes.take(); };
  EXPECT_TRUE(support::eventually(is_quiet));
  configure("ip addr add 10.9.0.2/24 dev v0; ip addr add 10.9.0.3/24 dev v0");
  EXPECT_TRUE(changes.take());
  EXPECT_TRUE(support::eventually(is_quiet));
  configure("ip link set v0 address 02:00:00:00:00:07");
  EXPECT_TRUE(changes.take());
}

}  // namespace
}  // namespace offload::packets
