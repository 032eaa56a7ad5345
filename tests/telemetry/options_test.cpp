#include "telemetry/options.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "cli/options.hpp"
#include "tests/support/command_line.hpp"

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
  for (const char* text :
       {"", ":", ":9100", "localhost", "localhost:", "localhost:65536", "-1", "9100x", "::1:9100",
        "localhost:91 00", " 9100", "[::1:9100", "::1]:9100"}) {
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

struct Doors {
  std::optional<MetricsAddress> metrics{};
  std::string admin{};

  std::optional<cli::Leave> parse(std::vector<const char*> arguments) {
    cli::CommandLine line("a-program", "What it is.");
    add_metrics_option(line, metrics);
    add_admin_option(line, admin);
    arguments.insert(arguments.begin(), "a-program");
    return line.parse(static_cast<int>(arguments.size()), arguments.data());
  }
};

TEST(TelemetryOptions, SayWhereMetricsAreServedAndCommandsTaken) {
  Doors nothing;
  EXPECT_FALSE(nothing.parse({}));
  EXPECT_FALSE(nothing.metrics);
  EXPECT_EQ(nothing.admin, "");
  Doors doors;
  EXPECT_FALSE(doors.parse({"--metrics", "[::1]:9100", "--admin", "unix:/run/a"}));
  ASSERT_TRUE(doors.metrics);
  EXPECT_EQ(doors.metrics->host, "[::1]");
  EXPECT_EQ(doors.metrics->port, 9100);
  EXPECT_EQ(doors.admin, "/run/a");
}

TEST(TelemetryOptions, WhatIsWrongIsRefused) {
  const std::string longest = "unix:/" + std::string(106, 'a');
  EXPECT_FALSE(Doors().parse({"--admin", longest.c_str()}));
  const std::string longer = longest + 'a';
  const support::BadCase cases[] = {
      {{"--metrics", "localhost"}, "--metrics: 'localhost' is not PORT or ADDRESS:PORT"},
      {{"--admin", "/run/a"}, "--admin: '/run/a' is not unix:PATH"},
      {{"--admin", "tcp:/run/a"}, "'tcp:/run/a' is not unix:PATH"},
      {{"--admin", "unix:"}, "'unix:' is not unix:PATH"},
      {{"--admin", longer.c_str()}, "a path of at most 107 bytes"},
  };
  for (const auto& bad : cases) {
    support::expect_refused(Doors().parse(bad.arguments).value_or(cli::Leave{}), "a-program",
                            bad.says);
  }
}

}  // namespace
}  // namespace offload::telemetry
