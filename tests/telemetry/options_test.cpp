#include "telemetry/options.hpp"

#include <gtest/gtest.h>

namespace offload::telemetry {
namespace {

TEST(MetricsAddress, APortAloneIsLoopbacks) {
  const auto endpoint = MetricsAddress::parse("9100");
  ASSERT_TRUE(endpoint);
  EXPECT_EQ(endpoint->host, "127.0.0.1");
  EXPECT_EQ(endpoint->port, 9100);
}

TEST(MetricsAddress, AnAddressStandsBeforeTheColon) {
  const auto name = MetricsAddress::parse("0.0.0.0:0");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->host, "0.0.0.0");
  EXPECT_EQ(name->port, 0);
  const auto sixth = MetricsAddress::parse("[::1]:65535");
  ASSERT_TRUE(sixth);
  EXPECT_EQ(sixth->host, "[::1]");
  EXPECT_EQ(sixth->port, 65535);
}

TEST(MetricsAddress, AnythingElseIsNone) {
  for (const char* text : {"", ":", ":9100", "localhost", "localhost:", "localhost:65536", "-1",
                           "9100x", "::1:9100", "localhost:91 00", " 9100"}) {
    EXPECT_FALSE(MetricsAddress::parse(text)) << text;
  }
}

TEST(MetricsAddress, IsNamedByAddressesAndItsOwnName) {
  const MetricsAddress endpoint{"DPU.example", 9100};
  for (const char* host : {"127.0.0.1", "127.0.0.1:9100", "10.0.0.1:80", "[::1]", "[::1]:9100",
                           "localhost", "LocalHost:9100", "dpu.example", "dpu.example:9100"}) {
    EXPECT_TRUE(endpoint.is_named_by(host)) << host;
  }
}

TEST(MetricsAddress, IsNotNamedByNamesOfOthers) {
  const MetricsAddress endpoint{"dpu.example", 9100};
  for (const char* host :
       {"", ":9100", "evil.example", "dpu.example.evil.example", "127.0.0.1.evil.example",
        "localhost.evil.example:9100", "127.0.0", "[evil.example]", "[127.0.0.1]", "::1",
        "127.0.0.1@evil.example", " 127.0.0.1"}) {
    EXPECT_FALSE(endpoint.is_named_by(host)) << host;
  }
}

}  // namespace
}  // namespace offload::telemetry
