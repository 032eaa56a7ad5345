#include "net/peer_address.hpp"

#include <gtest/gtest.h>

#include <string>

#include "net/socket.hpp"

namespace offload::net {
namespace {

PeerAddress address(const std::string& ip, std::uint16_t port) {
  return PeerAddress(resolve(ip, port).front().storage);
}

std::string text(const PeerAddress& address) {
  const auto text = address.text();
  return std::string(std::string_view(text));
}

TEST(PeerAddress, IsReadable) {
  EXPECT_EQ(text(address("10.0.0.1", 4711)), "10.0.0.1:4711");
  EXPECT_EQ(text(address("2001:db8::1", 65535)), "[2001:db8::1]:65535");
  EXPECT_EQ(text(address("2001:db8:1111:2222:3333:4444:5555:6666", 65535)),
            "[2001:db8:1111:2222:3333:4444:5555:6666]:65535");
  EXPECT_EQ(text(PeerAddress{}), "of unknown address");
}

TEST(PeerAddress, OfAnotherFamilyIsUnknown) {
  sockaddr_storage local{};
  local.ss_family = AF_UNIX;
  EXPECT_EQ(text(PeerAddress(local)), "of unknown address");
}

TEST(PeerAddress, AnIpv4AddressIsTheSameWhereItIsMapped) {
  EXPECT_EQ(text(address("::ffff:10.0.0.1", 1)), "10.0.0.1:1");
  EXPECT_EQ(address("::ffff:10.0.0.1", 1).source(), address("10.0.0.1", 2).source());
}

TEST(PeerAddress, ASourceIsAnIpv4AddressOrASlash64) {
  EXPECT_NE(address("10.0.0.1", 1).source(), address("10.0.0.2", 1).source());
  EXPECT_EQ(address("2001:db8::1", 1).source(), address("2001:db8::ffff:1", 2).source());
  EXPECT_NE(address("2001:db8::1", 1).source(), address("2001:db8:0:1::1", 1).source());
}

}  // namespace
}  // namespace offload::net
