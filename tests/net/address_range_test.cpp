#include "net/address_range.hpp"

#include <gtest/gtest.h>

namespace offload::net {
namespace {

SocketAddress address(const std::string& host) {
  return resolve(host, 1).front();
}
bool contains(const std::string& range, const std::string& host) {
  const auto parsed = AddressRange::parse(range);
  EXPECT_TRUE(parsed) << range;
  return parsed && parsed->contains(address(host));
}

TEST(AddressRange, ContainsWhatHasItsPrefix) {
  EXPECT_TRUE(contains("10.0.0.0/8", "10.255.0.1"));
  EXPECT_FALSE(contains("10.0.0.0/8", "11.0.0.1"));
  EXPECT_FALSE(contains("138.1.0.0/16", "10.1.0.1"));
  EXPECT_TRUE(contains("10.0.0.255/25", "10.0.0.129"));
  EXPECT_FALSE(contains("10.0.0.255/25", "10.0.0.127"));
  EXPECT_TRUE(contains("0.0.0.0/0", "192.0.2.1"));
  EXPECT_TRUE(contains("192.0.2.1", "192.0.2.1"));
  EXPECT_TRUE(contains("192.0.2.1/32", "192.0.2.1"));
  EXPECT_FALSE(contains("192.0.2.1", "192.0.2.2"));
  EXPECT_TRUE(contains("fd00::/8", "fd12:3456::1"));
  EXPECT_TRUE(contains("fd00::/8", "fd80::1"));
  EXPECT_FALSE(contains("fd00::/8", "fe80::1%lo"));
  EXPECT_TRUE(contains("2001:db8::1", "2001:db8::1"));
  EXPECT_FALSE(contains("fd00::/9", "fd80::1"));
}

TEST(AddressRange, AnIpv4AddressIsTheSameOnASocketOfBothFamilies) {
  EXPECT_TRUE(contains("10.0.0.0/8", "::ffff:10.1.2.3"));
  EXPECT_FALSE(contains("10.0.0.0/8", "::ffff:11.1.2.3"));
  EXPECT_FALSE(contains("fd00::/8", "10.1.2.3"));
  EXPECT_TRUE(contains("::/0", "10.1.2.3"));
}

TEST(AddressRange, HasNoPeerWithoutAnAddress) {
  EXPECT_FALSE(AddressRange::parse("::/0")->contains(SocketAddress{}));
}

TEST(AddressRange, NothingElse) {
  for (const char* const text : {"", "/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "10.0.0/8",
                                 "10.0.0.0/8 ", "fd00::/129", "host", "1.2.3.4/8/8", "[::1]"}) {
    EXPECT_FALSE(AddressRange::parse(text)) << text;
  }
}

}  // namespace
}  // namespace offload::net
