#include "apps/server/admission/waiting_addresses.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <string>

namespace offload::server {
namespace {

net::PeerAddress address(const std::string& text) {
  sockaddr_storage storage{};
  if (text.find(':') == std::string::npos) {
    auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
    v4.sin_family = AF_INET;
    EXPECT_EQ(::inet_pton(AF_INET, text.c_str(), &v4.sin_addr), 1);
  } else {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
    v6.sin6_family = AF_INET6;
    EXPECT_EQ(::inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr), 1);
  }
  return net::PeerAddress(storage);
}

constexpr core::TimePoint kNow{std::chrono::hours(1)};

TEST(WaitingAddresses, AnAddressWaitsForItsTimeAndNoOther) {
  WaitingAddresses waiting;
  EXPECT_FALSE(waiting.contains({}, kNow));
  waiting.add(address("10.0.0.1"), kNow);
  EXPECT_TRUE(waiting.contains(address("10.0.0.1"), kNow));
  EXPECT_FALSE(waiting.contains(address("10.0.0.2"), kNow));
  EXPECT_TRUE(
      waiting.contains(address("10.0.0.1"), kNow + WaitingAddresses::kTime - core::Duration(1)));
  EXPECT_FALSE(waiting.contains(address("10.0.0.1"), kNow + WaitingAddresses::kTime));
}

TEST(WaitingAddresses, ASecondRequestMakesItWaitLonger) {
  WaitingAddresses waiting;
  waiting.add(address("10.0.0.1"), kNow);
  waiting.add(address("10.0.0.1"), kNow + core::seconds(10));
  EXPECT_TRUE(waiting.contains(address("10.0.0.1"), kNow + WaitingAddresses::kTime));
}

TEST(WaitingAddresses, ASiteIsOneAddress) {
  WaitingAddresses waiting;
  waiting.add(address("2001:db8::1"), kNow);
  EXPECT_TRUE(waiting.contains(address("2001:db8::2"), kNow));
  EXPECT_FALSE(waiting.contains(address("2001:db8:0:1::1"), kNow));
}

TEST(WaitingAddresses, KeepsTheLatestOfMany) {
  WaitingAddresses waiting;
  for (std::size_t i = 0; i <= WaitingAddresses::kMost; ++i) {
    waiting.add(address("10.0.0." + std::to_string(i)), kNow);
  }
  EXPECT_FALSE(waiting.contains(address("10.0.0.0"), kNow));
  for (std::size_t i = 1; i <= WaitingAddresses::kMost; ++i) {
    EXPECT_TRUE(waiting.contains(address("10.0.0." + std::to_string(i)), kNow)) << i;
  }
}

}  // namespace
}  // namespace offload::server
