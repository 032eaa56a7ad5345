#include "apps/rdma_tasks/bring_up/finding.hpp"

#include <gtest/gtest.h>

#include "apps/rdma_tasks/bring_up/bring_up_options.hpp"
#include "tests/support/command_line.hpp"

namespace offload::rdma_tool {
namespace {

TEST(BringUpFinding, WhatToDoIsBelowWhatWasFound) {
  EXPECT_EQ(make_text({StepVerdict::good, "port", "port 1: ACTIVE", ""}),
            "good     port              port 1: ACTIVE\n");
  EXPECT_EQ(make_text({StepVerdict::error, "proxy immediate", "a byte\n", "use another card"}),
            "error    proxy immediate   a byte\\x0a\n"
            "                           to fix: use another card\n");
}

TEST(BringUpFinding, OnlyAnErrorMakesADataPathUnready) {
  EXPECT_TRUE(is_ready({}));
  EXPECT_TRUE(is_ready({{StepVerdict::good, "", "", ""}, {StepVerdict::warning, "", "", ""}}));
  EXPECT_FALSE(is_ready({{StepVerdict::error, "", "", ""}, {StepVerdict::good, "", "", ""}}));
}

std::variant<BringUpOptions, cli::Leave> parse_words(std::vector<const char*> arguments) {
  return support::parse<parse_bring_up_options>(std::move(arguments), "offload-rdma bring-up");
}

TEST(BringUpCommandLine, Defaults) {
  const auto options = support::accepted(parse_words({}));
  EXPECT_EQ(options.run.initiator, Initiator::gpu);
  EXPECT_EQ(options.run.path.device, "rdma");
  EXPECT_EQ(options.run.gpu, "");
  EXPECT_EQ(options.rate_time, core::seconds(1));
  EXPECT_EQ(options.run.timeout, core::seconds(5));
}

TEST(BringUpCommandLine, EverythingElse) {
  const auto options = support::accepted(
      parse_words({"--device", "mlx5_1", "--gpu", "gpu:1", "--gid", "fe80::1", "--rate-time",
                   "50ms", "--timeout", "2s", "--traffic-class", "104"}));
  EXPECT_EQ(options.run.path, (rdma::PathChoice{"mlx5_1", {}, 104, {}, {}}));
  EXPECT_EQ(options.run.gpu, "gpu:1");
  EXPECT_EQ(options.run.gid, "fe80::1");
  EXPECT_EQ(options.rate_time, std::chrono::milliseconds(50));
  EXPECT_EQ(options.run.timeout, core::seconds(2));
}

TEST(BringUpCommandLine, WhatItCannotUseIsRefused) {
  EXPECT_EQ(std::get<cli::Leave>(parse_words({"--gid", "ten"})).status, cli::kUsageError);
  EXPECT_EQ(std::get<cli::Leave>(parse_words({"--role", "responder"})).status, cli::kUsageError);
  EXPECT_EQ(std::get<cli::Leave>(parse_words({"--rate-time", "0"})).status, cli::kUsageError);
}

}  // namespace
}  // namespace offload::rdma_tool
