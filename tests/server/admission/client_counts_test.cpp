#include "apps/server/admission/client_counts.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <string>
#include <vector>

namespace offload::server {
namespace {

using Outcome = ClientCounts::Outcome;

net::PeerAddress address_of(const std::string& ip) {
  sockaddr_storage storage{};
  if (ip.find(':') == std::string::npos) {
    auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
    v4.sin_family = AF_INET;
    v4.sin_port = htons(4711);
    EXPECT_EQ(::inet_pton(AF_INET, ip.c_str(), &v4.sin_addr), 1);
  } else {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(4711);
    EXPECT_EQ(::inet_pton(AF_INET6, ip.c_str(), &v6.sin6_addr), 1);
  }
  return net::PeerAddress(storage);
}

class ClientCountsTest : public testing::Test {
 protected:
  Outcome admit(ClientCounts& counts, const std::string& ip) {
    ClientCounts::Place place;
    const Outcome outcome = counts.admit(address_of(ip), place);
    if (outcome == Outcome::let_in) places_.push_back(std::move(place));
    return outcome;
  }
  std::vector<ClientCounts::Place> places_;
};

TEST_F(ClientCountsTest, OfOneAddress) {
  ClientCounts counts(100, 2);
  EXPECT_EQ(admit(counts, "10.0.0.1"), Outcome::let_in);
  EXPECT_EQ(admit(counts, "10.0.0.1"), Outcome::let_in);
  EXPECT_EQ(admit(counts, "10.0.0.1"), Outcome::too_many_of_address);
  EXPECT_EQ(admit(counts, "10.0.0.2"), Outcome::let_in);
  places_.erase(places_.begin());
  EXPECT_EQ(admit(counts, "10.0.0.1"), Outcome::let_in);
}

TEST_F(ClientCountsTest, TheLower64BitsOfIpv6AreOfOneOwner) {
  ClientCounts counts(100, 1);
  EXPECT_EQ(admit(counts, "2001:db8:0:1::1"), Outcome::let_in);
  EXPECT_EQ(admit(counts, "2001:db8:0:1:ffff::2"), Outcome::too_many_of_address);
  EXPECT_EQ(admit(counts, "2001:db8:0:2::1"), Outcome::let_in);
  EXPECT_EQ(admit(counts, "::ffff:10.0.0.1"), Outcome::let_in);
  EXPECT_EQ(admit(counts, "10.0.0.1"), Outcome::too_many_of_address);  // the same, mapped
}

TEST_F(ClientCountsTest, InAll) {
  ClientCounts counts(2, 2);
  EXPECT_EQ(admit(counts, "10.0.0.1"), Outcome::let_in);
  EXPECT_EQ(admit(counts, "10.0.0.2"), Outcome::let_in);
  EXPECT_EQ(admit(counts, "10.0.0.3"), Outcome::too_many);
  places_.clear();
  EXPECT_EQ(admit(counts, "10.0.0.3"), Outcome::let_in);
}

TEST_F(ClientCountsTest, ThoseThatAreGoneAreForgotten) {
  ClientCounts counts(100'000, 10);
  for (int i = 0; i < 5000; ++i) {
    ASSERT_EQ(admit(counts, "10.1." + std::to_string(i / 250) + "." + std::to_string(i % 250)),
              Outcome::let_in);
    if (places_.size() > 20) places_.erase(places_.begin());
  }
  EXPECT_LT(counts.sources(), 200U);
}

// The counts forget many networks meanwhile.
TEST_F(ClientCountsTest, OneThatIsThereIsNotForgotten) {
  ClientCounts counts(100'000, 1);
  ASSERT_EQ(admit(counts, "10.0.0.1"), Outcome::let_in);
  for (int i = 0; i < 1000; ++i) {
    ClientCounts::Place gone_at_once;
    (void)counts.admit(
        address_of("10.1." + std::to_string(i / 250) + "." + std::to_string(i % 250)),
        gone_at_once);
  }
  EXPECT_LT(counts.sources(), 200U);
  EXPECT_EQ(admit(counts, "10.0.0.1"), Outcome::too_many_of_address);
}

TEST_F(ClientCountsTest, APlaceMayOutliveTheCounts) {
  {
    ClientCounts counts(2, 2);
    EXPECT_EQ(admit(counts, "10.0.0.1"), Outcome::let_in);
  }
  places_.clear();
}

}  // namespace
}  // namespace offload::server
