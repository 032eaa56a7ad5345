#include "apps/worker/place.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/thrown.hpp"

namespace offload::worker {
namespace {

TEST(DatagramPlace, IsAnAddressOrAnInterfaceWithAPort) {
  const auto v4 = DatagramPlace::parse("10.0.0.1:4000");
  ASSERT_TRUE(v4);
  EXPECT_EQ(v4->address, "10.0.0.1");
  EXPECT_EQ(v4->interface, "");
  EXPECT_EQ(v4->port, 4000);
  const auto v6 = DatagramPlace::parse("[fd00::1]:65535");
  ASSERT_TRUE(v6);
  EXPECT_EQ(v6->address, "fd00::1");
  EXPECT_EQ(DatagramPlace::parse("[FD00:0:0::1]:1")->address, "fd00::1");
  EXPECT_EQ(v6->port, 65535);
  const auto interface = DatagramPlace::parse("eth1:1");
  ASSERT_TRUE(interface);
  EXPECT_EQ(interface->interface, "eth1");
  EXPECT_EQ(interface->address, "");
  EXPECT_EQ(DatagramPlace::parse("eth1.7:1")->interface, "eth1.7");
}

TEST(DatagramPlace, IsNothingElse) {
  for (const char* text : {"", ":", "eth1", ":4000", "eth1:", "eth1:0", "eth1:65536", "eth1:-1",
                           "eth1:4000x", "fd00::1:4000", "[eth1]:4000", "[10.0.0.1]:4000",
                           "[fd00::1:4000", "an-interface-of-16:1"}) {
    EXPECT_FALSE(DatagramPlace::parse(text)) << text;
  }
}

TEST(DatagramPlace, ItsInterfaceIsFound) {
  for (const device::Interface& each : device::list_interfaces()) {
    EXPECT_EQ(interface_of({each.name, "", 1}).mtu, each.mtu);
    // An address of several interfaces is of the first.
    for (const auto& address : each.addresses) {
      EXPECT_EQ(std::ranges::count(interface_of({"", address, 1}).addresses, address), 1);
    }
  }
}

TEST(DatagramPlace, WhatNoInterfaceHasIsNamed) {
  for (const DatagramPlace& place :
       {DatagramPlace{"", "192.0.2.77", 1}, DatagramPlace{"nowhere0", "", 1}}) {
    const auto error = support::thrown_by([&] { (void)interface_of(place); });
    EXPECT_EQ(error.code(), core::ErrorCode::not_found);
    EXPECT_NE(std::string(error.what()).find(place.address + place.interface), std::string::npos);
  }
}

}  // namespace
}  // namespace offload::worker
