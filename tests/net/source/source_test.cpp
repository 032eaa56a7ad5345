#include "net/source/source.hpp"

#include <gtest/gtest.h>

#include <string>

#include "net/socket.hpp"

namespace offload::net {
namespace {

Source source(const std::string& host) {
  return source_of(resolve(host, 1).front().storage);
}

TEST(SourceOf, IsAnIpv4AddressOrTheFirstHalfOfAnIpv6One) {
  EXPECT_EQ(source("2001:db8::1"), source("2001:db8::ffff:1:2"));
  EXPECT_EQ(source("2001:db8::1"), source("2001:db8::8000:0:0:1"));
  EXPECT_NE(source("2001:db8::1"), source("2001:db8:0:1::1"));
  EXPECT_NE(source("10.0.0.1"), source("10.0.0.2"));
  EXPECT_EQ(source("10.0.0.1"), source("::ffff:10.0.0.1"));
}

TEST(SourceOf, LocalPeersAreOne) {
  sockaddr_storage local{};
  local.ss_family = AF_UNIX;
  EXPECT_EQ(source_of(local), Source{});
}

TEST(LimitedSources, CountsByDoor) {
  LimitedSources limited;
  limited.add(Door::tls);
  limited.add(Door::tls);
  EXPECT_EQ(limited.count(Door::tls), 2U);
  EXPECT_EQ(limited.count(Door::http), 0U);
}

}  // namespace
}  // namespace offload::net
