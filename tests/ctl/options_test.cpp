#include "apps/ctl/options.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace offload::ctl {
namespace {

using Sockets = std::vector<std::string>;

std::variant<Options, cli::Leave> parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "offload-ctl");
  return parse_options(static_cast<int>(arguments.size()), arguments.data());
}

TEST(CtlOptions, ALook) {
  const auto options = std::get<Options>(parse({"--admin", "unix:/tmp/a", "ready"}));
  EXPECT_EQ(options.sockets, Sockets{"/tmp/a"});
  EXPECT_EQ(options.command, "readyz");
  EXPECT_FALSE(options.changes);
}

TEST(CtlOptions, ACommandWithItsArgument) {
  const auto options = std::get<Options>(parse({"--admin", "unix:a", "log-level", "debug"}));
  EXPECT_EQ(options.command, "log-level");
  EXPECT_EQ(options.argument, "debug");
  EXPECT_TRUE(options.changes);
  EXPECT_EQ(std::get<Options>(parse({"--admin", "unix:a", "detach"})).argument, "");
  EXPECT_EQ(std::get<Options>(parse({"--admin", "unix:a", "detach", "3"})).argument, "3");
}

TEST(CtlOptions, OptionsMayFollowTheCommand) {
  const auto options =
      std::get<Options>(parse({"log-level", "--admin", "unix:/tmp/a", "info,comch=debug"}));
  EXPECT_EQ(options.sockets, Sockets{"/tmp/a"});
  EXPECT_EQ(options.argument, "info,comch=debug");
  EXPECT_EQ(std::get<Options>(parse({"ready", "--admin", "unix:b"})).sockets, Sockets{"b"});
}

TEST(CtlOptions, AnInstanceHasTheSocketOfItsUnit) {
  EXPECT_EQ(std::get<Options>(parse({"-i", "one", "ready"})).sockets,
            Sockets{"/run/dpu-gpu-offload-one/server.admin"});
  EXPECT_EQ(std::get<Options>(parse({"ready", "--worker", "-i", "one"})).sockets,
            Sockets{"/run/offload-worker-one/worker.admin"});
}

TEST(CtlOptions, SeveralPrograms) {
  EXPECT_EQ(
      std::get<Options>(parse({"-i", "b", "-i", "a", "ready"})).sockets,
      (Sockets{"/run/dpu-gpu-offload-b/server.admin", "/run/dpu-gpu-offload-a/server.admin"}));
  EXPECT_EQ(std::get<Options>(parse({"--admin", "unix:a", "ready", "--admin", "unix:b"})).sockets,
            (Sockets{"a", "b"}));
  EXPECT_EQ(std::get<Options>(parse({"detach", "-i", "one", "3"})).argument, "3");
}

TEST(CtlOptions, WhatIsWrongIsOneLine) {
  for (const std::vector<const char*>& arguments :
       std::vector<std::vector<const char*>>{{"ready"},
                                             {"--admin", "tcp:host:1", "ready"},
                                             {"--admin", "unix:", "ready"},
                                             {"--admin", "unix:a"},
                                             {"--admin", "unix:a", "log-level"},
                                             {"--admin", "unix:a", "ready", "now"},
                                             {"--admin", "unix:a", "-i", "one", "ready"},
                                             {"ready", "--admin", "unix:a", "--worker"},
                                             {"ready", "--admin", "unix:a", "--all"},
                                             {"ready", "-i", "a", "--all"},
                                             {"-i", "../x", "ready"},
                                             {"-i", "", "ready"},
                                             {"--admin", "unix:a", "ready", "drain"},
                                             {"--admin", "unix:a", "stop"}}) {
    const auto parsed = parse(arguments);
    ASSERT_TRUE(std::holds_alternative<cli::Leave>(parsed)) << arguments.back();
    EXPECT_EQ(std::get<cli::Leave>(parsed).status, cli::kUsageError) << arguments.back();
    EXPECT_EQ(std::get<cli::Leave>(parsed).text.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace offload::ctl
