#include "apps/client/run/server_figures.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "tests/support/thrown.hpp"

namespace offload::client {
namespace {

nlohmann::json status(std::uint64_t requests, std::vector<std::uint64_t> worker) {
  return {{"program", "offload-server"},
          {"process", 7},
          {"state",
           {{"totals",
             {{"requests", requests}, {"responses", requests - 1}, {"errors", requests / 100}}},
            {"bounds_ns", {1000, 2000, 4000}},
            {"stages", {{"worker", worker}}},
            {"threads",
             {{{"busy_ns", 10 * requests}, {"poll_ns", 30 * requests}, {"sleep_ns", 0}},
              {{"busy_ns", 10 * requests}, {"poll_ns", 0}, {"sleep_ns", 30 * requests}}}}}}};
}

ServerFigures figures(const nlohmann::json& status) {
  return read_server_figures(status.dump());
}

TEST(ServerFigures, TheShareIsWhatCameBetween) {
  const auto share =
      between(figures(status(100, {5, 5, 5, 5})), figures(status(300, {5, 15, 15, 5})));
  EXPECT_EQ(share.requests, 200U);
  EXPECT_EQ(share.responses, 200U);
  EXPECT_EQ(share.errors, 2U);
  EXPECT_DOUBLE_EQ(share.busy, 0.25);
  EXPECT_DOUBLE_EQ(share.polling, 0.375);
  EXPECT_DOUBLE_EQ(share.asleep, 0.375);
  ASSERT_EQ(share.stages.size(), 1U);
  EXPECT_EQ(share.stages[0].count, 20U);
  EXPECT_DOUBLE_EQ(share.stages[0].p50_us.value(), 2.0);
  EXPECT_NE(make_text(share).find("200 requests"), std::string::npos);
}

TEST(ServerFigures, AQuantileNeedsRequestsBeyondIt) {
  const auto stage_of = [](std::uint64_t each) {
    return between(figures(status(100, {5, 5, 5, 5})),
                   figures(status(300, {5, 5 + each, 5 + each, 5})))
        .stages.at(0);
  };
  EXPECT_FALSE(stage_of(49).p99_us);
  EXPECT_DOUBLE_EQ(stage_of(50).p99_us.value(), 3.96);
  EXPECT_DOUBLE_EQ(stage_of(1).p50_us.value(), 2.0);
  EXPECT_FALSE(stage_of(0).p50_us);
  const auto share = between(figures(status(1, {1, 0, 0, 0})), figures(status(1, {1, 0, 0, 0})));
  EXPECT_NE(make_text(share).find("p50 -, p99 -, of 0 requests"), std::string::npos);
}

TEST(ServerFigures, ABucketIsSpreadFromTheBoundBefore) {
  const auto p50 = [](const std::vector<std::uint64_t>& counts) {
    const auto share = between(figures(status(100, {0, 0, 0, 0})), figures(status(200, counts)));
    return share.stages.at(0).p50_us.value();
  };
  EXPECT_DOUBLE_EQ(p50({4, 0, 0, 0}), 0.5);  // 0 to 1 us
  EXPECT_DOUBLE_EQ(p50({0, 4, 0, 0}), 1.5);
  EXPECT_DOUBLE_EQ(p50({0, 0, 4, 0}), 3.0);
}

TEST(ServerFigures, BeyondTheLastBoundIsThatBound) {
  const auto share =
      between(figures(status(100, {0, 0, 0, 0})), figures(status(101, {0, 0, 0, 3})));
  EXPECT_DOUBLE_EQ(share.stages[0].p50_us.value(), 4.0);
}

TEST(ServerFigures, BucketsThatWereNotThereBeforeCountFromZero) {
  const auto share = between(figures(status(100, {})), figures(status(101, {0, 4, 0, 0})));
  EXPECT_EQ(share.stages.at(0).count, 4U);
  EXPECT_DOUBLE_EQ(share.stages[0].p50_us.value(), 1.5);
}

TEST(ServerFigures, AnotherProcessIsAnotherServer) {
  auto restarted = status(5, {0, 0, 0, 0});
  restarted["process"] = 8;
  const auto before = figures(status(5, {0, 0, 0, 0}));
  EXPECT_EQ(support::thrown_by([&] { (void)between(before, figures(restarted)); }).code(),
            core::ErrorCode::bad_state);
}

TEST(ServerFigures, WhatIsNoServersStatusIsSaid) {
  auto worker = status(5, {0});
  worker["program"] = "offload-worker";
  for (const std::string& text : {std::string("hello"), std::string("{}"), worker.dump(),
                                  std::string(R"({"program": "offload-server", "state": 3})")}) {
    EXPECT_EQ(support::thrown_by([&] { (void)read_server_figures(text); }).code(),
              core::ErrorCode::bad_message)
        << text;
  }
}

}  // namespace
}  // namespace offload::client
