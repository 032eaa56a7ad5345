#include "apps/client/report/result_json.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "metrics/hdr_codec.hpp"
#include "tests/client/report/sample_campaign.hpp"

namespace offload::client {
namespace {

using namespace std::chrono_literals;

Options options_of(bool open_loop) {
  Options options;
  options.server_address = "::1";
  options.sizes = SizeMix{{64, 1}};
  options.sizes_text = "64";
  if (open_loop) options.rate = 2;
  return options;
}

Options options_of_search() {
  Options options = options_of(true);
  options.search = Search{"p99", 0.99, 1ms};
  return options;
}

TEST(ResultJson, SaysWhatRanWhereAndHow) {
  const auto json =
      make_json(options_of(false), sample_campaign(false), {"offload-client", "-s"}, "");
  EXPECT_EQ(json.at("program"), "offload-client");
  EXPECT_EQ(json.at("format"), 1);
  EXPECT_FALSE(json.at("revision").get<std::string>().empty());
  EXPECT_EQ(json.at("command_line").size(), 2U);
  EXPECT_GT(json.at("machine").at("processors"), 0);
  EXPECT_EQ(json.at("status"), "failed");
  EXPECT_EQ(json.at("faults").at(0), "thread 0, request 1: ...");
  const auto& options = json.at("options");
  EXPECT_EQ(options.at("sizes"), "64");
  EXPECT_EQ(options.at("iteration_count"), 10'000);
  EXPECT_TRUE(options.at("duration_seconds").is_null());
  EXPECT_EQ(options.at("payload"), "random");
  EXPECT_EQ(options.at("service"), "reverse");
  EXPECT_EQ(options.at("on_error"), "stop");
}

TEST(ResultJson, ARun) {
  const auto json = make_json(options_of(true), sample_campaign(true), {}, "");
  const auto& run = json.at("runs").at(0);
  EXPECT_EQ(run.at("offered_per_second"), 2.0);
  EXPECT_EQ(run.at("arrivals"), "constant");
  EXPECT_EQ(run.at("operation_count"), 3);
  EXPECT_EQ(run.at("valid_responses"), 2);
  EXPECT_EQ(run.at("unanswered_requests"), 1);
  EXPECT_EQ(run.at("errors"), (nlohmann::ordered_json{{"mismatch", 1}}));
  EXPECT_DOUBLE_EQ(run.at("duration_seconds"), 2.0);
  EXPECT_EQ(run.at("tx_bytes"), (std::uint64_t{4} << 30) + 48);
  EXPECT_EQ(run.at("rx_bytes"), (std::uint64_t{3} << 30) + 36);
  EXPECT_DOUBLE_EQ(run.at("tx_data_rate_gib_s"), 2.0);
  EXPECT_DOUBLE_EQ(run.at("rx_data_rate_gib_s"), 1.5);
  EXPECT_DOUBLE_EQ(run.at("tx_wire_rate_gib_s"), 2.0 + 24 / kGiB);
  EXPECT_DOUBLE_EQ(run.at("rx_wire_rate_gib_s"), 1.5 + 18 / kGiB);
  EXPECT_DOUBLE_EQ(run.at("service_time_us").at("min"), 100.0);
  EXPECT_DOUBLE_EQ(run.at("response_time_us").at("max"), 1500.0);
  EXPECT_EQ(run.at("schedule_lag_us").at("count"), 0);
  EXPECT_EQ(run.at("verdict").at("code"), "kept_up");
  const auto histogram =
      metrics::decode_hdr(run.at("service_time_us").at("histogram").get<std::string>());
  EXPECT_EQ(histogram.count(), 2U);
  const auto& second = run.at("intervals").at(0);
  EXPECT_DOUBLE_EQ(second.at("start_s"), 0.5);
  EXPECT_EQ(second.at("operations"), 3);
  EXPECT_DOUBLE_EQ(second.at("response_time_us").at("max"), 1500.0);
}

TEST(ResultJson, AClosedLoopHasNoResponseTime) {
  const auto json = make_json(options_of(false), sample_campaign(false), {}, "");
  const auto& run = json.at("runs").at(0);
  EXPECT_TRUE(run.at("offered_per_second").is_null());
  EXPECT_TRUE(run.at("response_time_us").is_null());
  EXPECT_TRUE(run.at("schedule_lag_us").is_null());
  EXPECT_TRUE(run.at("intervals").at(0).at("response_time_us").is_null());
}

TEST(ResultJson, ASearchIsJudgedByWhatItFound) {
  auto campaign = sample_campaign(true);  // with an error, as an overloaded server has
  campaign.search.emplace();
  EXPECT_EQ(make_json(options_of_search(), campaign, {}, "").at("status"), "failed");
  campaign.search->rate = 1000;
  const auto json = make_json(options_of_search(), campaign, {}, "");
  EXPECT_EQ(json.at("status"), "ok");
  EXPECT_EQ(json.at("search").at("rate"), 1000.0);
}

TEST(ResultJson, Status) {
  const auto status = [](const Campaign& campaign, const std::string& failure) {
    return make_json(options_of(false), campaign, {}, failure).at("status").get<std::string>();
  };
  Campaign fine;
  fine.runs.emplace_back();
  EXPECT_EQ(status(fine, ""), "ok");
  EXPECT_EQ(status(fine, "cannot connect"), "failed");
  fine.runs.back().interrupted = true;
  EXPECT_EQ(status(fine, ""), "interrupted");
  EXPECT_EQ(make_json(options_of(false), {}, {}, "no server").at("faults").at(0), "no server");
}

}  // namespace
}  // namespace offload::client
