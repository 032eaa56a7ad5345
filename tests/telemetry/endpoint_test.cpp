#include "telemetry/endpoint.hpp"

#include <gtest/gtest.h>

namespace offload::telemetry {
namespace {

TEST(Endpoint, APortAloneIsLoopbacks) {
  const auto endpoint = Endpoint::parse("9100");
  ASSERT_TRUE(endpoint);
  EXPECT_EQ(endpoint->host, "127.0.0.1");
  EXPECT_EQ(endpoint->port, 9100);
}

TEST(Endpoint, AnAddressStandsBeforeTheColon) {
  const auto name = Endpoint::parse("0.0.0.0:0");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->host, "0.0.0.0");
  EXPECT_EQ(name->port, 0);
  const auto sixth = Endpoint::parse("[::1]:65535");
  ASSERT_TRUE(sixth);
  EXPECT_EQ(sixth->host, "[::1]");
  EXPECT_EQ(sixth->port, 65535);
}

TEST(Endpoint, AnythingElseIsNone) {
  for (const char* text : {"", ":", ":9100", "localhost", "localhost:", "localhost:65536", "-1",
                           "9100x", "::1:9100", "localhost:91 00", " 9100"}) {
    EXPECT_FALSE(Endpoint::parse(text)) << text;
  }
}

}  // namespace
}  // namespace offload::telemetry
